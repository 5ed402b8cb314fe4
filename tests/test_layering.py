"""The import arrows of docs/architecture.md, function-local imports counted too.

Packages may import those below them (`ALLOWED`), folders and files those below them in their
package (`LEVELS`), and no modules import one another in a circle. Imports stand at the top of a
file; those in a function are listed with a reason (`ON_DEMAND`).
"""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from treadle.core.sources import BELOW

SRC = Path(__file__).parent.parent / "src"
PACKAGE = SRC / "treadle"

# What each internal package may import, besides itself.
FRONT = {"core", "kernel", "ops", "graph"}
ALLOWED = {
    "core": set(),
    "kernel": {"core"},
    "ops": {"core", "kernel"},
    "numpy_staging": {"core", "kernel", "ops"},
    "signal": {"core", "names", "ops", "numpy_staging"},
    "image": {"core", "names", "ops"},
    "linear_operators": {"core", "names", "ops"},
    "sparse": {"core", "names", "ops"},
    "ragged": {"core", "names", "ops", "sparse"},
    "graph": {"core", "kernel", "ops"},
    "autodiff": FRONT,
    "autograph": FRONT,
    "runtime": FRONT,
    "tracing": FRONT | {"autodiff", "autograph", "runtime"},
    "jitted": FRONT | {"numpy_staging", "autodiff", "autograph", "runtime", "tracing"},
}
# Third-party packages that cost time or may be missing, and who may import them.
OWNERS = {
    "llvmlite": {"runtime.cpu"},
    "cupy": {"runtime"},
    "cudnn": {"runtime"},
    "onnx": {"onnx.messages"},
    "gast": {"autograph"},
    "rich": {"cli", "bench", "keras.models.summary"},
    "matplotlib": {"cli", "bench", "keras.visualization.galleries"},
    "h5py": {"keras.models.weight_files"},
    "PIL": {
        "ops.image.codecs", "keras.utils.images", "keras.preprocessing.transforms",
        "keras.visualization.drawing",
    },
    "mpi4py": {"distribute.mpi"},
    "tensorboard": {"summary.messages"},
    "pydot": {"keras.models.plotting"},
    "scipy": {"keras.initializers", "keras.preprocessing.transforms"},
    "sklearn": {"keras.wrappers"},
}
# Packages of one kind of device, and who beside their own modules may import them: what chooses a
# device, what calls its programs from Python without the compiler's help, and its settings.
DEVICES = {
    "runtime.cpu": {
        "config.threading",
        "jitted.function",
        "jitted.native_plans",
        "jitted.plan_table",
        "machine",
        "runtime.devices",
        "runtime.standalone",
        "shared_object.building",
        "shared_object.exporting",
        "shared_object.source",
        "tracing.function",
        "tracing.native_plans",
        "tuner",
    },
    "runtime.gpu": {"runtime.device_setup", "runtime.devices", "sysconfig", "test"},
}
FREE = {"version"}  # plain data, for everybody
# Packages of public names.
FACADES = {
    "compat", "config", "distribute", "experimental", "io", "lookup", "math", "nn",
    "onnx", "profiler", "random", "saved_model", "shared_object", "summary", "test", "train",
    "types",
}  # fmt: skip

