"""Functions whose arguments or names are TensorFlow 1's."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.autodiff.jacobian import batch_jacobian, jacobian
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.keras_tensors import in_graph
from treadle.compat.v1.mirrored import IN_GRAPHS, checking, graph_function
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.user_calls import begin
from treadle.compat.v1.values import Composite, Literal, Mode, Operation, Tensor, element
from treadle.compat.v1.variables import group, grouped, inside_body, no_op
from treadle.core.dimension import Dimension
from treadle.core.origin import at, user_origin
from treadle.ops.conversion import has_dtype, to_array


def renamed(new: Any, new_name: str, old: Any, old_name: str) -> Any:
    """The argument that is given under its new or its old name.

    Raises:
        ValueError: it is given under both.
    """
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.{at(user_origin())}")
    return old


def _reduction(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    call = graph_function(function)

    def reduce(input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
               reduction_indices: Any = None, keep_dims: Any = None) -> Any:  # fmt: skip
        axis = renamed(axis, "axis", reduction_indices, "reduction_indices")
        keepdims = renamed(keepdims, "keepdims", keep_dims, "keep_dims")
        return call(input_tensor, axis=axis, keepdims=bool(keepdims), name=name)

    reduce.__name__ = name
    reduce.__doc__ = f"`td.{name}`; also by the old names `reduction_indices` and `keep_dims`."
    return reduce


reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum = (  # noqa: E501
    _reduction(f"reduce_{n}", getattr(td, f"reduce_{n}"))
    for n in ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")
)


def _chosen(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    call = graph_function(function)

    def choose(input: Any, axis: Any = None, name: str | None = None,
               dimension: Any = None, output_type: Any = td.int64) -> Any:  # fmt: skip
        axis = renamed(axis, "axis", dimension, "dimension")
        return call(input, 0 if axis is None else axis, output_type, name=name)

    choose.__name__ = name
    choose.__doc__ = f"`td.{name}`; also by the old name `dimension`."
    return choose


argmax, argmin = _chosen("argmax", td.argmax), _chosen("argmin", td.argmin)


def _of_dimension(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(
        input: Any, dimension: Any, output_type: Any = td.int64, name: str | None = None
    ) -> Any:
        return function(input, dimension, name, output_type=output_type)

    choose.__name__ = name
    choose.__doc__ = f"`{function.__name__}` with the arguments that `{name}` had."
    return choose


arg_max, arg_min = _of_dimension("arg_max", argmax), _of_dimension("arg_min", argmin)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """`td.expand_dims`; also by the old name `dim`."""
    axis = renamed(axis, "axis", dim, "dim")
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return graph_function(td.expand_dims)(input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """`td.squeeze`; also by the old name `squeeze_dims`."""
    axis = renamed(axis, "axis", squeeze_dims, "squeeze_dims")
    return graph_function(td.squeeze)(input, axis, name=name)


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None,
         name: str | None = None, keep_dims: Any = None) -> Any:  # fmt: skip
    """`td.norm`; also by the old name `keep_dims`."""
    keepdims = renamed(keepdims, "keepdims", keep_dims, "keep_dims")
    return graph_function(td.norm)(tensor, ord, axis, bool(keepdims), name=name)


def reduce_join(inputs: Any, axis: Any = None, keep_dims: Any = None, separator: Any = "",
                name: str | None = None, reduction_indices: Any = None,
                keepdims: Any = None) -> Any:  # fmt: skip
    """`td.strings.reduce_join`; also by the old names `reduction_indices` and `keep_dims`."""
    axis = renamed(axis, "axis", reduction_indices, "reduction_indices")
    keepdims = bool(renamed(keepdims, "keepdims", keep_dims, "keep_dims"))
    return graph_function(td.strings.reduce_join)(inputs, axis, keepdims, separator, name=name)


def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None,
                     name: str | None = None, seq_dim: Any = None,
                     batch_dim: Any = None) -> Any:  # fmt: skip
    """`td.reverse_sequence`; also by the old names `seq_dim` and `batch_dim`."""
    seq_axis = renamed(seq_axis, "seq_axis", seq_dim, "seq_dim")
    batch_axis = renamed(batch_axis, "batch_axis", batch_dim, "batch_dim")
    call = graph_function(td.reverse_sequence)
    return call(input, seq_lengths, seq_axis, batch_axis, name=name)


def count_nonzero(input_tensor: Any = None, axis: Any = None, keepdims: Any = None,
                  dtype: Any = td.int64, name: str | None = None, reduction_indices: Any = None,
                  keep_dims: Any = None, input: Any = None) -> Any:  # fmt: skip
    """`td.math.count_nonzero`; also by the old names `reduction_indices` and `keep_dims`."""
    x = renamed(input, "input", input_tensor, "input_tensor")
    axis = renamed(axis, "axis", reduction_indices, "reduction_indices")
    keepdims = renamed(keepdims, "keepdims", keep_dims, "keep_dims")
    return graph_function(td.math.count_nonzero)(x, axis, bool(keepdims), dtype, name=name)


def _same_dtype(x: Any, dtype: td.DType) -> bool:
    tensor = element(x)
    return tensor is not None and tensor.dtype is dtype and type(x) is Tensor


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`td.cast`; a tensor of that dtype is given back itself."""
    dtype = td.as_dtype(dtype)
    return x if _same_dtype(x, dtype) else graph_function(td.cast)(x, dtype, name=name)


