"""Operations of TensorFlow's graphs as calls of treadle's functions.

`run_operation` gives the results of an operation of a type for the values of its inputs. Types
whose inputs are those of a function of treadle need a line; attributes are values of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import treadle as td
from treadle.compat import corner_sampling
from treadle.core.origin import at, user_origin
from treadle.core.spec import ListSpec
from treadle.keras.layers.preprocessing.projections import projected
from treadle.ops.indexing.bad_positions import kept
from treadle.ops.registry import run
from treadle.ops.special import gamma
from treadle.ops.statistics.uniques import unique_along

Attrs: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = "Callable[[Sequence[Any], Attrs], Any]"

_RULES: dict[str, Rule] = {}
# The names of the results of types that have several, as functions of graphs name them.
RESULTS: dict[str, tuple[str, ...]] = {}


def run_operation(type_: str, attrs: Attrs, *inputs: Any) -> Any:
    """What an operation of TensorFlow gives: a tensor, a tuple of them, or None."""
    return _RULES[type_](inputs, attrs)


def is_known(type_: str) -> bool:
    """Whether operations of a type can be read."""
    return type_ in _RULES


def rule(*types: str, results: str = "") -> Callable[[Rule], Rule]:
    """Gives the function that computes operations of some types.

    Args:
        results: the names of their results, where there are several.
    """

    def give(given: Rule) -> Rule:
        _RULES.update(dict.fromkeys(types, given))
        if results:
            RESULTS.update(dict.fromkeys(types, tuple(results.split())))
        return given

    return give


def constant(value: Any, what: str) -> Any:
    """The elements of an input that must be known when the graph is made.

    Raises:
        UnimplementedError: only a run tells them.
    """
    found = td.get_static_value(value)
    if found is None:
        raise td.errors.UnimplementedError(None, None, f"{what} must be a constant of the graph")
    return np.asarray(found).tolist()


# -- functions of elements -------------------------------------------------------------------------

_SAME: dict[str, Callable[..., Any]] = {
    "Abs": td.abs, "Acos": td.acos, "Acosh": td.acosh, "Add": td.add, "AddV2": td.add,
    "Asin": td.asin, "Asinh": td.asinh, "Atan": td.atan, "Atan2": td.atan2, "Atanh": td.atanh,
    "BitwiseAnd": td.bitwise.bitwise_and, "BitwiseOr": td.bitwise.bitwise_or,
    "BitwiseXor": td.bitwise.bitwise_xor, "BroadcastTo": td.broadcast_to, "Ceil": td.math.ceil,
    "Cholesky": td.linalg.cholesky, "ClipByValue": td.clip_by_value, "Cos": td.cos,
    "Cosh": td.cosh, "Digamma": td.math.digamma, "DivNoNan": td.math.divide_no_nan,
    "Elu": td.nn.elu, "Erf": td.math.erf,
    "Erfc": td.math.erfc, "Exp": td.exp, "Expm1": td.math.expm1, "Fill": td.fill,
    "Floor": td.floor, "FloorDiv": td.math.floordiv, "FloorMod": td.math.floormod,
    "GatherNd": td.gather_nd, "Greater": td.greater, "GreaterEqual": td.greater_equal,
    "Inv": td.math.reciprocal, "Invert": td.bitwise.invert,
    "InvertPermutation": td.math.invert_permutation, "IsFinite": td.math.is_finite,
    "IsInf": td.math.is_inf, "IsNan": td.math.is_nan, "L2Loss": td.nn.l2_loss,
    "LeftShift": td.bitwise.left_shift, "Less": td.less, "LessEqual": td.less_equal,
    "Lgamma": td.math.lgamma, "LinSpace": td.linspace, "Log": td.math.log,
    "Log1p": td.math.log1p, "LogSoftmax": td.nn.log_softmax, "LogicalAnd": td.logical_and,
    "LogicalNot": td.logical_not, "LogicalOr": td.logical_or, "MatrixDeterminant": td.linalg.det,
    "Maximum": td.maximum, "Minimum": td.minimum, "Mul": td.multiply,
    "MulNoNan": td.math.multiply_no_nan, "Neg": td.negative, "OnesLike": td.ones_like,
    "Pow": td.pow, "PreventGradient": td.identity, "Range": td.range, "RealDiv": td.divide,
    "Reciprocal": td.math.reciprocal, "Relu": td.nn.relu, "Relu6": td.nn.relu6,
    "Reshape": td.reshape, "RightShift": td.bitwise.right_shift, "Rint": td.round,
    "Round": td.round, "Rsqrt": td.math.rsqrt, "SelectV2": td.where,
    "Selu": td.nn.selu, "Sigmoid": td.sigmoid, "Sign": td.sign, "Sin": td.sin, "Sinh": td.sinh,
    "Size": td.size, "Slice": td.slice, "Snapshot": td.identity, "Softmax": td.nn.softmax,
    "Softplus": td.nn.softplus, "Softsign": td.nn.softsign, "Sqrt": td.sqrt, "Square": td.square,
    "SquaredDifference": td.math.squared_difference, "StopGradient": td.stop_gradient,
    "Sub": td.subtract, "Tan": td.tan, "Tanh": td.tanh, "Tile": td.tile,
    "TruncateDiv": td.truncatediv, "TruncateMod": td.truncatemod, "Xdivy": td.math.xdivy,
    "Xlog1py": td.math.xlog1py, "Xlogy": td.math.xlogy, "ZerosLike": td.zeros_like,
    "TensorScatterAdd": td.tensor_scatter_nd_add, "TensorScatterSub": td.tensor_scatter_nd_sub,
    "TensorScatterMax": td.tensor_scatter_nd_max, "TensorScatterMin": td.tensor_scatter_nd_min,
    "ScatterNd": td.scatter_nd, "UnsortedSegmentSum": td.math.unsorted_segment_sum,
    "UnsortedSegmentMax": td.math.unsorted_segment_max,
    "UnsortedSegmentMin": td.math.unsorted_segment_min,
    "UnsortedSegmentProd": td.math.unsorted_segment_prod,
    "MatrixInverse": td.linalg.inv, "MatrixDiag": td.linalg.diag, "Pad": td.pad,
    "NotEqual": td.not_equal, "Equal": td.equal, "Real": td.math.real, "Imag": td.math.imag,
    "Conj": td.math.conj,
    "BesselJ0": td.math.special.bessel_j0, "BesselJ1": td.math.special.bessel_j1,
    "BesselK0": td.math.special.bessel_k0, "BesselK0e": td.math.special.bessel_k0e,
    "BesselK1": td.math.special.bessel_k1, "BesselK1e": td.math.special.bessel_k1e,
    "BesselY0": td.math.special.bessel_y0, "BesselY1": td.math.special.bessel_y1,
    "Dawsn": td.math.special.dawsn, "Expint": td.math.special.expint,
    "FresnelCos": td.math.special.fresnel_cos, "FresnelSin": td.math.special.fresnel_sin,
    "Spence": td.math.special.spence,
}  # fmt: skip


# Of these, attributes that the functions have as parameters of the same names.
_PASSED_ON = {"MatrixInverse": ("adjoint",), "Size": ("out_type",)} | dict.fromkeys(
    (
        "GatherNd", "ScatterNd", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax",
        "TensorScatterMin",
    ),
    ("bad_indices_policy",),
)  # fmt: skip


def _same(function: Callable[..., Any], names: tuple[str, ...]) -> Rule:
    def call(inputs: Sequence[Any], attrs: Attrs) -> Any:
        return function(*inputs, **{name: attrs[name] for name in names if name in attrs})

    return call


for _type, _function in _SAME.items():
    rule(_type)(_same(_function, _PASSED_ON.get(_type, ())))


@rule("TensorScatterUpdate")
def _updated(inputs: Sequence[Any], attrs: Attrs) -> Any:
    tensor, indices, updates = map(td.convert_to_tensor, inputs)
    places, parts = kept(indices, updates, tensor.dims, attrs.get("bad_indices_policy", ""))
    return td.tensor_scatter_nd_update(tensor, places, parts)


@rule("Const")
def _const(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.constant(attrs["value"])


@rule("Assert")
def _assert(inputs: Sequence[Any], attrs: Attrs) -> None:
    condition, *data = inputs
    td.debugging.Assert(condition, data, attrs.get("summarize", 3))


@rule("NoOp")
def _nothing(inputs: Sequence[Any], attrs: Attrs) -> None:
    return None


@rule("CheckNumerics")
def _checked(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.debugging.check_numerics(inputs[0], attrs.get("message", ""))


@rule("EnsureShape")
def _of_shape(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.ensure_shape(inputs[0], attrs["shape"])


@rule("Identity", "PlaceholderWithDefault")
def _first(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _itself(inputs[0])


@rule("IdentityN")
def _identities(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return tuple(map(_itself, inputs))


def _itself(value: Any) -> Any:
    """A tensor, or a list of tensors."""
    return value if isinstance(value.spec, ListSpec) else td.identity(value)


@rule("Bitcast")
def _bitcast(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.bitcast(inputs[0], attrs["type"])


@rule("Cast")
def _cast(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.cast(inputs[0], attrs["DstT"])


@rule("Mod")
def _mod(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.truncatemod(*inputs)


@rule("Div")
def _div(inputs: Sequence[Any], attrs: Attrs) -> Any:
    function = td.truncatediv if inputs[0].dtype.is_integer else td.divide
    return function(*inputs)


@rule("Select")
def _select(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """A vector chooses rows."""
    chosen, a, b = inputs
    if len(chosen.shape) == 1 and len(a.shape) > 1:
        chosen = td.reshape(chosen, [-1, *[1] * (len(a.shape) - 1)])
    return td.where(chosen, a, b)


@rule("AddN")
def _add_n(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.add_n(list(inputs))


@rule("LeakyRelu")
def _leaky_relu(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.nn.leaky_relu(inputs[0], attrs.get("alpha", 0.2))


# -- shapes ----------------------------------------------------------------------------------------


@rule("Shape")
def _shape(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.shape(inputs[0], attrs.get("out_type", td.int32))


@rule("ShapeN")
def _shape_n(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return tuple(td.shape(x, attrs.get("out_type", td.int32)) for x in inputs)


@rule("Rank")
def _rank(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.rank(inputs[0])


@rule("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def _matrix_diag_part(inputs: Sequence[Any], attrs: Attrs) -> Any:
    given = dict(zip(("input", "k", "padding_value"), inputs, strict=False))
    if "k" in given:
        given["k"] = constant(given["k"], "the diagonals that are taken")
    return td.linalg.diag_part(align=attrs.get("align", "LEFT_LEFT"), **given)


@rule("IgammaGradA")
def _igamma_slope(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return run(gamma.SLOPE, *inputs)


@rule("RandomGammaGrad")
def _random_gamma_slope(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return run(gamma.SAMPLE_SLOPE, *inputs)


@rule("Transpose", "ConjugateTranspose")
def _transpose(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.transpose(inputs[0], constant(inputs[1], "the order of axes"))


@rule("ExpandDims")
def _expand_dims(inputs: Sequence[Any], attrs: Attrs) -> Any:
    axis = constant(inputs[1], "an axis")
    return td.expand_dims(inputs[0], axis[0] if isinstance(axis, list) else axis)


@rule("Squeeze")
def _squeeze(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.squeeze(inputs[0], attrs.get("squeeze_dims") or None)


@rule("ConcatV2")
def _concat(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.concat(list(inputs[:-1]), constant(inputs[-1], "an axis"))


@rule("Concat")
def _old_concat(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.concat(list(inputs[1:]), constant(inputs[0], "an axis"))


@rule("Pack")
def _pack(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.stack(list(inputs), attrs.get("axis", 0))


@rule("Unpack")
def _unpack(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return tuple(td.unstack(inputs[0], attrs["num"], attrs.get("axis", 0)))


@rule("Split")
def _split(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return tuple(td.split(inputs[1], attrs["num_split"], constant(inputs[0], "an axis")))


@rule("SplitV")
def _split_v(inputs: Sequence[Any], attrs: Attrs) -> Any:
    sizes = constant(inputs[1], "the sizes of parts")
    return tuple(td.split(inputs[0], sizes, constant(inputs[2], "an axis")))


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@rule("StridedSlice")
def _strided_slice(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strided_slice(*inputs, **{key: attrs.get(key, 0) for key in _MASKS})


@rule("PadV2")
def _pad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.pad(inputs[0], inputs[1], constant_values=inputs[2])


@rule("MirrorPad")
def _mirror_pad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.pad(inputs[0], inputs[1], mode=attrs["mode"])


@rule("ReverseV2")
def _reverse(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.reverse(inputs[0], constant(inputs[1], "axes"))


@rule("OneHot")
def _one_hot(inputs: Sequence[Any], attrs: Attrs) -> Any:
    indices, depth, on, off = inputs
    return td.one_hot(indices, depth, on, off, attrs.get("axis", -1))


@rule("Gather")
def _old_gather(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.gather(*inputs)


@rule("GatherV2")
def _gather(inputs: Sequence[Any], attrs: Attrs) -> Any:
    params, indices, axis = inputs
    batch_dims = attrs.get("batch_dims", 0)
    return td.gather(params, indices, axis=constant(axis, "an axis"), batch_dims=batch_dims)


@rule("Where")
def _where(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.where(inputs[0])


@rule("Unique", results="y idx")
def _unique(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return tuple(td.unique(inputs[0], attrs.get("out_idx", td.int32)))


@rule("UniqueV2", results="y idx")
def _unique_rows(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _with_counts(inputs, attrs)[:2]


@rule("UniqueWithCounts", "UniqueWithCountsV2", results="y idx count")
def _with_counts(inputs: Sequence[Any], attrs: Attrs) -> Any:
    given = constant(inputs[1], "the axis of unique elements") if len(inputs) > 1 else []
    axes = given if isinstance(given, list) else [given]
    x, kind = inputs[0], td.as_dtype(attrs.get("out_idx", td.int32))
    if not axes or len(x.shape) == 1:
        return tuple(td.unique_with_counts(x, kind))
    if len(axes) != 1 or not -len(x.shape) <= axes[0] < len(x.shape):
        text = f"UniqueV2: axis {axes} of a tensor of shape {x.shape}{at(user_origin())}"
        raise td.errors.InvalidArgumentError(None, None, text)
    return unique_along(x, axes[0] % len(x.shape), kind)


@rule("Bucketize")
def _bucketize(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x = inputs[0]
    edges = td.cast(td.constant(attrs["boundaries"], td.float32), td.float64)
    found = td.searchsorted(edges, td.cast(td.reshape(x, [-1]), td.float64), "right")
    return td.reshape(found, td.shape(x))


# -- reductions ------------------------------------------------------------------------------------

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Sum": td.reduce_sum, "Mean": td.reduce_mean, "Max": td.reduce_max, "Min": td.reduce_min,
    "Prod": td.reduce_prod, "All": td.reduce_all, "Any": td.reduce_any,
}  # fmt: skip


def _reduction(function: Callable[..., Any]) -> Rule:
    return lambda inputs, attrs: function(
        inputs[0], constant(inputs[1], "axes"), attrs.get("keep_dims", False)
    )


for _type, _function in _REDUCTIONS.items():
    rule(_type)(_reduction(_function))


@rule("ArgMax")
def _arg_max(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.argmax(inputs[0], constant(inputs[1], "an axis"), attrs.get("output_type", td.int64))


@rule("ArgMin")
def _arg_min(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.argmin(inputs[0], constant(inputs[1], "an axis"), attrs.get("output_type", td.int64))


@rule("Cumsum")
def _cumsum(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.cumsum(inputs[0], constant(inputs[1], "an axis"), *_direction(attrs))


@rule("Cumprod")
def _cumprod(inputs: Sequence[Any], attrs: Attrs) -> Any:
    axis = constant(inputs[1], "an axis")
    return td.math.cumprod(inputs[0], axis, *_direction(attrs))


def _direction(attrs: Attrs) -> tuple[bool, bool]:
    return attrs.get("exclusive", False), attrs.get("reverse", False)


@rule("TopKV2", results="values indices")
def _top_k(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, k = inputs
    return tuple(td.math.top_k(x, k, sorted=attrs.get("sorted", True)))


# -- products and windows --------------------------------------------------------------------------


@rule("MatMul")
def _mat_mul(inputs: Sequence[Any], attrs: Attrs) -> Any:
    a, b = inputs
    return td.matmul(a, b, attrs.get("transpose_a", False), attrs.get("transpose_b", False))


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_mat_mul(inputs: Sequence[Any], attrs: Attrs) -> Any:
    a, b = inputs
    return td.matmul(
        a, b, adjoint_a=attrs.get("adj_x", False), adjoint_b=attrs.get("adj_y", False),
        output_type=attrs.get("Tout"),
    )  # fmt: skip


@rule("Einsum")
def _einsum(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.einsum(attrs["equation"], *inputs)


@rule("BiasAdd")
def _bias_add(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, bias = inputs
    return td.nn.bias_add(x, bias, data_format=attrs.get("data_format", "NHWC"))


def _padding(attrs: Attrs) -> Any:
    """A word, or pairs of numbers for all axes."""
    pads = attrs.get("explicit_paddings", [])
    if attrs["padding"] != "EXPLICIT":
        return attrs["padding"]
    return [pads[k : k + 2] for k in range(0, len(pads), 2)]


def _windows(attrs: Attrs) -> dict[str, Any]:
    return {
        "strides": attrs["strides"], "padding": _padding(attrs),
        "data_format": attrs.get("data_format", "NHWC"),
    }  # fmt: skip


@rule("Conv2D")
def _conv2d(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, filters = inputs
    return td.nn.conv2d(x, filters, **_windows(attrs), dilations=attrs.get("dilations"))


@rule("Conv2DBackpropInput")
def _conv2d_transpose(inputs: Sequence[Any], attrs: Attrs) -> Any:
    sizes, filters, dy = inputs
    dilations = attrs.get("dilations")
    return td.nn.conv2d_transpose(dy, filters, sizes, **_windows(attrs), dilations=dilations)


@rule("DepthwiseConv2dNative")
def _depthwise(inputs: Sequence[Any], attrs: Attrs) -> Any:
    given = _windows(attrs)
    axes = (1, 2) if given["data_format"] == "NHWC" else (2, 3)
    dilations = [attrs.get("dilations", [1] * 4)[k] for k in axes]
    x, filters = inputs
    return td.nn.depthwise_conv2d(x, filters, **given, dilations=dilations)


@rule("MaxPool")
def _max_pool(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.nn.max_pool2d(inputs[0], attrs["ksize"], **_windows(attrs))


@rule("AvgPool")
def _avg_pool(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.nn.avg_pool2d(inputs[0], attrs["ksize"], **_windows(attrs))


@rule("LRN")
def _lrn(inputs: Sequence[Any], attrs: Attrs) -> Any:
    keys = ("depth_radius", "bias", "alpha", "beta")
    return td.nn.local_response_normalization(
        inputs[0], **{key: attrs[key] for key in keys if key in attrs}
    )


@rule(
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
    results="y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3",
)
def _batch_norm(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """Where it trains, the mean and the variance are those of the batch: moving ones begin with
    what is given, and the variance among the results is that of a sample."""
    x, scale, offset, mean, variance = inputs
    is_first = attrs.get("data_format", "NHWC") == "NCHW"
    before = mean, variance
    trains = attrs.get("is_training", True)
    if trains:
        mean, variance = td.nn.moments(x, (0, 2, 3) if is_first else (0, 1, 2))
    shape = [1, -1, 1, 1] if is_first else [-1]
    m, v, b, s = (td.reshape(part, shape) for part in (mean, variance, offset, scale))
    y = td.nn.batch_normalization(x, m, v, b, s, attrs.get("epsilon", 1e-4))
    if not trains:
        return y, mean, variance, mean, variance, variance
    count = td.cast(td.size(x) // td.size(mean), variance.dtype)
    found = mean, variance * (count / td.maximum(count - 1, 1))
    share = attrs.get("exponential_avg_factor", 1.0)
    if share != 1.0:
        found = tuple(a * (1 - share) + b * share for a, b in zip(before, found, strict=True))
    return (y, *found, mean, variance, variance)


@rule("SparseSoftmaxCrossEntropyWithLogits", results="loss backprop")
def _sparse_loss(inputs: Sequence[Any], attrs: Attrs) -> Any:
    logits, labels = inputs
    loss = td.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    shares = td.nn.softmax(logits)
    return loss, shares - td.one_hot(labels, td.shape(logits)[-1], dtype=logits.dtype)


@rule("SoftmaxCrossEntropyWithLogits", results="loss backprop")
def _loss(inputs: Sequence[Any], attrs: Attrs) -> Any:
    logits, labels = inputs
    loss = td.nn.softmax_cross_entropy_with_logits(labels, logits)
    return loss, td.nn.softmax(logits) - labels


@rule("ResizeBilinear")
def _resize_bilinear(inputs: Sequence[Any], attrs: Attrs) -> Any:
    images, size = inputs
    if attrs.get("half_pixel_centers"):
        return td.image.resize(images, size)
    corners = attrs.get("align_corners", False)
    return corner_sampling.bilinear(images, td.unstack(size, 2), corners)


@rule("ResizeNearestNeighbor")
def _resize_nearest(inputs: Sequence[Any], attrs: Attrs) -> Any:
    images, size = inputs
    if attrs.get("half_pixel_centers"):
        return td.image.resize(images, size, "nearest")
    corners = attrs.get("align_corners", False)
    return corner_sampling.nearest(images, td.unstack(size, 2), corners)


@rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def _projected(inputs: Sequence[Any], attrs: Attrs) -> Any:
    images, transforms, size, *fill = inputs
    floats = images if images.dtype in (td.float32, td.float64) else td.cast(images, td.float32)
    rows = td.cast(transforms, floats.dtype)
    rows = td.broadcast_to(rows, [td.shape(images)[0], 8])
    fill_value = constant(fill[0], "fill_value") if fill else 0.0
    mode = attrs.get("fill_mode", "CONSTANT").lower()
    found = projected(floats, rows, attrs["interpolation"].lower(), mode, fill_value,
                      td.unstack(size, 2))  # fmt: skip
    return td.cast(found, images.dtype)


# -- random numbers --------------------------------------------------------------------------------


def _drawn(function: Callable[..., Any], dtype: Any, inputs: Sequence[Any], attrs: Attrs) -> Any:
    seed = attrs.get("seed") or attrs.get("seed2") or None
    return function(*inputs, dtype=dtype, seed=seed)


@rule("RandomUniform")
def _random_uniform(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _drawn(td.random.uniform, attrs["dtype"], inputs, attrs)


@rule("RandomUniformInt")
def _random_integers(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _drawn(td.random.uniform, inputs[1].dtype, inputs, attrs)


@rule("RandomStandardNormal")
def _random_normal(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _drawn(td.random.normal, attrs["dtype"], inputs, attrs)


@rule("TruncatedNormal")
def _truncated_normal(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _drawn(td.random.truncated_normal, attrs["dtype"], inputs, attrs)


@rule("Multinomial")
def _multinomial(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return _drawn(td.random.categorical, attrs.get("output_dtype", td.int64), inputs, attrs)


@rule("RandomShuffle")
def _random_shuffle(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.random.shuffle(inputs[0], attrs.get("seed") or attrs.get("seed2") or None)


@rule("StatelessRandomGetKeyCounter", results="key counter")
def _key_and_counter(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The key is the seed, from which operations of treadle make their own key and counter."""
    return inputs[0], td.zeros([2], td.uint64)