# The folders and files of packages that have folders, from the lowest level up. They import what is
# below them and on their own level. Packages without folders need no levels.
LEVELS = {
    "compat": (
        "corner_sampling graph_messages older_arguments operation_forms python_values salted_seeds"
        " v2",
        "tensorflow_ops tensorflow_state",
        "graph_nodes operation_calls tensorflow_gradients tensorflow_kernels tensorflow_lists"
        " tensorflow_recurrence tensorflow_sparse",
        "tensorflow_types",
        "v1",
        "replacement",
    ),
    "saved_model": (
        "assets files options",
        "composites",
        "functions objects",
        "signatures",
        "loaded",
        "tensorflow",
        "loading saving",
    ),
    "experimental": ("dlpack extension_type numpy",),
    "ops": (
        "composed lowering properties quiet sizes tensorflow_names variable_creation",
        "known_values",
        "registry",
        "conversion",
        "broadcasting complex_pairs indexed_slices requirements scalars",
        "op_makers",
        "control elementwise",
        "axes dims",
        "shaping",
        "numbers reductions",
        "indexing special",
        "collections linalg state statistics strings",
        "complex_parts python_functions random type_specs variable_casts",
        "nn",
        "image",
        "asserts batching printing",
        "operators",
        "loading",
        "onnx",
    ),
    "graph": (
        "ir names operations tokens literals builder replay rewrite trip_count integers printer"
        " parser verifier",
        "families vectorized",
        "pipeline",
        "passes",
        "partition",
    ),
    "autograph": (
        "config errors logs memory names sources shell_history unparsing"
        " loop_notes loop_options facts template",
        "analysis",
        "build generated parsing checks comments line_numbers printing resolution stored",
        "converters",
        "conversion",
        "twins",
        "operators",
        "experimental api",
    ),
    "runtime": (
        "backend collections_paused collectives graph_key mechanisms options precedence precision"
        " roles routines scope step_times symbols tuning variable_order",
        "bounds interpreter signature",
        "executable fusion",
        "reach",
        "schedule",
        "memory passes verify_operands",
        "exhausted planned verify_bounds verify_residence",
        "callbacks",
        "cpu gpu",
        "devices device_setup",
        "exclusive stored",
        "compiler",
        "passed_lists standalone words",
    ),
    "data": (
        "elements rows options seeds",
        "stages",
        "iterator graph",
        "dataset",
        "databases files lookups",
        "tables",
        "experimental",
    ),
    "keras": (
        "attachments",
        "float8 lambdas learning_phase masks naming progress replicas sparse stateless tree",
        "config logits serialization",
        "promotion",
        "quantizers rematerialization",
        "dtype_policies random",
        "activations constraints datasets initializers regularizers utils",
        "top_level_initializers",
        "losses preprocessing variables visualization",
        "metrics",
        "layers",
        "ops optimizers",
        "callbacks",
        "backend_elements backend_networks mixed_precision models",
        "applications backend distillation distribution export legacy saving wrappers",
    ),
}

