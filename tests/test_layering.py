"""The import arrows of docs/architecture.md, function-local imports counted too."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
PACKAGE = SRC / "treadle"

# What each internal package may import, besides itself.
FRONT = {"core", "kernel", "ops", "graph"}
ALLOWED = {
    "core": set(),
    "kernel": {"core"},
    "ops": {"core", "kernel"},
    "graph": {"core", "kernel", "ops"},
    "autodiff": FRONT,
    "autograph": FRONT,
    "runtime": FRONT,
    "tracing": FRONT | {"autodiff", "autograph", "runtime"},
    "jitted": FRONT | {"autodiff", "autograph", "runtime", "tracing"},
}
# Third-party packages that cost time or may be missing, and who may import them.
OWNERS = {
    "llvmlite": {"runtime"},
    "cupy": {"runtime"},
    "gast": {"autograph"},
    "rich": {"cli", "bench"},
    "matplotlib": {"cli", "bench"},
}
FREE = {"version"}  # plain data, for everybody
FACADES = {"config"}  # packages of public names


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """Every (absolute module name, line) that a file imports, wherever in the file."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base]) if base else ".".join(up)
            # `from treadle import x` names a module or a public function: the longer name decides.
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), node.lineno


def layer(module: str) -> str:
    """The package directly under treadle that a module is in ("" for treadle itself)."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def is_facade(module: str) -> bool:
    """treadle/__init__.py, the single files beside it and `FACADES`: the public names."""
    single = (PACKAGE / f"{layer(module)}.py").exists()
    return module.count(".") == 0 or single or layer(module) in FACADES


def fault(module: str, name: str) -> str | None:
    """Why `module` may not import `name`, or None when it may."""
    here, top = layer(module), name.split(".")[0]
    if top in OWNERS and here not in OWNERS[top]:
        return f"{top} may be imported only in {sorted(OWNERS[top])}"
    if top != "treadle" or is_facade(module) or layer(name) in FREE | {here}:
        return None
    if here in ALLOWED:
        return None if layer(name) in ALLOWED[here] else f"{here} may not know {name}"
    return f"{here} uses only the public API" if layer(name) in ALLOWED else None


FILES = list(modules())


@pytest.mark.parametrize(("module", "path"), FILES, ids=[name for name, _ in FILES])
def test_arrows(module: str, path: Path) -> None:
    wrong = [
        f"{path.relative_to(SRC)}:{line} imports {name}: {why}"
        for name, line in imported(module, path)
        if (why := fault(module, name))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        ("treadle.core.tensor", "treadle.ops.registry", True),
        ("treadle.core.tensor", "treadle.constant", True),
        ("treadle.core.tensor", "treadle.core.dtypes", False),
        ("treadle.core.tensor", "numpy", False),
        ("treadle.kernel.nest", "treadle.graph.ir", True),
        ("treadle.graph.ir", "treadle.ops.registry", False),
        ("treadle.runtime.cpu.emit", "treadle.tracing.cache", True),
        ("treadle.runtime.cpu.emit", "llvmlite.ir", False),
        ("treadle.graph.ir", "llvmlite.ir", True),
        ("treadle.tracing.function", "treadle.runtime.compile", False),
        ("treadle.autograph.parser", "gast", False),
        ("treadle.autograph.parser", "treadle.autodiff.tape", True),
        ("treadle.cli.demo", "treadle.graph.ir", True),
        ("treadle.cli.demo", "treadle.keras", False),
        ("treadle.cli.demo", "treadle", False),
        ("treadle", "treadle.core.tensor", False),
        ("treadle.core.version_check", "treadle.version", False),
    ],
)
def test_the_rule_itself(module: str, name: str, wrong: bool) -> None:
    assert bool(fault(module, name)) == wrong


def test_relative_and_local_imports_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "from ..ops import registry\n"
        "def f():\n    from . import nest\n    import treadle.graph\n"
        "    importlib.import_module('treadle.runtime')\n"
    )
    assert [name for name, _ in imported("treadle.core.x", file)] == [
        "treadle.ops.registry", "treadle.core.nest", "treadle.graph", "treadle.runtime",
    ]  # fmt: skip


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SRC), "PATH": ""},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy() -> None:
    heavy = {"llvmlite", "cupy", "gast", "rich", "matplotlib", "scipy", "unittest", "asyncio"}
    loaded = set(python("import sys, treadle; print(*sys.modules)").split())
    assert not heavy & loaded
