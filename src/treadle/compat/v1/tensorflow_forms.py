"""How treadle's ops are written as operations of TensorFlow, for graphs that it reads.

A call of a graph is one or more ops in the graph's outline. `written` gives the nodes of all of
them, or None where one has no form here: such a call is written as data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import treadle as td
from treadle.compat.graph_messages import message
from treadle.core.dtypes import DType
from treadle.core.names import unused_name
from treadle.core.shapes import Dim, symbol_name
from treadle.core.spec import TensorSpec
from treadle.ops.strings.tensors import NUMBERS, packed

Form: TypeAlias = "Callable[[_Call], str | Sequence[str] | None]"

_FORMS: dict[str, Form] = {}

# Ops of one or two inputs of one dtype, which is their attribute T.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "AddV2", "asin": "Asin",
    "asinh": "Asinh", "atan": "Atan", "atan2": "Atan2", "atanh": "Atanh", "ceil": "Ceil",
    "cholesky": "Cholesky", "cos": "Cos", "cosh": "Cosh", "digamma": "Digamma",
    "divide": "RealDiv", "divide_no_nan": "DivNoNan", "elu": "Elu", "equal": "Equal", "erf": "Erf",
    "erfc": "Erfc", "exp": "Exp", "expm1": "Expm1", "floor": "Floor", "floordiv": "FloorDiv",
    "greater": "Greater", "greater_equal": "GreaterEqual", "identity": "Identity",
    "inverse": "MatrixInverse", "is_finite": "IsFinite", "is_inf": "IsInf", "is_nan": "IsNan",
    "less": "Less", "less_equal": "LessEqual", "lgamma": "Lgamma", "log": "Log", "log1p": "Log1p",
    "maximum": "Maximum", "minimum": "Minimum", "mod": "FloorMod", "multiply": "Mul",
    "negative": "Neg", "not_equal": "NotEqual", "pow": "Pow", "reciprocal": "Reciprocal",
    "relu": "Relu", "relu6": "Relu6", "round": "Round", "rsqrt": "Rsqrt", "selu": "Selu",
    "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "softplus": "Softplus",
    "softsign": "Softsign", "sqrt": "Sqrt", "square": "Square",
    "squared_difference": "SquaredDifference", "stop_gradient": "StopGradient", "subtract": "Sub",
    "tan": "Tan", "tanh": "Tanh", "truncatediv": "TruncateDiv", "truncatemod": "TruncateMod",
    "whole": "Identity", "xdivy": "Xdivy", "xlogy": "Xlogy",
}  # fmt: skip
_REDUCTIONS = {
    "reduce_sum": "Sum", "reduce_mean": "Mean", "reduce_prod": "Prod", "reduce_max": "Max",
    "reduce_min": "Min", "reduce_any": "Any", "reduce_all": "All",
}  # fmt: skip


class Places:
    """Where a GraphDef has the values of an outline: names of tensors, and sizes of symbols.

    Args:
        taken: the names of the graph's operations, and of those that are written beside them.
    """

    def __init__(self, taken: set[str]) -> None:
        self.names: dict[Any, str] = {}
        self.taken = taken
        self._sizes: dict[str, tuple[str, int, DType]] = {}

    def copy(self) -> Places:
        """The same, for values of a call."""
        made = Places(self.taken)
        made.names, made._sizes = dict(self.names), dict(self._sizes)
        return made

    def unique(self, name: str) -> str:
        """`name`, with a number behind it where it is taken."""
        return unused_name(name, self.taken)

    def put(self, value: Any, name: str) -> None:
        """Let a value be the tensor of a name."""
        self.names[value] = name
        for axis, dim in enumerate(value.spec.dims if isinstance(value.spec, TensorSpec) else ()):
            symbol = symbol_name(dim)
            if symbol is not None:
                self._sizes.setdefault(symbol, (name, axis, value.spec.dtype))

    def size(self, symbol: str) -> tuple[str, int, DType] | None:
        """A tensor, and which of its dims has the size of a symbol."""
        return self._sizes.get(symbol)


class _NoForm(Exception):
    """An op cannot be written."""


class _Call:
    """One op of an outline, whose nodes are appended to a list."""

    def __init__(self, nodes: list[Any], scope: str, places: Places, node: Any) -> None:
        self.nodes, self._scope, self._places, self._node = nodes, scope, places, node
        if any(v not in places.names for v in node.inputs):
            raise _NoForm
        self.inputs = [places.names[v] for v in node.inputs]
        self.specs = [v.spec for v in node.inputs]
        self.outs = [v.spec for v in node.outputs]
        self.attrs: Mapping[str, Any] = node.attrs

    def add(self, type_: str, *inputs: str, **attrs: Any) -> str:
        """Append an operation; the name of its first result."""
        made = message("NodeDef")(op=type_, name=self._places.unique(f"{self._scope}/{type_}"))
        made.input.extend(inputs)
        for key, value in attrs.items():
            _write(made.attr[key], value)
        self.nodes.append(made)
        return str(made.name)

    def constant(self, value: Any, dtype: DType) -> str:
        array = np.asarray(value, dtype.np_dtype)
        made = self.add("Const", dtype=dtype)
        self.nodes[-1].attr["value"].tensor.MergeFromString(packed(array, dtype))
        return made

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int32), td.int32)

    def of(self, type_: str, *inputs: str, **attrs: Any) -> str:
        """An operation whose attribute T is the dtype of the op's first input."""
        return self.add(type_, *inputs, T=self.specs[0].dtype, **attrs)

    def size(self, dim: Dim) -> str:
        """A dim as a scalar int32."""
        if isinstance(dim, int):
            return self.constant(dim, td.int32)
        total = ""
        for atoms, coefficient in dim.terms:
            parts = [self._atom(atom) for atom in atoms]
            if coefficient != 1 or not parts:
                parts.append(self.constant(coefficient, td.int32))
            term = parts[0]
            for part in parts[1:]:
                term = self.add("Mul", term, part, T=td.int32)
            total = self.add("AddV2", total, term, T=td.int32) if total else term
        return total

    def _atom(self, atom: Any) -> str:
        if not isinstance(atom, str):
            kinds = {"floordiv": "FloorDiv", "mod": "FloorMod", "max": "Maximum", "min": "Minimum"}
            return self.add(kinds[atom[0]], *map(self.size, atom[1:]), T=td.int32)
        found = self._places.size(atom)
        if found is None:
            raise _NoForm
        name, axis, dtype = found
        shape = self.add("Shape", name, T=dtype, out_type=td.int32)
        ends = (self.integers(k) for k in (axis, axis + 1, 1))
        return self.add("StridedSlice", shape, *ends, T=td.int32, Index=td.int32,
                        shrink_axis_mask=1)  # fmt: skip

    def shape(self, dims: Sequence[Dim]) -> str:
        """Dims as a vector of int32."""
        if all(isinstance(d, int) for d in dims):
            return self.integers(*(int(str(d)) for d in dims))
        return self.add("Pack", *map(self.size, dims), N=len(dims), T=td.int32, axis=0)