# Imports inside of functions: what few programs need is loaded when they need it, so that
# `import treadle` and a first call stay fast. (`treadle`, `treadle.autodiff` and
# `treadle.autograph.operators` load the modules of some of their names on demand as well.)
GAST = "loads gast"
START = "import treadle does without it"
FOUND = "programs that are found on disk do without it"
FEW = "few programs need it"
LONG = "functions whose loops are short do without it"
LLVM = "loads llvmlite, or writes code that is found on disk"
ON_DEMAND = {
    ("autodiff.control_flow", "autodiff.cond"): START,
    ("autodiff.control_flow", "autodiff.loop"): START,
    ("autodiff.tape", "autodiff.jacobian"): START,
    ("autograph.api", "autograph.twins"): START,
    ("autograph.conversion", "autograph.converters.optional"): "td.function does without it",
    ("autograph.experimental", "autograph.operators.lists"): START,
    ("autograph.operators.calls", "autograph.analysis.effects"): START,
    ("autograph.operators.calls", "autograph.twins"): START,
    ("autograph.operators.python_loops", "autograph.operators.rolled_items"): LONG,
    ("autograph.operators.python_loops", "autograph.operators.rolling"): LONG,
    ("autograph.twins", "autograph.conversion"): GAST,
    ("compat.replacement.finder", "compat.v1.values"): "few libraries use TensorFlow 1's names",
    ("compat.replacement.private", "compat.v1"): "few libraries use TensorFlow 1's names",
    ("graph.passes", "graph.passes.lists"): "graphs without lists do without it",
    ("graph.passes", "graph.passes.loops"): "graphs without loops do without it",
    ("graph.passes", "ops.complex_parts"): "graphs of real numbers do without it",
    ("graph.pipeline", "graph.verifier"): "graphs are verified only where TREADLE_VERIFY asks",
    ("jitted.namespace", "ops.special.gamma"): FEW,
    ("keras.models.model", "keras.models.summary"): "loads rich",
    ("names", "numpy_staging.functions"): START,
    ("numpy_staging.protocols", "numpy_staging.staging"): START,
    ("numpy_staging.protocols", "numpy_staging.ufuncs"): START,
    ("numpy_staging.protocols", "ops.numbers.tabulated"): START,
    ("numpy_staging.tensor_methods", "numpy_staging.functions"): START,
    ("runtime", "runtime.compiler"): FOUND,
    ("runtime", "runtime.devices"): START,
    ("runtime", "runtime.executable"): START,
    ("runtime", "runtime.options"): START,
    ("runtime", "runtime.schedule.facts"): START,
    ("runtime", "runtime.stored"): START,
    ("runtime", "runtime.passed_lists"): START,
    ("runtime", "runtime.words"): START,
    ("io.messages", "compat.graph_messages"): FEW,
    ("io.tensor_protos", "compat.graph_messages"): FEW,
    ("runtime.callbacks", "kernel.reference"): FEW,
    ("runtime.device_setup", "runtime.gpu.devices"): FEW,
    ("runtime.callbacks", "runtime.interpreter"): FEW,
    ("runtime.compiler", "runtime.verify_bounds"): "only where TREADLE_VERIFY asks",
    ("runtime.compiler", "runtime.verify_residence"): "only where TREADLE_VERIFY asks",
    ("runtime.cpu.backend", "runtime.cpu.build_program"): FOUND,
    ("runtime.cpu.backend", "runtime.cpu.compiled_ahead"): START,
    ("runtime.cpu.backend", "runtime.cpu.eager_routines"): START,
    ("runtime.cpu.backend", "runtime.cpu.facts"): FOUND,
    ("runtime.cpu.backend", "runtime.cpu.stored_program"): START,
    ("runtime.cpu.dispatch", "runtime.cpu.dispatch.eager"): START,
    ("runtime.cpu.dispatch.eager", "runtime.cpu.dispatch.eager_code"): LLVM,
    ("runtime.cpu.dispatch.eager", "runtime.cpu.jit"): LLVM,
    ("runtime.cpu.dispatch.eager", "runtime.cpu.target"): LLVM,
    ("runtime.cpu.dispatch.native_type", "runtime.cpu.dispatch.trampoline"): LLVM,
    ("runtime.cpu.dispatch.native_type", "runtime.cpu.jit"): LLVM,
    ("runtime.cpu.dispatch.native_type", "runtime.cpu.target"): LLVM,
    ("runtime.cpu.dispatch.self_check", "runtime.cpu.jit"): LLVM,
    ("runtime.cpu.build_program", "runtime.cpu.library"): FEW,
    ("runtime.cpu.build_program", "runtime.cpu.program_times"): FEW,
    ("runtime.cpu.chosen", "runtime.cpu.convolution.classes"): FEW,
    ("runtime.cpu.compiled_ahead", "runtime.cpu.library"): FEW,
    ("runtime.cpu.compiled_ahead", "runtime.cpu.routines.entry"): FEW,
    ("runtime.cpu.compiled_ahead", "runtime.cpu.library_code"): LLVM,
    ("runtime.cpu.elements", "runtime.cpu.vector_math"): FEW,
    ("runtime.cpu.facts", "runtime.cpu.library"): FEW,
    ("runtime.cpu.facts", "runtime.cpu.library_code"): LLVM,
    ("runtime.cpu.facts", "runtime.cpu.nest.shape"): FEW,
    ("runtime.cpu.facts", "runtime.cpu.rows"): FEW,
    ("runtime.cpu.kept_memory", "runtime.cpu.jit"): LLVM,
    ("runtime.cpu.kept_memory", "runtime.cpu.kept_memory_code"): LLVM,
    ("runtime.cpu.kept_memory", "runtime.cpu.target"): LLVM,
    ("runtime.cpu.learning", "runtime.cpu.chosen"): LLVM,
    ("runtime.cpu.learning", "runtime.cpu.measuring"): LLVM,
    ("runtime.cpu.learning", "runtime.cpu.target"): FEW,
    ("runtime.cpu.learning", "runtime.cpu.trials"): LLVM,
    ("runtime.cpu.learning", "runtime.cpu.winners"): FEW,
    ("runtime.cpu.library_code", "runtime.cpu.collective_text"): FEW,
    ("runtime.cpu.library_code", "runtime.cpu.convolution.routines"): FEW,
    ("runtime.cpu.library_code", "runtime.cpu.depthwise.routines"): FEW,
    ("runtime.cpu.library_code", "runtime.cpu.llvm_text"): LLVM,
    ("runtime.cpu.library_code", "runtime.cpu.matmul.packing"): LLVM,
    ("runtime.cpu.library_code", "runtime.cpu.matmul.routine"): LLVM,
    ("runtime.cpu.library_code", "runtime.cpu.routines.entry"): FEW,
    ("runtime.cpu.library_text", "runtime.cpu.library_share"): LLVM,
    ("runtime.cpu.library_text", "runtime.cpu.program_layout"): LLVM,
    ("runtime.cpu.matmul.packing", "runtime.cpu.matmul.amx"): FEW,
    ("runtime.cpu.matmul.packing", "runtime.cpu.matmul.byte_packing"): FEW,
    ("runtime.cpu.matmul.tile_text", "runtime.cpu.matmul.byte_tiles"): FEW,
    ("runtime.cpu.matmul.tile_text", "runtime.cpu.matmul.dots"): FEW,
    ("runtime.cpu.matmul.tile_text", "runtime.cpu.matmul.amx"): FEW,
    ("runtime.cpu.nest.kernel", "runtime.cpu.nest.scans"): FEW,
    ("runtime.cpu.program_carried", "runtime.cpu.ragged_memory"): FEW,
    ("runtime.cpu.program_control", "runtime.cpu.ragged_memory"): FEW,
    ("runtime.cpu.program_control", "runtime.cpu.row_loops"): FEW,
    ("runtime.cpu.program_control", "runtime.cpu.joint_iterations"): FEW,
    ("runtime.cpu.program_control", "runtime.cpu.strips"): FEW,
    ("runtime.cpu.program_emitters", "runtime.cpu.program_control"): FEW,
    ("runtime.cpu.program_emitters", "runtime.cpu.program_library"): FEW,
    ("runtime.cpu.program_emitters", "runtime.cpu.program_loops"): FEW,
    ("runtime.cpu.program_emitters", "runtime.cpu.program_python"): FEW,
    ("runtime.cpu.program_emitters", "runtime.cpu.program_ragged"): FEW,
    ("runtime.cpu.library", "runtime.cpu.convolution.classes"): FEW,
    ("runtime.cpu.library", "runtime.cpu.convolution.forms"): FEW,
    ("runtime.cpu.library", "runtime.cpu.convolution.tiling"): FEW,
    ("runtime.cpu.library", "runtime.cpu.depthwise.tiling"): FEW,
    ("runtime.cpu.library", "runtime.cpu.routines.compiler"): LLVM,
    ("runtime.cpu.library", "runtime.cpu.routines.entry"): FEW,
    ("runtime.cpu.routines.entry", "runtime.cpu.routines.compiler"): LLVM,
    ("runtime.cpu.rows", "runtime.cpu.library"): FEW,
    ("runtime.cpu.rows", "runtime.cpu.library_code"): LLVM,
    ("runtime.cpu.rows", "runtime.cpu.matmul.tiles"): FEW,
    ("runtime.cpu.state_words", "runtime.cpu.library_code"): LLVM,
    ("runtime.cpu.threads", "runtime.cpu.pool_code"): LLVM,
    ("runtime.schedule.region", "runtime.schedule.control"): FEW,
    ("runtime.devices", "runtime.cpu.backend"): START,
    ("runtime.devices", "runtime.gpu.backend"): START,
    ("runtime.devices", "runtime.gpu.exchange"): FEW,
    ("runtime.passes", "runtime.passes.loops"): "graphs without loops do without it",
    ("runtime.schedule.status", "runtime.interpreter"): FEW,
    ("saved_model.loading", "saved_model.tensorflow.loading"): FEW,
    ("tracing.decorator", "tracing.composed_calls"): START,
    ("tracing.placement", "tracing.eager_programs"): FEW,
    ("tracing.placement", "tracing.large_operations"): START,
    ("runtime.exclusive", "ops.control.critical_sections"): FEW,
    ("runtime.executable", "runtime.interpreter"): FEW,
    ("tracing.concrete", "tracing.gradient"): START,
    ("tracing.concrete", "tracing.replicated"): FEW,
    ("tracing.programs", "graph.families"): FEW,
    ("tracing.programs", "graph.passes.assumed_sizes"): FOUND,
    ("tracing.programs", "graph.families.generalize"): FEW,
    ("tracing.programs", "runtime.schedule.facts"): START,
    ("tracing.function", "tracing.native_plans"): START,
    ("tracing.python_effects", "autograph.parsing"): GAST,
    ("tracing.trace", "runtime.interpreter"): START,
    ("tracing.trace", "tracing.late_calls"): FEW,
}

