"""Operations of TensorFlow's graphs that are gradients of others, and those that gradients need.

Most give what a tape gives for the operation that they are the gradient of: it is computed again,
and passes let it be computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import treadle as td
from treadle.compat.tensorflow_ops import Attrs, rule, run_operation
from treadle.core.origin import at, user_origin
from treadle.ops.dims import partial_dims

# -- functions of elements -------------------------------------------------------------------------

# By types, the gradient from the result of the forward operation and that of the loss.
_FROM_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "RsqrtGrad": lambda y, dy: dy * -0.5 * y * y * y,
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
}
for _type, _function in _FROM_RESULTS.items():
    rule(_type)(lambda inputs, attrs, function=_function: function(*inputs))  # type: ignore[misc]

# By types, those of the forward operations: the inputs are the loss's gradient, and an argument of
# the forward operation, or its result where that tells as much.
_FROM_ARGUMENTS = {
    "ReluGrad": "Relu", "Relu6Grad": "Relu6", "LeakyReluGrad": "LeakyRelu",
    "SoftplusGrad": "Softplus", "SoftsignGrad": "Softsign",
}  # fmt: skip


def pulled_back(function: Callable[[Any], Any], x: Any, dy: Any) -> Any:
    """The gradient with respect to `x` of the loss whose gradient for ``function(x)`` is `dy`."""
    with td.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x, output_gradients=dy, unconnected_gradients="zero")


def _of_argument(type_: str) -> Callable[[Sequence[Any], Attrs], Any]:
    def gradient(inputs: Sequence[Any], attrs: Attrs) -> Any:
        dy, x = inputs
        return pulled_back(lambda x: run_operation(type_, attrs, x), x, dy)

    return gradient


for _type, _forward in _FROM_ARGUMENTS.items():
    rule(_type)(_of_argument(_forward))


@rule("EluGrad")
def _elu_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    dy, y = inputs
    return td.where(y < 0, dy * (y + 1), dy)


@rule("SeluGrad")
def _selu_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    dy, y = inputs
    scale, alpha = 1.0507009873554805, 1.6732632423543772  # as the paper of SELU has them
    return td.where(y < 0, dy * (y + scale * alpha), dy * scale)


# -- sums over what was broadcast ------------------------------------------------------------------


@rule("BroadcastGradientArgs", results="r0 r1")
def _broadcast_axes(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The axes over which the gradients of two operands are summed. Sizes that only a run tells
    are taken to be equal: where they are not, what follows refuses the number of elements."""
    shapes = [partial_dims(x) for x in inputs]
    rank = max(map(len, shapes))
    a, b = ((1,) * (rank - len(part)) + part for part in shapes)
    wrong = [i for i, (m, n) in enumerate(zip(a, b, strict=True)) if _differ(m, n)]
    if wrong:
        text = f"Incompatible shapes: {list(shapes[0])} vs. {list(shapes[1])}"
        raise td.errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    alike = shapes[0] == shapes[1]
    found = ([i for i, size in enumerate(dims) if size == 1 and not alike] for dims in (a, b))
    return tuple(td.constant(axes, inputs[0].dtype) for axes in found)


def _differ(size: Any, other: Any) -> bool:
    known = isinstance(size, int) and isinstance(other, int)
    return known and size != other and 1 not in (size, other)


@rule("BiasAddGrad")
def _bias_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    (dy,) = inputs
    place = 1 if attrs.get("data_format", "NHWC") == "NCHW" else len(dy.shape) - 1
    return td.reduce_sum(dy, [axis for axis in range(len(dy.shape)) if axis != place])


# -- windows ---------------------------------------------------------------------------------------


class _Forward(NamedTuple):
    """The operation whose gradient another one is.

    Attributes:
        type: of the operation.
        operands: how many it has.
        place: the number of the operand that the gradient is for.
        by_sizes: whether the sizes of this operand are given instead of it.
    """

    type: str
    operands: int
    place: int
    by_sizes: bool