def _write(attr: Any, value: Any) -> None:
    match value:
        case bool():
            attr.b = value
        case int():
            attr.i = value
        case float():
            attr.f = value
        case str():
            attr.s = value.encode()
        case DType():
            attr.type = NUMBERS[value]
        case _:
            attr.list.i.extend(value)


def written(
    name: str, nodes: Sequence[Any], results: Sequence[Any], places: Places
) -> list[Any] | None:
    """The NodeDefs of a call, the last of which has its name and gives its results; None where an
    op has no form.

    Args:
        nodes: the ops of the call in the outline; `results`: its results there.
    """
    made: list[Any] = []
    own = places.copy()
    try:
        for node in nodes:
            form = _FORMS.get(node.op.name)
            if form is None or any(v.spec.dtype.is_complex for v in node.outputs):
                return None
            found = form(_Call(made, name, own, node))
            if found is None:
                return None
            names = [found] if isinstance(found, str) else found
            for value, tensor in zip(node.outputs, names, strict=True):
                own.put(value, tensor)
        if not results or any(v not in own.names for v in results):
            return None
        inputs = [own.names[v] for v in results]
    except (_NoForm, KeyError):
        return None
    if made and inputs == [made[-1].name]:
        made[-1].name = name
    else:
        last = message("NodeDef")(name=name, op="IdentityN" if len(inputs) > 1 else "Identity")
        last.input.extend(inputs)
        numbers = [NUMBERS[v.spec.dtype] for v in results]
        if len(inputs) > 1:
            last.attr["T"].list.type.extend(numbers)
        else:
            last.attr["T"].type = numbers[0]
        made.append(last)
    return made