# The same of other libraries that cost time.
LIBRARIES = {
    ("autograph.build", "json"): "for texts with quotes",
    ("autograph.logs", "logging"): "where something is logged",
    ("cli.bench", "matplotlib.figure"): "for a picture",
    ("core.dtypes", "ml_dtypes"): "takes a quarter of importing treadle, for bfloat16 only",
    ("distribute.mpi", "mpi4py"): "may be missing, and few programs need it",
    ("keras.initializers", "scipy.signal"): "may be missing, and few programs need it",
    ("keras.models.plotting", "pydot"): "may be missing, and few programs need it",
    ("keras.models.weight_files", "h5py"): "may be missing, and few programs need it",
    ("keras.preprocessing.transforms", "PIL"): "may be missing, and few programs need it",
    ("keras.preprocessing.transforms", "scipy"): "may be missing, and few programs need it",
    ("keras.utils.images", "PIL"): "may be missing, and few programs need it",
    ("keras.visualization.drawing", "PIL"): "may be missing, and few programs need it",
    ("keras.visualization.galleries", "matplotlib.pyplot"): "may be missing, and few programs "
    "need it",
    ("names", "difflib"): "for the text of an error",
    ("onnx.messages", "onnx"): "may be missing, and few programs need it",
    ("numpy_staging.staging", "difflib"): "for the text of an error",
    ("runtime.cpu.caches", "subprocess"): "macOS only",
    ("runtime.cpu.target", "llvmlite.binding"): LLVM,
    ("treadle", "logging"): "for td.get_logger",
}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


