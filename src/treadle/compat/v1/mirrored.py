"""treadle's own functions as graphs have them, and what their operations are called."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from treadle.compat.v1.aliases import ALIASES_IN
from treadle.compat.v1.argument_orders import in_order_of_1
from treadle.compat.v1.recording import record_call, recorded
from treadle.compat.v1.values import Tensor
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed
from treadle.names import missing_name
from treadle.ops.conversion import register_converter
from treadle.tracing.function import Function

# What TensorFlow calls the operations of a function, and their type where that is another word.
_NAMES = {
    "add": "Add AddV2", "multiply": "Mul", "subtract": "Sub", "divide": "truediv RealDiv",
    "truediv": "truediv RealDiv", "floordiv": "floordiv FloorDiv", "pow": "Pow",
    "negative": "Neg", "add_n": "AddN", "reduce_sum": "Sum", "reduce_mean": "Mean",
    "reduce_max": "Max", "reduce_min": "Min", "reduce_prod": "Prod", "reduce_any": "Any",
    "reduce_all": "All", "reduce_logsumexp": "ReduceLogSumExp", "matmul": "MatMul",
    "relu": "Relu", "relu6": "Relu6", "softmax": "Softmax", "log_softmax": "LogSoftmax",
    "square": "Square", "sqrt": "Sqrt", "concat": "concat ConcatV2", "stack": "stack Pack",
    "unstack": "unstack Unpack", "split": "split Split", "reshape": "Reshape", "cast": "Cast",
    "argmax": "ArgMax", "argmin": "ArgMin", "equal": "Equal", "not_equal": "NotEqual",
    "greater": "Greater", "less": "Less", "transpose": "transpose Transpose",
    "expand_dims": "ExpandDims", "squeeze": "Squeeze", "gather": "GatherV2", "l2_loss": "L2Loss",
    "softmax_cross_entropy_with_logits": "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits": "SparseSoftmaxCrossEntropyWithLogits",
    "sigmoid_cross_entropy_with_logits": "logistic_loss AddV2", "dropout": "dropout SelectV2",
    "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "identity": "Identity",
    "shape": "Shape", "zeros_like": "zeros_like ZerosLike", "ones_like": "ones_like Fill",
    "zeros": "zeros Const", "ones": "ones Const", "fill": "Fill", "constant": "Const",
    "convert_to_tensor": "Const", "range": "range Range", "one_hot": "one_hot OneHot",
    "tile": "Tile", "maximum": "Maximum", "minimum": "Minimum", "where": "Select",
    "clip_by_value": "clip_by_value Maximum", "bias_add": "BiasAdd", "eye": "eye MatrixDiag",
    "linspace": "linspace LinSpace", "stop_gradient": "StopGradient", "top_k": "TopKV2",
    "cond": "cond If", "while_loop": "while While", "rank": "Rank", "size": "Size",
    "numpy_function": "PyFunc", "py_function": "EagerPyFunc", "conv2d": "Conv2D",
    "max_pool": "MaxPool", "max_pool2d": "MaxPool2d", "avg_pool": "AvgPool", "pad": "Pad",
    "reverse": "ReverseV2", "abs": "Abs", "sign": "Sign", "round": "Round", "floor": "Floor",
    "ceil": "Ceil", "clip_by_norm": "clip_by_norm Mul", "slice": "Slice",
    "squared_difference": "SquaredDifference", "elu": "Elu", "selu": "Selu",
    "softplus": "Softplus", "softsign": "Softsign", "leaky_relu": "LeakyRelu",
    "logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_not": "LogicalNot",
    "sin": "Sin", "cos": "Cos", "normal": "random_normal AddV2",
    "uniform": "random_uniform RandomUniform", "truncated_normal": "truncated_normal AddV2",
    "shuffle": "RandomShuffle", "gradients": "gradients", "gather_nd": "GatherNd",
    "embedding_lookup": "embedding_lookup Identity", "l2_normalize": "l2_normalize Mul",
    "moments": "moments Mean", "batch_normalization": "batchnorm AddV2", "print": "PrintV2",
    "in_top_k": "in_top_k InTopKV2", "map_fn": "map While", "scan": "scan While",
    "foldl": "foldl While", "foldr": "foldr While", "case": "case If", "lrn": "LRN",
    "tensordot": "Tensordot", "einsum": "einsum Einsum", "cumsum": "Cumsum", "meshgrid": "meshgrid",
    "sequence_mask": "SequenceMask Less", "scatter_nd": "ScatterNd", "unique": "Unique",
    "boolean_mask": "boolean_mask GatherV2", "broadcast_to": "BroadcastTo",
}  # fmt: skip
# Functions that no graph has: they ask or set something, or make functions.
_AT_ONCE = {
    "as_dtype", "benchmark", "clear_caches", "custom_gradient", "executing_eagerly",
    "explain_retraces", "function", "get_current_name_scope", "get_logger", "get_static_value",
    "grad", "inside_function", "is_symbolic_tensor", "is_tensor", "jit", "no_retrace",
    "recompute_grad", "register_tensor_conversion_function", "type_spec_from_value",
    "value_and_grad", "variable_creator_scope",
    "grad_pass_through", "unregister_dispatch_for", "dispatch_for_api", "load_checkpoint",
    "normalize_tuple", "set_seed", "write_graph",
}  # fmt: skip
# Modules whose functions stay as they are: they are about programs, files and objects of Python.
_NOT_MIRRORED = {
    "autograph", "config", "data", "errors", "experimental", "inspect", "keras", "nest",
    "sysconfig", "test", "types", "version", "dtypes", "train", "passes", "examples",
    "datasets", "cli", "bench", "random", "compat",
}  # fmt: skip


def is_at_once(function: Any) -> bool:
    """Whether something is no function that a graph has."""
    return not inspect.isfunction(function) or function.__name__ in _AT_ONCE


def graph_function(function: Any, name: str | None = None) -> Any:
    """A function of treadle as graphs have it; other things as they are."""
    if is_at_once(function):
        return function
    if function.__name__.startswith("assert_"):
        return _assertion(function)
    known = (name or _NAMES.get(function.__name__, "")).split()
    return recorded(
        function, known[0] if known else None, known[-1] if known else None,
        f"{function.__module__}.{function.__name__}",
    )  # fmt: skip


def _assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """An assertion: an operation of a graph without results, which TensorFlow 1 also gives `data`
    to print."""

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("data", None)
        call = recorded(checking(function), function.__name__, "Assert")
        return call(*args, **kwargs)

    return check


@functools.cache
def checking(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation that has no results."""

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return check