# -- forms -----------------------------------------------------------------------------------------


def _form(*names: str) -> Callable[[Form], Form]:
    def give(form: Form) -> Form:
        _FORMS.update(dict.fromkeys(names, form))
        return form

    return give


def _same(type_: str) -> Form:
    return lambda call: call.of(type_, *call.inputs)


for _name, _type in _SAME.items():
    _form(_name)(_same(_type))


@_form("const")
def _const(call: _Call) -> str:
    return call.constant(call.attrs["value"], call.outs[0].dtype)


@_form("read_variable", "require_sizes", "ensure_shape")
def _itself(call: _Call) -> str:
    return call.inputs[0]


@_form("logical_and", "logical_or", "logical_not")
def _logic(call: _Call) -> str:
    kinds = {"logical_and": "LogicalAnd", "logical_or": "LogicalOr", "logical_not": "LogicalNot"}
    return call.add(kinds[call._node.op.name], *call.inputs)


@_form("cast")
def _cast(call: _Call) -> str:
    return call.add("Cast", *call.inputs, SrcT=call.specs[0].dtype, DstT=call.outs[0].dtype)


@_form("where")
def _where(call: _Call) -> str:
    return call.add("SelectV2", *call.inputs, T=call.outs[0].dtype)


@_form("add_n")
def _add_n(call: _Call) -> str:
    return call.of("AddN", *call.inputs, N=len(call.inputs))


@_form("leaky_relu")
def _leaky_relu(call: _Call) -> str:
    return call.of("LeakyRelu", *call.inputs, alpha=float(call.attrs["alpha"]))


@_form("silu")
def _silu(call: _Call) -> str | None:
    if call.attrs["beta"] != 1:
        return None
    return call.of("Mul", call.inputs[0], call.of("Sigmoid", *call.inputs))


@_form("softmax", "log_softmax")
def _softmax(call: _Call) -> str | None:
    if call.attrs["axis"] != call.specs[0].rank - 1:
        return None
    return call.of("Softmax" if call._node.op.name == "softmax" else "LogSoftmax", *call.inputs)


@_form("sigmoid_cross_entropy")
def _sigmoid_loss(call: _Call) -> str:
    return call.of("Sub", call.of("Softplus", call.inputs[0]), call.of("Mul", *call.inputs))


@_form("softmax_cross_entropy")
def _softmax_loss(call: _Call) -> str:
    logits, labels = call.inputs
    terms = call.of("Mul", labels, call.of("LogSoftmax", logits))
    total = call.of("Sum", terms, call.integers(-1), Tidx=td.int32, keep_dims=False)
    return call.of("Neg", total)


@_form("sparse_softmax_cross_entropy")
def _sparse_loss(call: _Call) -> str | None:
    if call.specs[0].rank != 2 or call.specs[1].dtype not in (td.int32, td.int64):
        return None
    kind = "SparseSoftmaxCrossEntropyWithLogits"
    return call.of(kind, *call.inputs, Tlabels=call.specs[1].dtype)


@_form("shape")
def _shape(call: _Call) -> str:
    return call.of("Shape", *call.inputs, out_type=call.outs[0].dtype)


@_form("dim")
def _dim(call: _Call) -> str:
    found, dtype = call.size(call.attrs["dim"]), call.outs[0].dtype
    return found if dtype is td.int32 else call.add("Cast", found, SrcT=td.int32, DstT=dtype)