class Import(NamedTuple):
    """An import of a file.

    Attributes:
        name: the absolute name of the module, or of something in it.
        node: the statement, or a call of ``import_module``.
        inside: whether it is in a function.
        is_executed: otherwise it is for type checkers.
    """

    name: str
    line: int
    node: ast.AST
    inside: bool
    is_executed: bool


@cache
def imports_in(module: str, path: Path) -> list[Import]:
    """The imports of a file, wherever in the file."""
    return [
        Import(name, line, node, inside, is_executed)
        for node, inside, is_executed in walked(ast.parse(path.read_text()))
        if isinstance(node, IMPORTING)
        for name, line in imports_of(module, path, node)
    ]


IMPORTING = (ast.Import, ast.ImportFrom, ast.Call)  # what `imports_of` looks at


def imports_of(module: str, path: Path, node: ast.AST) -> Iterator[tuple[str, int]]:
    """Every (absolute module name, line) that a statement or a call imports."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    if isinstance(node, ast.Import):
        yield from ((alias.name, node.lineno) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            up = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*up, base]) if base else ".".join(up)
        # `from treadle import x` names a module or a public function: the longer name decides.
        yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
    elif isinstance(node, ast.Call) and _last_name(node.func).endswith("import_module"):
        for argument in node.args[:1]:
            if isinstance(argument, ast.Constant):
                yield str(argument.value), node.lineno


def _last_name(node: ast.AST) -> str:
    """The name at the end of ``a`` or ``x.a``; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def layer(module: str) -> str:
    """The package directly under treadle that a module is in ("" for treadle itself)."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def is_facade(module: str) -> bool:
    """treadle/__init__.py, the single files beside it and `FACADES`: the public names."""
    single = (PACKAGE / f"{layer(module)}.py").exists()
    return module.count(".") == 0 or single or layer(module) in FACADES


def inner(module: str) -> str:
    """A module's name without treadle."""
    return module.removeprefix("treadle.")


def is_in(package: str, module: str) -> bool:
    return f"{inner(module)}.".startswith(f"{package}.")


def fault(module: str, name: str) -> str | None:
    """Why `module` may not import `name`, or None when it may."""
    here, top = layer(module), name.split(".")[0]
    if top in OWNERS and not any(is_in(owner, module) for owner in OWNERS[top]):
        return f"{top} may be imported only in {sorted(OWNERS[top])}"
    for device, users in DEVICES.items():
        if is_in(device, name) and not is_in(device, module) and inner(module) not in users:
            return f"{device} may be imported only in {sorted(users)}"
    if top != "treadle" or is_facade(module) or layer(name) in FREE | {here}:
        return None
    if here in ALLOWED:
        return None if layer(name) in ALLOWED[here] else f"{here} may not know {name}"
    return f"{here} uses only the public API" if layer(name) in ALLOWED else None


FILES = list(modules())
PATHS = dict(FILES)


