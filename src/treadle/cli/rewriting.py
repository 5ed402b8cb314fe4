"""The text of a program for TensorFlow, rewritten to treadle: `rewritten`.

Only what an edit replaces is changed: comments and layout stay. Which names and arguments there are
is asked of treadle's own modules and signatures.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import treadle
from treadle.cli import old_names

V1, V2 = "treadle.compat.v1", "treadle"
_IGNORED = {"__version__", "__file__", "__path__"}
_NOTHING = object()  # what a path names that is not there


class Remark(NamedTuple):
    """Something that a person has to look at."""

    line: int
    text: str
    reason: str
    advice: str


class Edit(NamedTuple):
    """A replaced part of the text, in bytes."""

    start: int
    end: int
    text: str
    line: int


class Rewritten(NamedTuple):
    """What became of a program.

    Attributes:
        api: the module that stands for TensorFlow: "treadle", "treadle.compat.v1", or "" where the
            program does not use TensorFlow.
    """

    text: str
    edits: list[Edit]
    remarks: list[Remark]
    api: str


def rewritten(source: str) -> Rewritten:
    """Rewrite a program.

    A program whose names treadle itself has is one of TensorFlow 2 and gets `treadle`; one that
    needs TensorFlow 1's gets `treadle.compat.v1`. A text that is no Python 3 is left as it is.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        lines = source.splitlines()
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        advice = "translate it to Python 3 first, such as print statements"
        return Rewritten(source, [], [Remark(line, text, f"not Python 3: {error}", advice)], "")
    found = _Program(source, tree)
    found.rewrite()
    edits = _apart(found.edits)
    data = source.encode()
    for edit in reversed(edits):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    remarks = sorted(set(found.remarks))
    return Rewritten(data.decode(), edits, remarks, found.root if found.is_used else "")


def _apart(edits: list[Edit]) -> list[Edit]:
    """Edits in the order of the text, without those within what another one replaces."""
    found: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start, -e.end)):
        if not found or edit.start >= found[-1].end:
            found.append(edit)
    return found


class _Name(NamedTuple):
    """A dotted name of TensorFlow: the node, and the path from TensorFlow's root, as "nn.relu"."""

    node: ast.expr
    path: str


