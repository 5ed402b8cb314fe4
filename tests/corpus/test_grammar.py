"""Every form of Python's grammar is in the corpus, or refused with its line.

The forms are the node classes of the `ast` module of the Python that runs the tests, and whether
their optional fields are there.
"""

from __future__ import annotations

import ast
import linecache
import re
from pathlib import Path

import pytest

import treadle as td
from tests.corpus.test_corpus import CASES

REFUSED = {
    "Yield": "def f(x):\n    y = yield x\n    return y",
    "YieldFrom": "def f(x):\n    yield from (x, x)",
    "Await": "async def f(x):\n    await x",
    "AsyncFunctionDef": "async def f(x):\n    return x",
    "AsyncFor": "async def f(x):\n    async for y in x:\n        pass",
    "AsyncWith": "async def f(x):\n    async with x as y:\n        pass",
}
# Not forms of a function's code: whole files, type comments, contexts, what only old Pythons had.
OUTSIDE = {
    "Module", "Interactive", "Expression", "FunctionType", "Suite", "TypeIgnore", "AugLoad",
    "AugStore", "Param", "Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice",
}  # fmt: skip
# Fields that source code never sets, and those whose absence or presence is an error.
UNUSED_FIELDS = {"type_comment", "kind", "type_ignores"}
ALWAYS = {("Constant", "value"), ("MatchSingleton", "value"), ("Dict", "keys")}


# Combinations that the grammar's notation allows and Python does not.
IMPOSSIBLE = {
    f"{name}=None" for name in (
        "FunctionDef.body", "ClassDef.body", "For.body", "While.body", "If.body", "With.body",
        "With.items", "Match.cases", "Try.body", "TryStar.body", "TryStar.handlers",
        "Import.names", "ImportFrom.names", "Global.names", "Nonlocal.names", "Delete.targets",
        "Assign.targets", "BoolOp.values", "Compare.ops", "Compare.comparators", "Set.elts",
        "ListComp.generators", "SetComp.generators", "DictComp.generators",
        "GeneratorExp.generators", "JoinedStr.values", "MatchOr.patterns", "match_case.body",
        "ExceptHandler.body", "ImportFrom.level", "TemplateStr.values",
    )
}  # fmt: skip


def forms() -> set[str]:
    """``Class`` for every node class, ``Class.field`` and ``Class.field=None`` for its options."""
    found = set()
    for name, kind in vars(ast).items():
        concrete = isinstance(kind, type) and issubclass(kind, ast.AST)
        if (
            name.startswith("_")
            or not concrete
            or name in OUTSIDE | set(REFUSED)
            or kind.__subclasses__()
        ):
            continue
        if name in ("AST", "stmt", "expr", "mod", "slice", "type_ignore"):
            continue
        found.add(name)
        signature = (kind.__doc__ or "").replace("\n", " ")
        for mark, field in re.findall(r"\w+([?*]) (\w+)", signature):
            if field not in UNUSED_FIELDS and (name, field) not in ALWAYS:
                found |= {f"{name}.{field}", f"{name}.{field}=None"}
    return found


def written() -> set[str]:
    """The forms in the sources of the corpus."""
    found: set[str] = set()
    for file in {Path(c.fn.__code__.co_filename) for c in CASES}:
        for node in ast.walk(ast.parse(file.read_text())):
            name = type(node).__name__
            found.add(name)
            for field, value in ast.iter_fields(node):
                found.add(f"{name}.{field}" if value not in (None, []) else f"{name}.{field}=None")
    return found


def test_every_form_is_in_the_corpus():
    missing = forms() - written() - IMPOSSIBLE
    assert not missing, sorted(missing)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_forms_name_their_line(name):
    text = REFUSED[name] + "\n"
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = {}
    exec(compile(text, filename, "exec"), namespace)
    with pytest.raises(NotImplementedError, match=f"{filename}:1"):
        td.function(namespace["f"])(td.constant(1))