def walked(tree: ast.AST) -> Iterator[tuple[ast.AST, bool, bool]]:
    """The nodes of a file but its leaves, whether each is inside a function, and whether it is
    executed: what is for type checkers is not."""
    waiting = [(tree, False, True)]
    while waiting:
        node, inside, is_executed = waiting.pop()
        otherwise: list[ast.stmt] = []
        if isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            otherwise = node.orelse
            waiting += [(child, inside, is_executed) for child in otherwise]
            is_executed = False
        yield node, inside, is_executed
        inside = inside or isinstance(node, FUNCTIONS)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, LEAVES) and child not in otherwise:
                waiting.append((child, inside, is_executed))


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Nodes without any below them, which are more than half of all.
LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)


def _is_for_type_checkers(test: ast.expr) -> bool:
    """Whether the condition of an `if` asks for them. (Its text would take long to write for each
    `if` of 1,500 files.)"""
    return any(_last_name(node) == "TYPE_CHECKING" for node in ast.walk(test))


@cache
def edges() -> dict[str, dict[str, bool]]:
    """For each module the modules of treadle that it imports, and whether only in functions."""
    found: dict[str, dict[str, bool]] = {module: {} for module in PATHS}
    for module, path in FILES:
        for name, _, _, inside, is_executed in imports_in(module, path):
            target = name if name in PATHS else name.rpartition(".")[0]
            on_demand = inside and module == "treadle"  # public names, when they are asked for
            if is_executed and target in PATHS and target != module and not on_demand:
                found[module][target] = inside and found[module].get(target, True)
    return found


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The greatest sets of modules each of which reaches all others of its set."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, waiting = set[str](), [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    found = (frozenset(n for n in reached[m] if m in reached[n]) for m in graph)
    return {circle for circle in found if len(circle) > 1}


def shown(names: Iterable[str]) -> str:
    return " ".join(sorted(name.removeprefix("treadle.") for name in names))


def test_no_circles() -> None:
    found = circles({module: set(targets) for module, targets in edges().items()})
    assert not found, f"modules import one another in circles: {[shown(c) for c in found]}"


def test_imports_in_functions_are_listed() -> None:
    found = {
        (module, target)
        for module, targets in edges().items()
        for target, inside in targets.items()
        if inside
    }
    listed = {(f"treadle.{a}", f"treadle.{b}") for a, b in ON_DEMAND}
    assert not found - listed, f"imports that should stand at the top: {found - listed}"
    assert not listed - found, f"ON_DEMAND names what is not there: {listed - found}"


def test_libraries_imported_in_functions_are_listed() -> None:
    found = {
        (inner(module), name if isinstance(node, ast.Import) else name.rpartition(".")[0])
        for module, path in FILES
        for name, _, node, inside, is_executed in imports_in(module, path)
        if inside and is_executed and isinstance(node, ast.Import | ast.ImportFrom)
        if name.split(".")[0] != "treadle"
    }
    assert found == set(LIBRARIES)


def test_names_on_disk_tell_all_that_code_depends_on() -> None:
    assert {name: set(below) for name, below in BELOW.items()} == {
        name: ALLOWED[name] for name in BELOW
    }


def rank(package: str, module: str) -> int:
    """The level of a module in its package; the package itself is above all."""
    parts = module.split(".")
    levels = [names.split() for names in LEVELS[package]]
    if len(parts) == 2:
        return len(levels)
    return next(n for n, names in enumerate(levels) if parts[2] in names)


@pytest.mark.parametrize("package", LEVELS)
def test_levels(package: str) -> None:
    own = {module for module in PATHS if layer(module) == package}
    listed = {name for names in LEVELS[package] for name in names.split()}
    assert listed == {module.split(".")[2] for module in own if module.count(".") > 1}
    wrong = [
        f"{module} imports {target}, which is above it"
        for module in own
        for target in own & edges()[module].keys()
        if rank(package, target) > rank(package, module)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_with_folders_has_levels() -> None:
    folders = {m.split(".")[1] for m, p in FILES if m.count(".") == 2 and p.name == "__init__.py"}
    assert folders <= {*LEVELS}


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "e"}}
    assert circles(graph) == {frozenset("bc")}


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    text = (
        "if TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
        "def f():\n    import c\n    return lambda: d\nclass C:\n    import e\n"
    )
    found = {
        node.names[0].name: inside
        for node, inside, is_executed in walked(ast.parse(text))
        if is_executed and isinstance(node, ast.Import)
    }
    assert found == {"b": False, "c": True, "e": False}