class _Program:
    """One program: what it imports, which names and arguments it uses, and the edits."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._data, self._tree = source.encode(), tree
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))
        self.edits: list[Edit] = []
        self.remarks: list[Remark] = []
        self.is_used = False
        self._bound: dict[str, str] = {}  # names of Python -> paths from TensorFlow's root
        self._imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        self._bind()
        self._names = list(self._dotted())
        self._own = {  # what the program itself adds to TensorFlow's modules, as tf.model = ...
            n.path for n in self._names if isinstance(n.node, ast.Attribute) and _is_set(n.node)
        }
        self.root = self._api()

    # -- what the program uses -------------------------------------------------------------------

    def _bind(self) -> None:
        """Which of the program's names stand for TensorFlow and its modules."""
        for node in self._imports:
            for alias in node.names:
                module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                path = _path_in_tensorflow(module)
                if path is None or (isinstance(node, ast.ImportFrom) and node.level):
                    continue
                self.is_used = True
                if isinstance(node, ast.ImportFrom):
                    path = _public(f"{path}.{alias.name}".strip("."))
                    self._bound[alias.asname or alias.name] = path
                else:
                    first = module.split(".")[0]
                    self._bound[alias.asname or first] = path if alias.asname else (
                        _path_in_tensorflow(first) or "")  # fmt: skip
        for assign in ast.walk(self._tree):  # such as: layers = tf.keras.layers
            if isinstance(assign, ast.Assign) and len(assign.targets) == 1:
                (target,), path = assign.targets, self._path(assign.value)
                if isinstance(target, ast.Name) and path and _is_module(path):
                    self._bound.setdefault(target.id, path)

    def _path(self, node: ast.expr) -> str | None:
        """The path of a dotted name from TensorFlow's root; None for other expressions."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._bound:
            return None
        return ".".join(filter(None, [self._bound[node.id], *reversed(parts)]))

    def _dotted(self) -> Iterator[_Name]:
        """The dotted names of the program, each with all its parts."""
        waiting: list[ast.AST] = [self._tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Attribute):
                path = self._path(node)
                if path is not None:
                    yield _Name(node, path)
                    continue
            waiting += ast.iter_child_nodes(node)

    def _api(self) -> str:
        """Which module stands for TensorFlow."""
        paths = [*(n.path for n in self._names), *(p for p in self._bound.values() if p)]
        modules = {
            a.name if isinstance(n, ast.Import) else f"{n.module}.{a.name}"
            for n in self._imports for a in n.names
        }  # fmt: skip
        if any(m == "tensorflow.compat.v1" or m.startswith("tensorflow.contrib") for m in modules):
            return V1
        # Programs of TensorFlow 2 name these, too.
        of_both = ("compat.", "estimator", "feature_column", "keras.")
        of_v1 = (p for p in paths if not p.startswith(of_both))
        return V1 if any(not _has(V2, p) and _new_path(V1, p) for p in of_v1) else V2

    # -- edits -----------------------------------------------------------------------------------

    def rewrite(self) -> None:
        """Find the edits and remarks."""
        for node in self._imports:
            self._rewrite_import(node)
        for name in self._names:
            self._rewrite_name(name)
        for call in ast.walk(self._tree):
            if isinstance(call, ast.Call):
                self._rewrite_call(call)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _span(self, node: Any) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(
            node.end_lineno, node.end_col_offset
        )

    def _text(self, node: Any) -> str:
        start, end = self._span(node)
        return self._data[start:end].decode()

    def _replace(self, node: Any, text: str) -> None:
        start, end = self._span(node)
        if self._data[start:end].decode() != text:
            self.edits.append(Edit(start, end, text, node.lineno))

    def _remark(self, node: Any, reason: str, advice: str) -> None:
        text = " ".join(self._text(node).split())
        self.remarks.append(
            Remark(node.lineno, text[:80], reason, advice[:1].upper() + advice[1:])
        )

    def _rewrite_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom):
            self._rewrite_from(node)
            return
        parts = []
        for alias in node.names:
            text = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            path = _path_in_tensorflow(alias.name)
            if path is None:
                self._check_package(node, alias.name)
                parts.append(text)
                continue
            found = self._module(path)
            if found is None:
                self._remark(node, _why_missing(self.root, path), _advice(alias.name))
                parts.append(text)
                continue
            bound = alias.asname or alias.name.split(".")[0]
            where = found if "." not in alias.name or alias.asname else self.root
            parts.append(f"import {where} as {bound}" if where != bound else f"import {where}")
        if any(p.startswith("import ") for p in parts):
            indent = " " * node.col_offset
            listed = [p if p.startswith("import ") else f"import {p}" for p in parts]
            self._replace(node, f"\n{indent}".join(listed))

    def _module(self, path: str) -> str | None:
        """The module of treadle for a path of TensorFlow."""
        if not path:
            return self.root
        for root in dict.fromkeys((self.root, V1, V2)):
            new = _new_path(root, path)
            name = None if new is None else _module_name(root, new)
            if name is not None:
                return name
        return None

    def _rewrite_from(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        path = None if node.level else _path_in_tensorflow(module)
        if path is None:
            self._check_package(node, module)
            return
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            text = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            if alias.name == "*":
                found = self._module(path)
                groups.setdefault(found or module, []).append(text)
                continue
            full = _public(f"{path}.{alias.name}".strip("."))
            root, new = self._place(full)
            if new is None:
                self._remark(node, _why_missing(self.root, full), _advice(f"{module}.{alias.name}"))
                groups.setdefault(module, []).append(text)
                continue
            where, last = root, new
            bound = alias.asname or alias.name
            groups.setdefault(where, []).append(last if last == bound else f"{last} as {bound}")
        if len(groups) == 1 and module not in groups:
            # The list of names keeps its layout.
            (where, names), = groups.items()
            same = [f"{a.name} as {a.asname}" if a.asname else a.name for a in node.names] == names
            start, end = self._span(node)
            text = self._data[start:end].decode()
            head = re.match(r"from\s+[\w.]+", text)
            if same and head is not None:
                end = start + len(head[0].encode())
                self.edits.append(Edit(start, end, f"from {where}", node.lineno))
                return
        if set(groups) != {module}:
            indent = " " * node.col_offset
            lines = [f"from {where} import {', '.join(names)}" for where, names in groups.items()]
            self._replace(node, f"\n{indent}".join(lines))

    def _place(self, path: str) -> tuple[str, str | None]:
        """The module that has what TensorFlow calls by a path, and its name there."""
        for root in dict.fromkeys((self.root, V1, V2)):
            new = _new_path(root, path)
            if new is not None:
                outer, _, last = new.rpartition(".")
                module = _module_name(root, outer)
                if module is not None:
                    return module, last
        return self.root, None

    def _check_package(self, node: Any, module: str) -> None:
        package = next((p for p in old_names.PACKAGES if f"{module}.".startswith(f"{p}.")), None)
        if package is not None:
            advice = old_names.PACKAGES[package]
            self._remark(node, f"{package} is another package, for TensorFlow", advice)

    def _rewrite_name(self, name: _Name) -> None:
        path = name.path
        if not self._own.isdisjoint(_prefixes(path)):
            return
        if path in _IGNORED or (
            not _has_newer_name(path) and _known_part(self.root, path) == path
        ):
            return
        if self._follows_import(name):
            return
        place, new = self._moved(path)
        if place is None or new is None:
            self._remark(name.node, _why_missing(self.root, path), _advice(path))
            return
        rest = path[len(place) :]
        if rest and _has(self.root, new) and not _has(self.root, new + rest):
            if _is_open(_found(self.root, new)):
                return
            self._remark(name.node, _why_missing(self.root, new + rest), _advice(path))
            return
        node = name.node
        for _ in range(rest.count(".")):
            assert isinstance(node, ast.Attribute)
            node = node.value
        root = self._alias_of_root()
        if root is None:
            self._remark(name.node, f"it is {self.root}.{new}", "import treadle by a name")
        elif self._path(node) != new or self._text(node) != f"{root}.{new}":
            self._replace(node, f"{root}.{new}")

    def _follows_import(self, name: _Name) -> bool:
        """Whether a name is right as it is, because what it begins with is imported from where
        treadle has it."""
        first: Any = name.node
        while isinstance(first, ast.Attribute):
            first = first.value
        bound = self._bound[first.id]
        place = _new_path(self.root, bound) if bound in old_names.NAMES else None
        return place is not None and _has(self.root, place + name.path[len(bound) :])

    def _moved(self, path: str) -> tuple[str | None, str | None]:
        """The longest part of a path that treadle has elsewhere, and where that is."""
        for root, head in ((self.root, ""), (V1, "compat.v1.")):
            for part in _prefixes(path):
                new = _new_path(root, part)
                if new is not None and (part == path or not _is_module_path(root, new)):
                    return part, new if root == self.root else head + new
        return None, None

    def _alias_of_root(self) -> str | None:
        return next((name for name, path in self._bound.items() if not path), None)

    # -- arguments -------------------------------------------------------------------------------

    def _rewrite_call(self, call: ast.Call) -> None:
        path = self._path(call.func)
        if path is None:
            self._without_effect(call)
            return
        place = _new_path(self.root, path)
        function = None if place is None else _found(self.root, place)
        if not callable(function):
            return
        self._reorder(call, path)
        taken = _arguments(function)
        if taken is None:
            return
        given = {k.arg for k in call.keywords}
        for keyword in call.keywords:
            old = keyword.arg
            if old is None or (old in taken and old not in old_names.DEPRECATED):
                continue
            new = next((n for n in old_names.ARGUMENTS.get(old, ()) if n in taken), None)
            if new is not None and new not in given:
                start = self._at(keyword.lineno, keyword.col_offset)
                self.edits.append(Edit(start, start + len(old.encode()), new, keyword.lineno))
            elif old not in taken and old in old_names.WITHOUT_EFFECT:
                self._drop(call, keyword)
            elif old not in taken:
                advice = f"it takes {', '.join(n for n in taken if n not in given)}"
                self._remark(keyword, f"{path} has no argument {old!r}", advice)

    def _without_effect(self, call: ast.Call) -> None:
        """Drop arguments of methods that changed no result."""
        if self.root == V2 and self.is_used and isinstance(call.func, ast.Attribute):
            for keyword in call.keywords:
                if keyword.arg == "colocate_gradients_with_ops":
                    self._drop(call, keyword)

    def _drop(self, call: ast.Call, keyword: ast.keyword) -> None:
        """Take an argument out, with the comma before or behind it."""
        start, end = self._span(keyword)
        behind = re.match(rb"\s*,[ \t]*", self._data[end:])
        before = re.search(rb",\s*$", self._data[:start])
        if before:
            start = before.start()
        elif behind:
            end += behind.end()
        self.edits.append(Edit(start, end, "", keyword.lineno))

    def _reorder(self, call: ast.Call, path: str) -> None:
        given = call.args
        if any(isinstance(a, ast.Starred) for a in given):
            return
        names = old_names.BY_NAME.get(path)
        if not names or not given or any(k.arg in names for k in call.keywords):
            return
        if names[0] == "axis" and not (_is_axis(given[0]) and len(given) == len(names)):
            return
        for name, argument in zip(names, given, strict=False):
            start = self._at(argument.lineno, argument.col_offset)
            self.edits.append(Edit(start, start, f"{name}=", argument.lineno))


def _is_set(node: ast.Attribute) -> bool:
    """Whether an attribute is assigned to."""
    return isinstance(node.ctx, ast.Store | ast.Del)


def _is_axis(node: ast.expr) -> bool:
    """Whether an argument is a number that the program writes down."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