_OF_WINDOWS = {
    "Conv2DBackpropFilter": _Forward("Conv2D", 2, 1, True),
    "DepthwiseConv2dNativeBackpropInput": _Forward("DepthwiseConv2dNative", 2, 0, True),
    "DepthwiseConv2dNativeBackpropFilter": _Forward("DepthwiseConv2dNative", 2, 1, True),
    "Conv3DBackpropInputV2": _Forward("Conv3D", 2, 0, True),
    "Conv3DBackpropFilterV2": _Forward("Conv3D", 2, 1, True),
    "Dilation2DBackpropInput": _Forward("Dilation2D", 2, 0, False),
    "Dilation2DBackpropFilter": _Forward("Dilation2D", 2, 1, False),
    "MaxPoolGrad": _Forward("MaxPool", 1, 0, False),
    "MaxPool3DGrad": _Forward("MaxPool3D", 1, 0, False),
    "AvgPoolGrad": _Forward("AvgPool", 1, 0, True),
    "AvgPool3DGrad": _Forward("AvgPool3D", 1, 0, True),
}


def _of_window(forward: _Forward) -> Callable[[Sequence[Any], Attrs], Any]:
    type_, count, place, by_sizes = forward

    def gradient(inputs: Sequence[Any], attrs: Attrs) -> Any:
        operands, dy = list(inputs[:count]), inputs[-1]
        x = td.zeros(operands[place], dy.dtype) if by_sizes else operands[place]

        def run(x: Any) -> Any:
            return run_operation(type_, attrs, *operands[:place], x, *operands[place + 1 :])

        return pulled_back(run, x, dy)

    return gradient


for _window, _of in _OF_WINDOWS.items():
    rule(_window)(_of_window(_of))


@rule(
    "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
    results="x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5",
)
def _batch_norm_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The results beside the three gradients are empty."""
    dy, x, scale, mean, variance = inputs[:5]
    is_first = attrs.get("data_format", "NHWC") == "NCHW"
    axes = (0, 2, 3) if is_first else (0, 1, 2)
    epsilon = attrs.get("epsilon", 1e-4)

    def forward(x: Any, scale: Any, offset: Any) -> Any:
        if attrs.get("is_training", True):
            m, v = td.nn.moments(x, axes, keepdims=True)
        else:
            m, v = (td.reshape(part, shape) for part in (mean, variance))
        s, b = (td.reshape(part, shape) for part in (scale, offset))
        return (x - m) * td.math.rsqrt(v + epsilon) * s + b

    shape = [1, -1, 1, 1] if is_first else [1, 1, 1, -1]
    offset = td.zeros_like(scale)
    with td.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x, scale, offset])
        y = forward(x, scale, offset)
    found = tape.gradient(y, [x, scale, offset], output_gradients=dy)
    return (*found, td.zeros([0], scale.dtype), td.zeros([0], scale.dtype))


# -- parts -----------------------------------------------------------------------------------------


@rule("StridedSliceGrad")
def _strided_slice_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    sizes, begin, end, strides, dy = inputs
    x = td.zeros(sizes, dy.dtype)
    return pulled_back(
        lambda x: run_operation("StridedSlice", attrs, x, begin, end, strides), x, dy
    )


@rule("ConcatOffset")
def _offsets(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """Where each part of what was concatenated begins."""
    axis, *shapes = inputs
    rank = td.size(shapes[0])
    number, ranks = td.get_static_value(axis), {n for n in map(_length, shapes) if n is not None}
    outside = number is not None and ranks and not -min(ranks) <= number < min(ranks)
    if len(ranks) > 1 or outside:
        text = f"ConcatOffset: concat_dim {axis} of shapes of lengths {sorted(ranks)}"
        raise td.errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")
    chosen = td.one_hot(td.where(axis < 0, axis + rank, axis), rank, dtype=shapes[0].dtype)
    begins = [td.zeros_like(shapes[0])]
    for shape in shapes[:-1]:
        begins.append(begins[-1] + shape * chosen)
    return tuple(begins)


def _length(vector: Any) -> int | None:
    found: int | None = vector.shape.as_list()[0]  # in graphs of TensorFlow 1 not a Dimension
    return found


@rule("DynamicStitch")
def _stitch(inputs: Sequence[Any], attrs: Attrs) -> Any:
    count = len(inputs) // 2
    return td.dynamic_stitch(list(inputs[:count]), list(inputs[count:]))