def test_arrows() -> None:
    wrong = [
        f"{path.relative_to(SRC)}:{line} imports {name}: {why}"
        for module, path in FILES
        for name, line, *_ in imports_in(module, path)
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
        ("treadle.runtime.compiler", "llvmlite.ir", True),
        ("treadle.runtime.compiler", "treadle.runtime.cpu.native", True),
        ("treadle.runtime.compiler", "treadle.runtime.devices.backend", False),
        ("treadle.runtime.devices", "treadle.runtime.cpu.backend.cpu", False),
        ("treadle.runtime.cpu.backend", "treadle.runtime.cpu.native", False),
        ("treadle.cli.demo", "treadle.runtime.cpu", True),
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
    assert sorted(found.name for found in imports_in("treadle.core.x", file)) == [
        "treadle.core.nest", "treadle.graph", "treadle.ops.registry", "treadle.runtime",
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


def tables_of_names(tree: ast.AST) -> Iterator[dict[str, tuple[str, str]]]:
    """For each table that a module gives `names.provided`: name -> module, name there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "provided":
            places: dict[str, str] = ast.literal_eval(node.args[1])
            entries = [
                (place, *e.partition("=")) for place, text in places.items() for e in text.split()
            ]
            yield {name: (place, there or name) for place, name, _, there in entries}


# Public names whose types are not worth an import for type checkers: other names of Keras's, and of
# TensorFlow 1's.
UNTYPED = {
    "treadle": set(
        "Graph constant_initializer initializers losses metrics ones_initializer optimizers"
        " random_normal_initializer random_uniform_initializer zeros_initializer".split()
    )
}


WITH_TABLES = [(module, path) for module, path in FILES if "provided" in path.read_text()]


@pytest.mark.parametrize(("module", "path"), WITH_TABLES, ids=[name for name, _ in WITH_TABLES])
def test_names_on_demand_are_those_that_type_checkers_see(module: str, path: Path) -> None:
    tree = ast.parse(path.read_text())
    for table in tables_of_names(tree):
        seen = {
            alias.asname or alias.name: (node.module, alias.name)
            for node, inside, is_executed in walked(tree)
            if isinstance(node, ast.ImportFrom) and not inside and not is_executed
            for alias in node.names
        }
        assert {name for name in table if name not in seen} == UNTYPED.get(module, set())
        assert {name: place for name, place in table.items() if name in seen} == seen
        for name in table:
            assert getattr(importlib.import_module(module), name) is not None


def test_numpy_is_imported_before_treadle() -> None:
    names = python("import sys, treadle; print(*sys.modules)").split()
    own = [name for name in names if name.startswith("treadle.")]
    assert names.index("numpy.linalg") < names.index(own[0])


# -- buffers of tensors --------------------------------------------------------------------------

# Only the storage of a tensor's device knows what its buffer is. Others pass buffers on with
# `core.tensor.buffer_of` and `from_buffer`, or ask for the elements (`numpy()`, `_numpy()`).
READ_BUFFERS = {
    "core.host_storage": "the host's storage: a variable's buffer is an array",
    "core.tensor": "tensors of exactly this class are on the host; its functions serve the others",
    "ops.indexing.basic": "a part of a tensor on the host is NumPy's view",
    "ops.operators": "operators of two tensors on the host call NumPy",
    "ops.registry": "`run` gives the arrays of tensors on the host to NumPy implementations",
    "ops.state": "variables pass their buffers to the storage of their device",
    "runtime.cpu": "programs of the processor read and write arrays",
    "runtime.gpu.memory": "the storage of GPUs counts who holds a variable's buffer",
    "tracing.python_plans": "generated calls make tensors of the class of the graph's device",
    "tracing.native_plans": "plans for programs of the processor keep arrays of variables",
}


def test_who_reads_buffers() -> None:
    readers = {
        inner(module) for module, path in FILES if re.search(r"[.\"]_buffer\b", path.read_text())
    }
    wrong = {m for m in readers if not any(is_in(allowed, m) for allowed in READ_BUFFERS)}
    assert not wrong, f"modules that read the buffers of tensors: {sorted(wrong)}"
    unused = {a for a in READ_BUFFERS if not any(is_in(a, module) for module in readers)}
    assert not unused, f"READ_BUFFERS names modules that do not: {sorted(unused)}"


# -- names of ops --------------------------------------------------------------------------------

# Outside `ops`, what is known of an op is asked of its record. Text that is printed may name it,
# and so may a parser that looks it up in the registry.
KNOWS_RECORDS = ("core", "kernel", "graph", "autodiff", "autograph", "runtime", "tracing")


@cache
def all_ops() -> set[str]:
    """The names of the library's own ops: tests register further ones."""
    load = "from treadle.ops.loading import load_all_ops; load_all_ops()"
    registry = "from treadle.ops.registry import OPS"
    return set(python(f"import treadle; {load}; {registry}; print(*OPS)").split())


@cache
def other_words() -> set[str]:
    """Names of ops that mean something else in those packages."""
    from treadle.kernel.functions import FUNCTIONS
    from treadle.kernel.ir import REDUCTIONS
    from treadle.ops.loading import load_all_ops
    from treadle.ops.lowering import Kind, Library
    from treadle.ops.registry import OPS

    load_all_ops()
    routines = {op.lower.name for op in OPS.values() if isinstance(op.lower, Library)}
    attributes = {"shape", "index", "dim"}
    kinds = {"element"}  # of parts of arrays, and of the places of rank-0 values
    python = {"range", "print", "cond", "while", "assert", "raise", "reverse", "fill", "sort"}
    public = {"custom_gradient"}
    others = {*attributes, *kinds, *python, *public}
    return {*FUNCTIONS, *REDUCTIONS, *routines, *get_args(Kind), *others}


def names_of_ops(tree: ast.AST, names: set[str]) -> Iterator[tuple[int, str]]:
    """(line, code) where a name of an op decides something: it is compared, looked up, kept, a key
    of a table."""
    for node in ast.walk(tree):
        if isinstance(node, LEAVES):
            continue
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            asked = [node.slice]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            asked = [node.value] if node.value is not None else []
        elif isinstance(node, ast.Match):
            asked = [node.subject]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = [node.func.value, *(node.args if node.func.attr == "get" else ())]
        else:
            asked = []
        asked += [e for a in asked if isinstance(a, ast.Tuple | ast.List) for e in a.elts]
        if any(_is_name_of_op(a) for a in asked):
            yield node.lineno, ast.unparse(node)
        elif any(word in names for word in _table_words(node)):
            yield node.lineno, ast.unparse(node)


def _is_name_of_op(node: ast.AST) -> bool:
    """Whether an expression is ``op.name``, of any op."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    return ast.unparse(node.value).rpartition(".")[2] == "op"


def _table_words(node: ast.AST) -> list[str]:
    """The strings that something is compared with, and those that are keys."""
    found: list[ast.AST | None] = []
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        found += sides
        found += [e for s in sides if isinstance(s, ast.Tuple | ast.List | ast.Set) for e in s.elts]
    elif isinstance(node, ast.Dict):
        found += node.keys
    elif isinstance(node, ast.Set):
        found += node.elts
    elif isinstance(node, ast.MatchValue):
        found.append(node.value)
    return [e.value for e in found if isinstance(e, ast.Constant) and isinstance(e.value, str)]


@pytest.mark.parametrize("package", KNOWS_RECORDS)
def test_what_is_known_of_an_op_is_on_its_record(package: str) -> None:
    names = all_ops() - other_words()
    wrong = [
        f"{path.relative_to(SRC)}:{line}: {code}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for line, code in names_of_ops(ast.parse(path.read_text()), names)
    ]
    assert not wrong, "a field or tag of `Op` tells, or the op itself:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("node.op.name == 'matmul'", True),
        ("name = op.name", True),
        ("table.get(node.op.name)", True),
        ("table[step.node.op.name](step)", True),
        ("op.name.startswith('list_')", True),
        ("name in ('list_push', 'list_set')", True),
        ("{'list_push': 1}", True),
        ("frozenset({'list_push'})", True),
        ("match x:\n    case 'list_push':\n        pass", True),
        ("node.op is MATMUL", False),
        ("f'{node.op.name} refuses this'", False),
        ("Maker(node.op.name, node.origin)", False),
        ("{'axis': 0}", False),
    ],
)
def test_names_of_ops_are_found(code: str, wrong: bool) -> None:
    assert any(names_of_ops(ast.parse(code), {"list_push", "list_set"})) == wrong