# -- TensorFlow's paths, and treadle's ------------------------------------------------------------


def _path_in_tensorflow(module: str) -> str | None:
    """The path of a module from TensorFlow's root: "" for TensorFlow itself; None for others."""
    parts = module.split(".")
    if parts[0] in ("keras",):
        return ".".join(parts)
    if parts[0].lower() != "tensorflow":
        return None
    if any(f"{module}.".startswith(f"{p}.") for p in old_names.PACKAGES):
        return None
    return _public(".".join(parts[1:]))


def _public(path: str) -> str:
    """A path without the parts of TensorFlow that are not public, and without its version."""
    for head in ("compat.v1.", "compat.v2.", "_api.v1.", "_api.v2.", "python.keras.api."):
        path = path.removeprefix(head)
    if path in ("compat.v1", "compat.v2"):
        return ""
    path = path.replace("keras.api.keras", "keras")
    if path.startswith("contrib.") and ".python" in path:
        path = path.partition(".python")[0]
    if path.startswith("python.keras"):
        return path.removeprefix("python.")
    if path.startswith("python."):  # such as python.platform.gfile: the last name is public
        return path.rpartition(".")[2] if path.count(".") > 1 else ""
    return path


def _prefixes(path: str) -> Iterator[str]:
    """A path, and what is left of it when names are taken off its end."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        yield ".".join(parts[:count])


@functools.cache
def _found(root: str, path: str) -> Any:
    """What a path names there; `_NOTHING` where there is nothing."""
    value: Any = importlib.import_module(root)
    for name in filter(None, path.split(".")):
        outer = value
        try:
            value = getattr(outer, name)
        except (AttributeError, ImportError):
            return _NOTHING
        if isinstance(value, ModuleType) and not _is_public(outer, name, value):
            return _NOTHING
    return value


def _is_public(outer: Any, name: str, module: ModuleType) -> bool:
    """Whether users may name a module: one that is inside of another is listed there."""
    if module.__name__ != f"{getattr(outer, '__name__', '')}.{name}":
        return outer.__name__ in (V1, V2) or module.__name__.startswith(f"{V2}.")
    listed = getattr(outer, "__all__", None)
    return listed is None or name in listed or (outer.__name__ == V1 and name in treadle.__all__)


def _has(root: str, path: str) -> bool:
    return _found(root, path) is not _NOTHING


def _module_name(root: str, path: str) -> str | None:
    """The name by which a module is imported; None where it is no module that has a file."""
    value = _found(root, path)
    if not isinstance(value, ModuleType) or value.__spec__ is None:
        return None
    return value.__name__


def _is_module(path: str) -> bool:
    return any(_is_module_path(root, path) for root in (V1, V2))


def _is_module_path(root: str, path: str) -> bool:
    return isinstance(_found(root, path), ModuleType)


def _is_open(value: Any) -> bool:
    """Whether objects of this kind may have attributes that nobody knows before."""
    return not isinstance(value, ModuleType | type)


def _known_part(root: str, path: str) -> str:
    """The longest part of a path that is there; all of it where the rest are attributes of
    something that is neither a module nor a class."""
    for part in _prefixes(path):
        value = _found(root, part)
        if value is not _NOTHING:
            return path if _is_open(value) else part
    return ""


def _has_newer_name(path: str) -> bool:
    """Whether programs of today call it otherwise, although the old name may be there, too."""
    return path.startswith("compat.v2.") or any(p in old_names.NAMES for p in _prefixes(path))


@functools.cache
def _new_path(root: str, path: str) -> str | None:
    """Where treadle has what TensorFlow calls by a path; None where it has not."""
    if path.startswith("compat.v2.") and root == V2:
        return _new_path(root, path.removeprefix("compat.v2."))
    for part in _prefixes(path):
        new = old_names.NAMES.get(part)
        if new is not None and _has(root, new + path[len(part) :]):
            return new + path[len(part) :]
    if path not in old_names.NAMES and _has(root, path):
        return path
    first, _, last = path.rpartition(".")
    if not first and last:  # such as FixedLenFeature, which is in tf.io now
        for module in ("math", "linalg", "io", "strings", "nn", "image", "random", "debugging"):
            if _has(root, f"{module}.{last}"):
                return f"{module}.{last}"
    module = first.rpartition(".")[2]
    if first.startswith("contrib.") and _has(root, f"{module}.{last}") and module not in (
        "layers", "losses", "metrics", "data", "seq2seq",  # whose functions have other arguments
    ):  # fmt: skip
        return f"{module}.{last}"
    return None


def _why_missing(root: str, path: str) -> str:
    """What treadle says of a name that it has not."""
    value: Any = importlib.import_module(root)
    for name in path.split("."):
        try:
            value = getattr(value, name)
        except (AttributeError, ImportError) as error:
            return str(error).partition(". ")[0]
    return f"{root}.{path} is no public name"


def _advice(path: str) -> str:
    """What to do instead of a name."""
    path = path.removeprefix("tensorflow.")
    package = next((p for p in old_names.PACKAGES if f"tensorflow.{path}".startswith(p)), None)
    if package is not None:
        return old_names.PACKAGES[package]
    path = _public(path)
    for root in (V1, V2):
        value: Any = importlib.import_module(root)
        for name in path.split("."):
            try:
                value = getattr(value, name)
            except (AttributeError, ImportError) as error:
                advice = str(error).partition(". ")[2]
                if advice and not advice.startswith("If it is TensorFlow's"):
                    return advice
                break
    return "docs/api.md lists the names"


@functools.cache
def _arguments(function: Any) -> tuple[str, ...] | None:
    """The names of a function's arguments; None where it takes any, or nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return tuple(p.name for p in parameters if p.kind is not p.VAR_POSITIONAL)