def _seed(key: Any, counter: Any) -> Any:
    """The seed that stands for a key and a counter, where these are no seed already."""
    if key.shape == (2,):
        return key
    return td.cast(td.stack([key[0], counter[0]]), td.int64)


@rule("StatelessRandomGetAlg")
def _algorithm(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.constant(1, td.int32)  # Philox


@rule("StatelessRandomUniformIntV2")
def _stateless_integers(inputs: Sequence[Any], attrs: Attrs) -> Any:
    shape, key, counter, _, low, high = inputs
    seed = _seed(key, counter)
    return td.random.stateless_uniform(shape, seed, low, high, attrs["dtype"])


def _floats(draw: Callable[..., Any]) -> Callable[..., Any]:
    def drawn(inputs: Sequence[Any], attrs: Attrs) -> Any:
        shape, key, counter = inputs[:3]
        return draw(shape, _seed(key, counter), dtype=attrs.get("dtype", td.float32))

    return drawn


rule("StatelessRandomUniformV2")(_floats(td.random.stateless_uniform))
rule("StatelessRandomNormalV2")(_floats(td.random.stateless_normal))
rule("StatelessTruncatedNormalV2")(_floats(td.random.stateless_truncated_normal))


# -- strings ---------------------------------------------------------------------------------------


@rule("StringJoin")
def _join(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.join(list(inputs), attrs.get("separator", ""))


@rule("StringFormat")
def _format(inputs: Sequence[Any], attrs: Attrs) -> Any:
    template, placeholder = attrs["template"], attrs.get("placeholder", "{}")
    return td.strings.format(template, list(inputs), placeholder, attrs.get("summarize", 3))


@rule("PrintV2")
def _print(inputs: Sequence[Any], attrs: Attrs) -> None:
    stream = attrs.get("output_stream", "stderr")
    td.print(inputs[0], output_stream=stream, end=attrs.get("end", "\n"))


@rule("AsString")
def _as_string(inputs: Sequence[Any], attrs: Attrs) -> Any:
    keys = ("precision", "scientific", "shortest", "width", "fill")
    return td.as_string(inputs[0], **{key: attrs[key] for key in keys if key in attrs})


@rule("StringToNumber")
def _to_number(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.to_number(inputs[0], attrs.get("out_type", td.float32))


@rule("StringLower")
def _lower(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.lower(inputs[0], attrs.get("encoding", ""))


@rule("StringUpper")
def _upper(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.upper(inputs[0], attrs.get("encoding", ""))


@rule("StringLength")
def _length(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.length(inputs[0], attrs.get("unit", "BYTE"))


@rule("StringStrip")
def _strip(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.strip(inputs[0])


@rule("Substr")
def _substr(inputs: Sequence[Any], attrs: Attrs) -> Any:
    text, begin, length = inputs
    return td.strings.substr(text, begin, length, attrs.get("unit", "BYTE"))


@rule("StaticRegexReplace")
def _replace(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.regex_replace(
        inputs[0], attrs["pattern"], attrs["rewrite"], attrs.get("replace_global", True)
    )


@rule("StaticRegexFullMatch")
def _full_match(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.regex_full_match(inputs[0], attrs["pattern"])


@rule("StringToHashBucketFast")
def _hash_bucket(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.strings.to_hash_bucket_fast(inputs[0], attrs["num_buckets"])


# -- images in files -------------------------------------------------------------------------------


@rule("DecodeRaw")
def _decode_raw(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.io.decode_raw(inputs[0], attrs["out_type"], attrs.get("little_endian", True))


@rule("DecodeJpeg", "DecodePng", "DecodeBmp")
def _decode_image(inputs: Sequence[Any], attrs: Attrs) -> Any:
    channels, dtype = attrs.get("channels", 0), attrs.get("dtype", td.uint8)
    return td.image.decode_image(inputs[0], channels, dtype, expand_animations=False)