def _to(dtype: td.DType, label: str) -> Callable[..., Any]:
    def to(x: Any, name: str = label) -> Any:
        return cast(x, dtype, name)

    to.__name__, to.__doc__ = label, f"`td.cast` to {dtype.name}."
    return to


to_float, to_double, to_int32, to_int64, to_bfloat16, to_complex64, to_complex128 = (
    _to(dtype, label)
    for dtype, label in (
        (td.float32, "ToFloat"), (td.float64, "ToDouble"), (td.int32, "ToInt32"),
        (td.int64, "ToInt64"), (td.bfloat16, "ToBFloat16"), (td.complex64, "ToComplex64"),
        (td.complex128, "ToComplex128"),
    )
)  # fmt: skip


def _div(x: Any, y: Any, name: str | None = None) -> Any:
    x = td.convert_to_tensor(x)
    y = td.convert_to_tensor(y, x.dtype)
    return x / y if x.dtype.is_floating or x.dtype.is_complex else x // y


div = recorded(_div, "div", "RealDiv", "treadle.compat.v1.div")
mul, sub, neg = (graph_function(f) for f in (td.multiply, td.subtract, td.negative))
mod = graph_function(td.math.floormod, "FloorMod FloorMod")
floormod = mod
batch_matmul = graph_function(td.matmul)


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, name: str | None = None, output_type: Any = None) -> Any:
    """`td.matmul`."""
    return graph_function(td.matmul)(
        a, b, transpose_a=transpose_a, transpose_b=transpose_b, adjoint_a=adjoint_a,
        adjoint_b=adjoint_b, output_type=output_type, name=name,
    )  # fmt: skip


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`td.where`; a vector as condition chooses rows of `x` and `y`."""
    return recorded(_where, "Select" if x is not None else "Where", None)(
        condition, x, y, name=name
    )


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return td.where(condition)
    condition, x = td.convert_to_tensor(condition), td.convert_to_tensor(x)
    if len(condition.shape) == 1 and len(x.shape) > 1:
        condition = td.reshape(condition, [-1] + [1] * (len(x.shape) - 1))
    return td.where(condition, x, y)


def batch_to_space(input: Any, crops: Any = None, block_size: Any = None, name: str | None = None,
                   block_shape: Any = None) -> Any:  # fmt: skip
    """`td.batch_to_space` of images."""
    block = renamed(block_size, "block_size", block_shape, "block_shape")
    block = [block, block] if isinstance(block, int) else block
    return graph_function(td.batch_to_space)(input, block, crops, name=name)


def space_to_batch(input: Any, paddings: Any = None, block_size: Any = None,
                   name: str | None = None, block_shape: Any = None) -> Any:  # fmt: skip
    """`td.space_to_batch` of images."""
    block = renamed(block_size, "block_size", block_shape, "block_shape")
    block = [block, block] if isinstance(block, int) else block
    return graph_function(td.space_to_batch)(input, block, paddings, name=name)


# -- random numbers ------------------------------------------------------------------------------


def set_random_seed(seed: int) -> None:
    """The seed of the random numbers of the default graph."""
    get_default_graph().seed = seed
    td.random.set_seed(seed)


def _random(name: str, function: Callable[..., Any], type_: str) -> Callable[..., Any]:
    call = recorded(function, name, type_, f"treadle.compat.v1.{name}")
    call.__name__ = name
    return call


def _normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = td.float32,
            seed: int | None = None, name: str | None = None) -> Any:  # fmt: skip
    return td.random.normal(shape, mean, stddev, dtype, seed)


def _truncated(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = td.float32,
               seed: int | None = None, name: str | None = None) -> Any:  # fmt: skip
    return td.random.truncated_normal(shape, mean, stddev, dtype, seed)


def _uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = td.float32,
             seed: int | None = None, name: str | None = None) -> Any:  # fmt: skip
    return td.random.uniform(shape, minval, maxval, dtype, seed)


def _multinomial(logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None,
                 output_dtype: Any = None) -> Any:  # fmt: skip
    return td.random.categorical(logits, num_samples, output_dtype or td.int64, seed)


def _shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    return td.random.shuffle(value, seed)


def _gamma(shape: Any, alpha: Any, beta: Any = None, dtype: Any = td.float32,
           seed: int | None = None, name: str | None = None) -> Any:  # fmt: skip
    return td.random.gamma(shape, alpha, beta, dtype, seed)


def _poisson(lam: Any, shape: Any, dtype: Any = td.float32, seed: int | None = None,
             name: str | None = None) -> Any:  # fmt: skip
    return td.random.poisson(shape, lam, dtype, seed)


def _crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    return td.image.random_crop(value, size, seed)


random_normal = _random("random_normal", _normal, "AddV2")
truncated_normal = _random("truncated_normal", _truncated, "AddV2")
random_uniform = _random("random_uniform", _uniform, "RandomUniform")
multinomial = _random("multinomial", _multinomial, "Multinomial")
random_shuffle = _random("RandomShuffle", _shuffle, "RandomShuffle")
random_gamma = _random("random_gamma", _gamma, "Mul")
random_poisson = _random("random_poisson", _poisson, "RandomPoissonV2")
random_crop = _random("random_crop", _crop, "Slice")


# -- branches and loops --------------------------------------------------------------------------


def _single(result: Any, strict: bool = False) -> Any:
    """The one element of a list of one."""
    is_one = isinstance(result, list | tuple) and len(result) == 1 and not hasattr(
        result, "_fields"
    )
    return result[0] if is_one and not strict else result


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False,
         name: str | None = None, fn1: Any = None, fn2: Any = None) -> Any:  # fmt: skip
    """`td.cond`; a list of one tensor is that tensor, unless `strict`.

    Raises:
        TypeError: `pred` is a bool of Python, or a branch is no function.
    """
    true_fn = renamed(true_fn, "true_fn", fn1, "fn1")
    false_fn = renamed(false_fn, "false_fn", fn2, "fn2")
    for label, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"'{label}' must be callable.{at(user_origin())}")
    if isinstance(pred, bool) and writes_into(pred) is not None:
        raise TypeError(f"pred must not be a Python bool{at(user_origin())}")
    branches = _function(true_fn), _function(false_fn)
    return _single(graph_function(td.cond)(of_rank_0(pred), *branches, name=name), strict)


def case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False,
    name: str = "case",
) -> Any:  # fmt: skip
    """`td.case`; the pairs may be a dict, whose predicates are taken in the order of their
    names."""
    if isinstance(pred_fn_pairs, dict):
        pred_fn_pairs = sorted(pred_fn_pairs.items(), key=lambda pair: getattr(pair[0], "name", ""))
    pairs = [(of_rank_0(pred), _function(branch)) for pred, branch in pred_fn_pairs]
    last = None if default is None else _function(default)
    return _single(graph_function(td.case)(pairs, last, exclusive, name=name), strict)


def of_rank_0(condition: Any) -> Any:
    """A condition as it is, but one whose rank is not known as a scalar: placeholders are often
    given no shape, and what depends on a condition then has a known shape."""
    if isinstance(condition, Tensor) and condition.shape.rank is None:
        return graph_function(td.reshape)(condition, [])
    return condition


def _function(given: Any) -> Callable[..., Any]:
    """What is called, as a function of Python, which operations keep as a branch or body."""
    return given if inspect.isroutine(given) else lambda *args: given(*args)


def while_loop(
    cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
    name: str | None = None, maximum_iterations: Any = None, return_same_structure: bool = False,
) -> Any:  # fmt: skip
    """`td.while_loop`; a loop of one variable gives that variable, unless
    `return_same_structure`."""
    if not loop_vars:
        raise ValueError("No loop variables provided")
    found = graph_function(td.while_loop)(
        _function(cond), _function(body), loop_vars, shape_invariants,
        back_prop=back_prop, maximum_iterations=maximum_iterations, name=name,
    )  # fmt: skip
    return _single(found, return_same_structure)


# -- tensors like others -------------------------------------------------------------------------


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Any:
    """`td.zeros_like`; `optimize` is accepted for TensorFlow programs."""
    return graph_function(td.zeros_like)(tensor, dtype, name=name)


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Any:
    """`td.ones_like`; `optimize` is accepted for TensorFlow programs."""
    return graph_function(td.ones_like)(tensor, dtype, name=name)


# -- Python in graphs ----------------------------------------------------------------------------


def py_func(func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True,
            name: str | None = None) -> Any:  # fmt: skip
    """Call a function of Python with arrays: what it gives are tensors of unknown shape, of the
    dtypes `Tout`. Sessions call it between programs."""
    graph = writes_into(inp)
    if graph is None:
        return _python_function(func, inp, Tout)
    result = recorded(_python_function, "PyFunc", "PyFunc")(
        Literal(func), list(inp), Literal(Tout), name=name
    )
    tensors = [t for t in td.nest.flatten(result) if isinstance(t, Tensor)]
    for tensor in tensors:
        if not inside_body() and "_gradient_op_type" not in tensor.op.attributes:
            tensor.op.attributes["python"] = func
            tensor.readings = graph.unranked(tensor.op, tensor.dtype)
    return result


def _python_function(function: Any, inputs: Any, types: Any) -> Any:
    """What Python gives in a program. Its rank is taken to be that of the first argument: programs
    know ranks before they run, and check them."""
    found = td.numpy_function(function, inputs, types)
    rank = len(td.convert_to_tensor(inputs[0]).shape) if inputs else None
    for tensor in td.nest.flatten(found):
        if rank is not None and tensor.shape.rank is None and td.inside_function():
            tensor.set_shape([None] * rank)
    return found


def py_function(
    func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """`td.py_function`: call a function of Python with eager tensors."""
    if writes_into(inp) is None:
        return td.py_function(func, inp, Tout)
    return recorded(_eager_function, "EagerPyFunc", "EagerPyFunc")(
        Literal(func), list(inp), Literal(Tout), name=name
    )


def _eager_function(function: Any, inputs: Any, types: Any) -> Any:
    return td.py_function(function, inputs, types)


def numpy_function(func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True,
                   name: str | None = None) -> Any:  # fmt: skip
    """`td.numpy_function`."""
    return py_func(func, inp, Tout, stateful, name)


def Print(input_: Any, data: Any, message: str | None = None, first_n: int | None = None,
          summarize: int | None = None, name: str | None = None) -> Any:  # fmt: skip
    """`input_`; each time it is computed `data` are written to standard error."""
    return recorded(_printed, "Print", "Print")(
        input_, list(data), message or "", -1 if first_n is None else first_n,
        Literal([0]), 3 if summarize is None else summarize, name=name,
    )  # fmt: skip


def _printed(x: Any, data: Any, message: str, first: int, count: list[int], most: int) -> Any:
    def show(*arrays: Any) -> None:
        if first < 0 or count[0] < first:
            count[0] += 1
            sys.stderr.write(message + "".join(_in_brackets(a, most) for a in arrays) + "\n")
            sys.stderr.flush()

    td.numpy_function(show, data, [])
    return td.identity(x)


def _in_brackets(array: Any, most: int) -> str:
    array = np.asarray(array)
    if not array.ndim:
        return f"[{_printed_number(array[()])}]"

    def listed(a: Any) -> str:
        if a.ndim == 0:
            return _printed_number(a[()])
        shown = [listed(x) for x in a[: most if most >= 0 else None]]
        joined = " ".join(shown) if a.ndim == 1 else "".join(f"[{x}]" for x in shown)
        return joined + ("..." if 0 <= most < len(a) else "")

    return f"[{listed(array)}]" if array.ndim == 1 else f"[{listed(array)}]"


def _printed_number(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"{value:g}" if isinstance(value, np.floating) else str(value)


# -- assertions: operations without results ------------------------------------------------------


def Assert(condition: Any, data: Any, summarize: Any = None, name: str | None = None) -> Any:
    """An operation that raises InvalidArgumentError where a condition does not hold."""
    if writes_into(condition, data) is None:
        return td.debugging.Assert(condition, data, summarize)
    return recorded(checking(td.debugging.Assert), "Assert", "Assert")(condition, data, name=name)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const",
             verify_shape: bool = False) -> Any:  # fmt: skip
    """`td.constant`; of fewer elements than a graph's constant has, the last one is repeated.

    Args:
        verify_shape: refuse another shape than that of `value`.

    Raises:
        ValueError: there are more elements.
        TypeError: `value` has another shape, with `verify_shape`.
    """
    if shape is not None and writes_into(value) is not None and not has_dtype(value):
        array, dims = to_array(value, None if dtype is None else td.as_dtype(dtype)), plain(shape)
        if verify_shape and list(array.shape) != list(dims):
            raise TypeError(f"Expected Tensor's shape: {tuple(dims)}, got {array.shape}.")
        missing = math.prod(dims) - array.size
        if array.size and missing > 0:
            last = array.reshape(-1)[-1:]
            value = np.concatenate([array.reshape(-1), np.repeat(last, missing)]).reshape(dims)
    return graph_function(td.constant)(value, dtype, shape, name=name)


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    found = element(tensor)
    return found is not None and (found.dtype.is_floating or found.dtype.is_integer)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """`td.debugging.check_numerics`."""
    return graph_function(td.debugging.check_numerics, "CheckNumerics CheckNumerics")(
        tensor, message, name=name
    )


def verify_tensor_all_finite(t: Any = None, msg: Any = None, name: str | None = None,
                             x: Any = None, message: Any = None) -> Any:  # fmt: skip
    """The tensor; InvalidArgumentError where an element is no finite number."""
    return check_numerics(renamed(x, "x", t, "t"), renamed(message, "message", msg, "msg"), name)


def _dense(indices: Any, shape: Any, values: Any, default: Any) -> Any:
    values = td.convert_to_tensor(values)
    indices = td.convert_to_tensor(indices)
    shape = td.convert_to_tensor(shape)
    if not indices.shape.rank:
        indices = td.reshape(indices, [1, 1])
    elif len(indices.shape) == 1:
        indices = indices[:, None]
    values = td.broadcast_to(values, td.shape(indices)[:1])
    whole = td.fill(shape, td.cast(default, values.dtype))
    return td.tensor_scatter_nd_update(whole, indices, values)


def sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any,
                    default_value: Any = 0, validate_indices: bool = True,
                    name: str | None = None) -> Any:  # fmt: skip
    """A tensor with values at some positions, and another one elsewhere."""
    return recorded(_dense, "SparseToDense", "SparseToDense")(
        sparse_indices, output_shape, sparse_values, default_value, name=name
    )


def add_check_numerics_ops() -> Operation:
    """An operation that checks all tensors of floats of the default graph."""
    graph = get_default_graph()
    found = [
        check_numerics(t, t.name)
        for op in graph.get_operations()
        for t in op.outputs
        if op.function is not None and hasattr(t.dtype, "is_floating") and t.dtype.is_floating
    ]
    return grouped(graph, found, "group_deps")


# -- blocks --------------------------------------------------------------------------------------


class name_scope:
    """Names of operations that the block makes begin with a name, made unique.

    Args:
        name: the name; None: `default_name`.
        values: accepted.
    """

    def __init__(
        self, name: str | None, default_name: str | None = None, values: Any = None
    ) -> None:
        self.name = default_name if name is None else name
        self._open: list[Any] = []

    def __enter__(self) -> str:
        if writes_into() is None:
            block: Any = td.name_scope(self.name or "")
        else:
            block = get_default_graph().name_scope(self.name)
        self._open.append(block)
        return block.__enter__()  # type: ignore[no-any-return]

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)


def op_scope(values: Any, name: str | None, default_name: str | None = None) -> name_scope:
    """`name_scope`, whose values come first."""
    return name_scope(name, default_name, values)


def control_dependencies(control_inputs: Any) -> Any:
    """See `Graph.control_dependencies`."""
    given = control_inputs() if callable(control_inputs) else control_inputs
    if writes_into(given) is None:
        return td.control_dependencies(given)
    return get_default_graph().control_dependencies(given)


def device(device_name_or_function: Any) -> Any:
    """See `Graph.device`."""
    if writes_into() is None:
        return td.device(device_name_or_function)
    return get_default_graph().device(device_name_or_function)


@contextmanager
def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Accepted: there is one device at work."""
    yield