# Public functions of treadle -> those of TensorFlow 1 that take tensors of graphs instead.
IN_GRAPHS: dict[Any, Callable[..., Any]] = {}


def claim(value: Any, dtype: Any) -> Any:
    """The converter of tensors and variables of graphs: calls of treadle's public functions with
    them are written down, as those of TensorFlow 1's are."""
    message = f"{value!r} has a value when a session runs it{at(user_origin())}"
    raise Claimed(message, functools.partial(_taken, message))


def _taken(message: str, function: Any, args: Any, kwargs: Any) -> Any:
    if isinstance(getattr(function, "__func__", function), Function):  # it, or its method
        return record_call(function, args, kwargs)
    if is_at_once(function) and function not in IN_GRAPHS:
        raise TypeError(message)
    return written_down(function, args, kwargs)


def written_down(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call of one of treadle's public functions in a graph."""
    call = IN_GRAPHS.get(function)
    if call is None:
        call = IN_GRAPHS[function] = graph_function(function)
    return call(*args, **kwargs)


register_converter(Tensor, claim)
# Calls of a td.function, too.
Tensor.__tf_tracing_type__ = claim  # type: ignore[attr-defined]


_HERE = "treadle.compat.v1."


def fallback(
    module: str, place: str, *more: str, aliases: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module: names that it lacks are those of modules of treadle, as
    graphs have them.

    Args:
        module: the module whose ``__getattr__`` it is.
        place: the module of treadle with the same names.
        more: other modules of treadle to look in.
        aliases: names that are functions of other names, as ``linalg.diag``.
    """
    others = {**(aliases or {}), **ALIASES_IN.get(module.removeprefix(_HERE), {})}

    def __getattr__(name: str) -> Any:
        if name[:2] == "__":
            raise missing_name(module, name)
        if name in others:
            inner, _, there = f"treadle.{others[name]}".rpartition(".")
            value = graph_function(getattr(importlib.import_module(inner), there))
            value = in_order_of_1(name, value)
            setattr(sys.modules[module], name, value)
            return value
        for where in (place, *more):
            try:
                value = getattr(importlib.import_module(where), name)
            except AttributeError:
                continue
            if isinstance(value, ModuleType):
                value = value if name in _NOT_MIRRORED else mirrored(f"{module}.{name}", value)
            elif where.rpartition(".")[2] not in _NOT_MIRRORED:
                value = in_order_of_1(name, graph_function(value), module)
            setattr(sys.modules[module], name, value)
            return value
        raise missing_name(module, name, _hint(place, name))

    known = sys.modules[module].__dict__
    listed = (n for n in dir(importlib.import_module(place)) if n[:1] != "_")
    known.setdefault("__dir__", lambda: sorted({*known, *listed, *others}))
    return __getattr__


def _hint(place: str, name: str) -> str:
    """What treadle says of a name that is not provided."""
    try:
        getattr(importlib.import_module(place), name)
    except AttributeError as error:
        text = str(error)
        return text.partition(". ")[2] if ". " in text else ""
    return ""


def mirrored(name: str, module: ModuleType) -> ModuleType:
    """A module with the functions of another one, as graphs have them."""
    found = ModuleType(name, module.__doc__)
    sys.modules[name] = found
    found.__getattr__ = fallback(name, module.__name__)  # type: ignore[method-assign]
    return found


def of_aliases(name: str) -> ModuleType:
    """A module all of whose functions are treadle's under other names."""
    found = ModuleType(name, f"Names of TensorFlow 1 for functions that treadle has elsewhere: "
                             f"``{name}``.")  # fmt: skip
    sys.modules[name] = found

    def __getattr__(wanted: str) -> Any:
        known = ALIASES_IN[name.removeprefix(_HERE)]
        if wanted not in known:
            raise missing_name(name, wanted)
        inner, _, there = f"treadle.{known[wanted]}".rpartition(".")
        value = graph_function(getattr(importlib.import_module(inner), there))
        value = in_order_of_1(wanted, value)
        setattr(found, wanted, value)
        return value

    found.__getattr__ = __getattr__  # type: ignore[method-assign]
    return found