@_form("reshape")
def _reshape(call: _Call) -> str:
    dims = call.attrs["shape"]
    opened = [k for k, d in enumerate(dims) if not isinstance(d, int)]
    if len(opened) == 1 and 0 not in dims:
        dims = [-1 if k == opened[0] else d for k, d in enumerate(dims)]
    return call.of("Reshape", call.inputs[0], call.shape(dims), Tshape=td.int32)


@_form("broadcast_to")
def _broadcast_to(call: _Call) -> str:
    return call.of("BroadcastTo", call.inputs[0], call.shape(call.attrs["shape"]), Tidx=td.int32)


@_form("fill")
def _fill(call: _Call) -> str:
    shape = call.shape(call.attrs["shape"])
    return call.of("Fill", shape, call.inputs[0], index_type=td.int32)


@_form("transpose")
def _transpose(call: _Call) -> str:
    order = call.integers(*call.attrs["perm"])
    return call.of("Transpose", call.inputs[0], order, Tperm=td.int32)


@_form("reverse")
def _reverse(call: _Call) -> str:
    axes = call.integers(*call.attrs["axis"])
    return call.of("ReverseV2", call.inputs[0], axes, Tidx=td.int32)


@_form("concat")
def _concat(call: _Call) -> str:
    axis = call.constant(call.attrs["axis"], td.int32)
    return call.of("ConcatV2", *call.inputs, axis, N=len(call.inputs), Tidx=td.int32)


@_form("stack")
def _stack(call: _Call) -> str:
    return call.of("Pack", *call.inputs, N=len(call.inputs), axis=call.attrs["axis"])


@_form("pad")
def _pad(call: _Call) -> str | None:
    pads, mode = call.attrs["paddings"], call.attrs["mode"]
    if not all(isinstance(p, int) for pair in pads for p in pair):
        return None
    given = call.constant(np.array(pads, np.int32).reshape(-1, 2), td.int32)
    if mode != "constant":
        return call.of("MirrorPad", call.inputs[0], given, Tpaddings=td.int32, mode=mode.upper())
    value = call.constant(call.attrs["value"], call.outs[0].dtype)
    return call.of("PadV2", call.inputs[0], given, value, Tpaddings=td.int32)


@_form("strided_slice")
def _strided_slice(call: _Call) -> str | None:
    begin, size, strides = (call.attrs[k] for k in ("begin", "size", "strides"))
    ends = [b + n * s for b, n, s in zip(begin, size, strides, strict=True)]
    mask = 0
    for axis, (end, step) in enumerate(zip(ends, strides, strict=True)):
        if step < 0 and not isinstance(end, int):
            return None
        mask |= (step < 0 and end < 0) << axis
    parts = (call.shape(begin), call.shape(ends), call.integers(*strides))
    return call.of("StridedSlice", call.inputs[0], *parts, Index=td.int32, end_mask=int(mask))


@_form("gather")
def _gather(call: _Call) -> str | None:
    x, places = call.specs
    if places.dtype not in (td.int32, td.int64):
        return None
    axis = call.constant(call.attrs["axis"], td.int32)
    return call.add("GatherV2", *call.inputs, axis, Tparams=x.dtype, Tindices=places.dtype,
                    Taxis=td.int32, batch_dims=call.attrs["batch_dims"])  # fmt: skip


@_form("gather_nd")
def _gather_nd(call: _Call) -> str | None:
    x, places = call.specs
    if places.dtype not in (td.int32, td.int64):
        return None
    return call.add("GatherNd", *call.inputs, Tparams=x.dtype, Tindices=places.dtype)


@_form("one_hot")
def _one_hot(call: _Call) -> str | None:
    dtype, indices = call.outs[0].dtype, call.specs[0].dtype
    if indices not in (td.int32, td.int64, td.uint8):
        return None
    x, on, off = call.inputs
    depth = call.size(call.attrs["depth"])
    return call.add("OneHot", x, depth, on, off, T=dtype, TI=indices, axis=call.attrs["axis"])