def container(container_name: str) -> Any:
    """See `Graph.container`."""
    return get_default_graph().container(container_name)


def tuple_(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The tensors, when all of them and `control_inputs` are computed."""
    given = [t for t in tensors if t is not None]
    if writes_into(given) is None:
        found: list[Any] = td.tuple(tensors, control_inputs)
        return found
    waiting = grouped(get_default_graph(), [*given, *(control_inputs or ())], name or "tuple")
    with get_default_graph().control_dependencies([waiting]):
        return [None if t is None else graph_function(td.identity)(t) for t in tensors]


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """The tensor, when the dependencies are done."""
    with get_default_graph().control_dependencies(dependencies):
        return graph_function(td.identity)(output_tensor, name=name)


def add_to_collection(name: Any, value: Any) -> None:
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """The values of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """The list of a collection of the default graph, to be changed."""
    return get_default_graph().get_collection_ref(key)


# -- whether calls are made at once --------------------------------------------------------------


def executing_eagerly() -> bool:
    """Whether functions are called at once."""
    return not td.inside_function() and writes_into() is None


def enable_eager_execution(config: Any = None, device_policy: Any = None,
                           execution_mode: Any = None) -> None:  # fmt: skip
    """From now on functions are called at once, but in ``with graph.as_default()``.

    Raises:
        ValueError: the default graph has operations already.
    """
    if not Mode.eager and get_default_graph().version:
        raise ValueError("tf.enable_eager_execution must be called at program startup.")
    Mode.choose(True)


def disable_eager_execution() -> None:
    """From now on calls are written into graphs, as they are from the beginning in a program that
    says ``import treadle.compat.v1 as tf``."""
    Mode.choose(False)
    begin()


def enable_v2_behavior() -> None:
    """See `enable_eager_execution`."""
    Mode.choose(True)


def disable_v2_behavior() -> None:
    """See `disable_eager_execution`."""
    disable_eager_execution()


def executing_eagerly_outside_functions() -> bool:
    """Whether functions are called at once where no function is traced."""
    return Mode.eager


def _accepted(name: str) -> Callable[[], None]:
    def call() -> None:
        """Accepted for TensorFlow programs: nothing changes."""

    call.__name__ = name
    return call


(
    enable_resource_variables, disable_resource_variables, enable_v2_tensorshape,
    disable_v2_tensorshape, enable_control_flow_v2, disable_control_flow_v2,
    enable_tensor_equality, disable_tensor_equality,
) = map(
    _accepted,
    (
        "enable_resource_variables", "disable_resource_variables", "enable_v2_tensorshape",
        "disable_v2_tensorshape", "enable_control_flow_v2", "disable_control_flow_v2",
        "enable_tensor_equality", "disable_tensor_equality",
    ),
)  # fmt: skip


def resource_variables_enabled() -> bool:
    """True: variables are read where their operations stand."""
    return True


def control_flow_v2_enabled() -> bool:
    """True: branches and loops are operations that own their graphs."""
    return True


# -- gradients -----------------------------------------------------------------------------------


def gradients(ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients",
              colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
              aggregation_method: Any = None, stop_gradients: Any = None,
              unconnected_gradients: Any = "none") -> Any:  # fmt: skip
    """The gradients of the sum of `ys` by each of `xs`: see `td.gradients`.

    Raises:
        RuntimeError: calls are made at once.
    """
    if not executing_eagerly():
        ys, xs = in_graph(get_default_graph(), (ys, xs))
    if writes_into(ys, xs) is None:
        return td.gradients(ys, xs, grad_ys, stop_gradients=stop_gradients,
                            unconnected_gradients=unconnected_gradients)  # fmt: skip
    listed = [list(x) if isinstance(x, list | tuple) else [x] for x in (ys, xs)]
    unconnected = getattr(unconnected_gradients, "value", unconnected_gradients)
    return recorded(_gradients, "gradients", "Gradients")(
        *listed, grad_ys, stop_gradients, unconnected, name=name
    )


def _gradients(ys: Any, xs: Any, grad_ys: Any, stopped: Any, unconnected: str) -> list[Any]:
    ys = [td.convert_to_tensor(y) if isinstance(y, td.Variable) else y for y in ys]
    if grad_ys is not None and not isinstance(grad_ys, list | tuple):
        grad_ys = [grad_ys]
    return td.gradients(
        ys, xs, grad_ys, stop_gradients=stopped, unconnected_gradients=unconnected
    )


class _GraphTape:
    """What gradient tapes know of graphs: gradients of their tensors are operations of the graph,
    whatever was recorded."""

    def has(self, *values: Any) -> bool:
        return any(element(x) is not None for x in td.nest.flatten(values))

    def gradient(self, target: Any, sources: Any, seeds: Any, zero: bool) -> Any:
        found = gradients(
            td.nest.flatten(target), td.nest.flatten(sources),
            None if seeds is None else td.nest.flatten(seeds),
            unconnected_gradients="zero" if zero else "none",
        )  # fmt: skip
        return td.nest.pack_sequence_as(sources, list(found))

    def jacobian(self, target: Any, sources: Any, zero: bool) -> Any:
        flat = td.nest.flatten(sources)
        found = recorded(_jacobian, "jacobian", "Jacobian")(target, flat, zero)
        return td.nest.pack_sequence_as(sources, list(found))

    def batch_jacobian(self, target: Any, source: Any, zero: bool) -> Any:
        return recorded(_batch_jacobian, "batch_jacobian", "BatchJacobian")(target, source, zero)


class _TracedTape:
    """What a Jacobian asks of a tape, of tensors that are traced: `td.gradients` tells it."""

    def used_once(self) -> Any:
        return nullcontext()

    def vector_jacobian(self, targets: Any, seeds: Any, sources: Any) -> Any:
        return _gradients(list(targets), list(sources), list(seeds), None, "none")


def _jacobian(target: Any, sources: Any, zero: bool) -> Any:
    return jacobian(_TracedTape(), target, sources, zero, at_once=True)


def _batch_jacobian(target: Any, source: Any, zero: bool) -> Any:
    return batch_jacobian(_TracedTape(), target, source, zero, at_once=True)


td.GradientTape.of_graphs = _GraphTape()


def hessians(ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False,
             gate_gradients: bool = False, aggregation_method: Any = None) -> Any:  # fmt: skip
    """The second derivatives of `ys` by each of `xs`."""
    listed = list(xs) if isinstance(xs, list | tuple) else [xs]
    return recorded(_hessians, "hessians", "Hessians")(ys, listed, name=name)


def _hessians(ys: Any, xs: Any) -> Any:
    return td.hessians(ys, xs)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor or variable."""
    return element(x) is not None or bool(td.is_tensor(x))


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None,
                      preferred_dtype: Any = None, dtype_hint: Any = None) -> Any:  # fmt: skip
    """`td.convert_to_tensor`; a tensor of the graph is given back itself.

    Raises:
        ValueError: it has another dtype.
    """
    if type(value) is Tensor:
        if dtype is not None and value.dtype is not td.as_dtype(dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {td.as_dtype(dtype).name} for Tensor of dtype "
                f"{value.dtype.name}: {value!r}"
            )
        return value
    hint = preferred_dtype if dtype_hint is None else dtype_hint
    return graph_function(td.convert_to_tensor)(value, dtype, dtype_hint=hint, name=name)


def _converted(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Any:
    """`convert_to_tensor` with TensorFlow 2's order of the arguments."""
    return convert_to_tensor(value, dtype, name, dtype_hint)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """`td.get_static_value`: what is known of the elements of a tensor without a session."""
    if element(tensor) is None:
        return td.get_static_value(tensor, partial)
    if type(tensor) is not Tensor or not tensor.is_sure or len(tensor.readings) > 1:
        return None
    return td.get_static_value(next(iter(tensor.readings.values())), partial)


IN_GRAPHS |= {
    td.get_static_value: get_static_value, td.convert_to_tensor: _converted, td.cast: cast,
    td.gradients: gradients, td.numpy_function: numpy_function, td.py_function: py_function,
    td.group: group,
    td.no_op: no_op, td.control_dependencies: control_dependencies,
}  # fmt: skip


def _batch_gathered(params: Any, indices: Any) -> Any:
    indices = td.convert_to_tensor(indices)
    return td.gather(params, indices, batch_dims=len(indices.shape) - 1)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """Rows of each part of a batch: `indices` has the axes of the batch, and one more."""
    return recorded(_batch_gathered, "BatchGather", "GatherV2")(params, indices, name=name)


def _clipped_by_average(t: Any, clip_norm: Any) -> Any:
    values = td.convert_to_tensor(t)
    size = td.cast(td.size(values), values.dtype)
    average = td.norm(values) / size
    return values * clip_norm / td.maximum(average, td.cast(clip_norm, values.dtype))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """A tensor whose norm, divided by the number of its elements, is `clip_norm` at most."""
    return recorded(_clipped_by_average, "clip_by_average_norm", "Mul")(t, clip_norm, name=name)


def _difference(x: Any, y: Any, index_dtype: Any) -> list[Any]:
    x, y = td.convert_to_tensor(x), td.convert_to_tensor(y)
    other = ~td.reduce_any(x[:, None] == td.cast(y, x.dtype)[None], 1)
    places = td.cast(td.where(other)[:, 0], index_dtype)
    return [td.gather(x, places), places]


def setdiff1d(x: Any, y: Any, index_dtype: Any = td.int32, name: str | None = None) -> Any:
    """The elements of a vector that another one has not, and where they are."""
    call = recorded(_difference, "ListDiff", "ListDiff")
    return ListDiff(*call(x, y, td.as_dtype(index_dtype), name=name))


class ListDiff(NamedTuple):
    """What `setdiff1d` gives."""

    out: Any
    idx: Any


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """A tensor of the graph; objects of several tensors, as sparse ones, as they are."""
    if isinstance(value, Composite | td.SparseTensor | td.IndexedSlices):
        return value
    return convert_to_tensor(value, dtype, name)


convert_to_tensor_or_indexed_slices = convert_to_tensor_or_sparse_tensor


def dimension_value(dimension: Any) -> int | None:
    """A size of a shape as a number, or None."""
    return getattr(dimension, "value", dimension)  # type: ignore[no-any-return]


def dimension_at_index(shape: Any, index: int) -> Any:
    """A size of a shape as a Dimension."""
    return Dimension(None) if shape.rank is None else Dimension(dimension_value(shape[index]))


in_graphs(
    _batch_gathered,
    _batch_jacobian,
    _clipped_by_average,
    _dense,
    _difference,
    _div,
    _eager_function,
    _gradients,
    _hessians,
    _jacobian,
    _printed,
    _python_function,
    _where,
)
