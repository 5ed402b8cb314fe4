"""The public functions that take arguments: found by walking the package, so that new modules and
functions are among them as soon as they exist."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import treadle as td

# Modules of settings, tools, files and programs: they are no functions of tensors.
TOOLS = {
    "autodiff", "autograph", "compat", "config", "data", "datasets", "distribute", "dtypes",
    "errors", "experimental", "inspect", "io", "keras", "nest", "numpy", "onnx", "passes",
    "profiler", "saved_model", "summary", "test", "train", "types",
}  # fmt: skip
# Functions that change settings or run what they are given, or take functions of the user.
SKIPPED = {
    "benchmark", "clear_caches", "explain_retraces", "function", "jit", "no_retrace", "grad",
    "value_and_grad", "custom_gradient", "recompute_grad", "grad_pass_through", "numpy_function",
    "py_function", "name_scope", "control_dependencies", "set_seed", "set_global_generator",
    "enable_check_numerics", "set_log_device_placement",
    "disable_check_numerics", "enable_traceback_filtering",
    "disable_traceback_filtering", "print", "gradients", "hessians", "no_op", "init_scope",
    "get_global_generator", "group", "is_symbolic_tensor", "executing_eagerly", "get_static_value",
}  # fmt: skip
# Their results are random, or depend on what was called before.
UNEQUAL = {
    "dropout", "categorical", "normal", "shuffle", "truncated_normal", "uniform", "ref",
    "random_flip_left_right", "random_flip_up_down", "random_brightness", "random_contrast",
    "random_hue", "random_saturation", "random_crop", "random_jpeg_quality", "gamma", "poisson",
    "binomial", "device", "name", "split",
}  # fmt: skip
# Methods that eager tensors alone have (they give Python's and NumPy's values), and methods that
# belong to the way a function is compiled.
EAGER_ONLY = {
    "numpy", "tolist", "item", "eval", "fill", "put", "resize", "partition", "sort", "astype",
    "cell", "cpu", "gpu", "make_writable", "wait_until_whole", "told_apart",
    "stand_in", "assign_part", "copy",
}  # fmt: skip

OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
    "lt", "le", "gt", "ge", "eq", "ne", "neg", "invert", "abs", "pos",
)  # fmt: skip


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """The functions by their names below ``td``."""
    found: dict[str, Callable[..., Any]] = {}
    known: set[Any] = set()
    for prefix, module in modules():
        for name in dir(module) if not hasattr(module, "__all__") else module.__all__:
            value = getattr(module, name, None)
            if name.startswith("_") or name in SKIPPED or not _is_function(value):
                continue
            if value not in known:
                known.add(value)
                found[prefix + name] = value
    for kind in (td.Tensor, td.Variable):
        for name in dir(kind):
            method = getattr(kind, name)
            if not name.startswith("_") and name not in EAGER_ONLY and callable(method):
                found[f"{kind.__name__}.{name}"] = method
    for name in OPERATORS:
        found[f"operator.{name}"] = getattr(operator, name)
    found["operator.getitem"] = getitem
    return found


def modules() -> Iterator[tuple[str, ModuleType]]:
    """The modules of functions, with the prefix of their functions' names."""
    yield "", td
    for name in sorted(td.__all__):
        module = getattr(td, name)
        if isinstance(module, ModuleType) and name not in TOOLS:
            yield f"{name}.", module


def _is_function(value: Any) -> bool:
    return callable(value) and not inspect.isclass(value) and not isinstance(value, ModuleType)


def getitem(x: Any, key: Any) -> Any:
    return x[key]


@cache
def parameters(name: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of a function; those of a ufunc-like one are called x and y."""
    try:
        return tuple(inspect.signature(functions()[name]).parameters.values())
    except ValueError:
        kind = inspect.Parameter.POSITIONAL_ONLY
        return tuple(inspect.Parameter(n, kind) for n in ("x", "y"))


def compares_values(name: str) -> bool:
    last = name.rpartition(".")[2]
    places = ("random", "nn", "image", "Tensor", "Variable")
    stateful = last in UNEQUAL and name.startswith(places)
    return not stateful