@_form("range")
def _range(call: _Call) -> str:
    start, delta, size = (call.attrs[k] for k in ("start", "delta", "size"))
    dtype = call.outs[0].dtype
    if all(isinstance(n, int | float) for n in (start, delta, size)):
        return call.constant(start + np.arange(size) * delta, dtype)
    if isinstance(start, float) or isinstance(delta, float):
        raise _NoForm
    parts = (call.size(n) for n in (start, start + size * delta, delta))
    found = call.add("Range", *parts, Tidx=td.int32)
    return found if dtype is td.int32 else call.add("Cast", found, SrcT=td.int32, DstT=dtype)


@_form(*_REDUCTIONS)
def _reduce(call: _Call) -> str:
    axes, kind = call.attrs["axis"], _REDUCTIONS[call._node.op.name]
    if not axes:
        return call.inputs[0]
    about = {} if kind in ("Any", "All") else {"T": call.specs[0].dtype}
    given = call.integers(*axes)
    keeps = bool(call.attrs["keepdims"])
    return call.add(kind, call.inputs[0], given, Tidx=td.int32, keep_dims=keeps, **about)


@_form("argmax", "argmin")
def _argmax(call: _Call) -> str:
    kind = "ArgMax" if call._node.op.name == "argmax" else "ArgMin"
    axis = call.constant(call.attrs["axis"], td.int32)
    return call.of(kind, call.inputs[0], axis, Tidx=td.int32, output_type=call.outs[0].dtype)


@_form("cumsum", "cumprod")
def _cumulative(call: _Call) -> str:
    kind = "Cumsum" if call._node.op.name == "cumsum" else "Cumprod"
    axis = call.constant(call.attrs["axis"], td.int32)
    flags = {key: bool(call.attrs[key]) for key in ("exclusive", "reverse")}
    return call.of(kind, call.inputs[0], axis, Tidx=td.int32, **flags)


@_form("top_k")
def _top_k(call: _Call) -> list[str]:
    found = call.of("TopKV2", call.inputs[0], call.size(call.attrs["k"]), sorted=True)
    places, dtype = f"{found}:1", call.outs[1].dtype
    if dtype is not td.int32:
        places = call.add("Cast", places, SrcT=td.int32, DstT=dtype)
    return [found, places]


@_form("matmul")
def _matmul(call: _Call) -> str:
    flips = [bool(call.attrs[key]) for key in ("transpose_a", "transpose_b")]
    if all(spec.rank == 2 for spec in call.specs):
        return call.of("MatMul", *call.inputs, transpose_a=flips[0], transpose_b=flips[1])
    return call.of("BatchMatMulV2", *call.inputs, adj_x=flips[0], adj_y=flips[1])


@_form("byte_matmul")
def _byte_matmul(call: _Call) -> str:
    first, second = (spec.dtype for spec in call.specs)
    return call.add(
        "BatchMatMulV3", *call.inputs, Ta=first, Tb=second, Tout=call.outs[0].dtype,
        adj_x=bool(call.attrs["transpose_a"]), adj_y=bool(call.attrs["transpose_b"]),
    )  # fmt: skip


def _windows(call: _Call) -> dict[str, Any]:
    padding = call.attrs["padding"]
    attrs = {"strides": [1, *call.attrs["strides"], 1], "data_format": "NHWC"}
    if isinstance(padding, str):
        return attrs | {"padding": padding}
    pads = [0, 0, *(p for pair in padding for p in pair), 0, 0]
    return attrs | {"padding": "EXPLICIT", "explicit_paddings": pads}


@_form("conv2d")
def _conv2d(call: _Call) -> str:
    dilations = [1, *call.attrs["dilations"], 1]
    return call.of("Conv2D", *call.inputs, dilations=dilations, **_windows(call))


@_form("max_pool", "avg_pool")
def _pool(call: _Call) -> str | None:
    attrs = _windows(call)
    if "explicit_paddings" in attrs:
        return None
    kind = "MaxPool" if call._node.op.name == "max_pool" else "AvgPool"
    return call.of(kind, *call.inputs, ksize=[1, *call.attrs["window"], 1], **attrs)
