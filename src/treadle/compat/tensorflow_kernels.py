"""Operations of TensorFlow's on matrices, spectra, segments, images and sparse tensors.

Most are one call of a function of treadle, which takes the inputs by position and some attributes
by name: a line of `_CALLS` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from treadle.compat.tensorflow_gradients import pulled_back
from treadle.compat.tensorflow_ops import Attrs, constant, rule, run_operation
from treadle.core.origin import at, user_origin

# By types, the function and its keywords that are attributes; ``attribute:keyword`` where the names
# differ.
_CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    # matrices
    "BandedTriangularSolve": (td.linalg.banded_triangular_solve, "lower adjoint"),
    "Cross": (td.linalg.cross, ""),
    "Diag": (td.linalg.tensor_diag, ""),
    "DiagPart": (td.linalg.tensor_diag_part, ""),
    "LogMatrixDeterminant": (td.linalg.slogdet, ""),
    "Lu": (td.linalg.lu, "output_idx_type"),
    "MatrixLogarithm": (td.linalg.logm, ""),
    "MatrixSolve": (td.linalg.solve, "adjoint"),
    "MatrixSquareRoot": (td.linalg.sqrtm, ""),
    "MatrixTriangularSolve": (td.linalg.triangular_solve, "lower adjoint"),
    "Qr": (td.linalg.qr, "full_matrices"),
    "TridiagonalSolve": (td.linalg.tridiagonal_solve, "partial_pivoting perturb_singular"),
    # special functions
    "Angle": (td.math.angle, ""),
    "BesselI0": (td.math.bessel_i0, ""),
    "BesselI0e": (td.math.bessel_i0e, ""),
    "BesselI1": (td.math.bessel_i1, ""),
    "BesselI1e": (td.math.bessel_i1e, ""),
    "Betainc": (td.math.betainc, ""),
    "Complex": (td.complex, ""),
    "ComplexAbs": (td.abs, ""),
    "Erfinv": (td.math.erfinv, ""),
    "Igamma": (td.math.igamma, ""),
    "Igammac": (td.math.igammac, ""),
    "Ndtri": (td.math.ndtri, ""),
    "NextAfter": (td.math.nextafter, ""),
    "Polygamma": (td.math.polygamma, ""),
    "Zeta": (td.math.zeta, ""),
    # spectra
    "FFT": (td.signal.fft, ""),
    "FFT2D": (td.signal.fft2d, ""),
    "FFT3D": (td.signal.fft3d, ""),
    "IFFT": (td.signal.ifft, ""),
    "IFFT2D": (td.signal.ifft2d, ""),
    "IFFT3D": (td.signal.ifft3d, ""),
    "IRFFT": (td.signal.irfft, ""),
    "IRFFT2D": (td.signal.irfft2d, ""),
    "IRFFT3D": (td.signal.irfft3d, ""),
    "RFFT": (td.signal.rfft, ""),
    "RFFT2D": (td.signal.rfft2d, ""),
    "RFFT3D": (td.signal.rfft3d, ""),
    # segments, and places of elements
    "BroadcastArgs": (td.broadcast_dynamic_shape, ""),
    "HistogramFixedWidth": (td.histogram_fixed_width, "dtype"),
    "ReverseSequence": (td.reverse_sequence, "seq_dim:seq_axis batch_dim:batch_axis"),
    "ScatterNdNonAliasingAdd": (td.tensor_scatter_nd_add, ""),
    "SegmentMax": (td.math.segment_max, ""),
    "SegmentMean": (td.math.segment_mean, ""),
    "SegmentMin": (td.math.segment_min, ""),
    "SegmentProd": (td.math.segment_prod, ""),
    "SegmentSum": (td.math.segment_sum, ""),
    "SparseSegmentMean": (td.sparse.segment_mean, ""),
    "SparseSegmentMeanWithNumSegments": (td.sparse.segment_mean, ""),
    "SparseSegmentSqrtN": (td.sparse.segment_sqrt_n, ""),
    "SparseSegmentSqrtNWithNumSegments": (td.sparse.segment_sqrt_n, ""),
    "SparseSegmentSum": (td.sparse.segment_sum, ""),
    "SparseSegmentSumWithNumSegments": (td.sparse.segment_sum, ""),
    "UnravelIndex": (td.unravel_index, ""),
    # blocks and windows
    "AvgPool3D": (td.nn.avg_pool3d, "ksize strides padding data_format"),
    "BatchToSpaceND": (td.batch_to_space, ""),
    "Conv3D": (td.nn.conv3d, "strides padding data_format dilations"),
    "DepthToSpace": (td.nn.depth_to_space, "block_size data_format"),
    "ExtractImagePatches": (
        td.image.extract_patches, "ksizes:sizes strides rates padding"
    ),
    "ExtractVolumePatches": (td.extract_volume_patches, "ksizes strides padding"),
    "MaxPool3D": (td.nn.max_pool3d, "ksize strides padding data_format"),
    "MaxPoolWithArgmax": (
        td.nn.max_pool_with_argmax,
        "ksize strides padding Targmax:output_dtype include_batch_in_index",
    ),
    "SpaceToBatchND": (td.space_to_batch_nd, ""),
    "SpaceToDepth": (td.nn.space_to_depth, "block_size data_format"),
    # images
    "AdjustContrastv2": (td.image.adjust_contrast, ""),
    "AdjustHue": (td.image.adjust_hue, ""),
    "AdjustSaturation": (td.image.adjust_saturation, ""),
    "CropAndResize": (td.image.crop_and_resize, "method extrapolation_value"),
    "DecodeCompressed": (td.io.decode_compressed, "compression_type"),
    "DecodeGif": (td.io.decode_gif, ""),
    "DecodeImage": (td.io.decode_image, "channels dtype expand_animations"),
    "DrawBoundingBoxesV2": (td.image.draw_bounding_boxes, ""),
    "EncodeJpeg": (
        td.io.encode_jpeg,
        "format quality progressive optimize_size chroma_downsampling density_unit x_density "
        "y_density xmp_metadata",
    ),
    "EncodePng": (td.io.encode_png, "compression"),
    "HSVToRGB": (td.image.hsv_to_rgb, ""),
    "NonMaxSuppression": (td.image.non_max_suppression, "iou_threshold"),
    "NonMaxSuppressionV2": (td.image.non_max_suppression, ""),
    "NonMaxSuppressionV3": (td.image.non_max_suppression, ""),
    "NonMaxSuppressionV4": (td.image.non_max_suppression_padded, "pad_to_max_output_size"),
    "RGBToHSV": (td.image.rgb_to_hsv, ""),
    # numbers of few bits
    "FakeQuantWithMinMaxArgs": (
        td.quantization.fake_quant_with_min_max_args, "min max num_bits narrow_range"
    ),
    "FakeQuantWithMinMaxVars": (
        td.quantization.fake_quant_with_min_max_vars, "num_bits narrow_range"
    ),
    "FakeQuantWithMinMaxVarsPerChannel": (
        td.quantization.fake_quant_with_min_max_vars_per_channel, "num_bits narrow_range"
    ),
    "QuantizeAndDequantizeV2": (
        td.quantization.quantize_and_dequantize,
        "signed_input num_bits range_given round_mode narrow_range axis",
    ),
    # random numbers
    "StatelessMultinomial": (td.random.stateless_categorical, "output_dtype:dtype"),
    "StatelessRandomNormal": (td.random.stateless_normal, "dtype"),
    "StatelessRandomUniform": (td.random.stateless_uniform, "dtype"),
    "StatelessTruncatedNormal": (td.random.stateless_truncated_normal, "dtype"),
}  # fmt: skip
_SEVERAL = {
    "LogMatrixDeterminant": "sign log_abs_determinant", "Lu": "lu p", "Qr": "q r",
    "MaxPoolWithArgmax": "output argmax", "NonMaxSuppressionV4": "selected_indices valid_outputs",
}  # fmt: skip


def _call(function: Callable[..., Any], keywords: str) -> Callable[[Sequence[Any], Attrs], Any]:
    names = [word.partition(":") for word in keywords.split()]

    def call(inputs: Sequence[Any], attrs: Attrs) -> Any:
        given = {keyword or name: attrs[name] for name, _, keyword in names if name in attrs}
        found = function(*inputs, **given)
        return tuple(found) if isinstance(found, tuple) else found

    return call


for _type, (_function, _keywords) in _CALLS.items():
    rule(_type, results=_SEVERAL.get(_type, ""))(_call(_function, _keywords))


# -- matrices --------------------------------------------------------------------------------------


@rule("MatrixBandPart")
def _band(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.linalg.band_part(*inputs)


@rule("MatrixDiagV2", "MatrixDiagV3")
def _diagonals(inputs: Sequence[Any], attrs: Attrs) -> Any:
    diagonal, k, rows, columns, padding = inputs
    return td.linalg.diag(
        diagonal, k=constant(k, "the diagonals"), num_rows=constant(rows, "num_rows"),
        num_cols=constant(columns, "num_cols"), padding_value=padding,
        align=attrs.get("align", "LEFT_LEFT"),
    )  # fmt: skip


@rule("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def _set_diagonals(inputs: Sequence[Any], attrs: Attrs) -> Any:
    k = constant(inputs[2], "the diagonals") if len(inputs) > 2 else 0
    x, diagonal, *_ = inputs
    return td.linalg.set_diag(x, diagonal, k=k, align=attrs.get("align", "LEFT_LEFT"))


@rule("TridiagonalMatMul")
def _tridiagonal_product(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """The diagonals are matrices of one row."""
    *diagonals, rhs = inputs
    rows = [td.squeeze(diagonal, -2) for diagonal in diagonals]
    return td.linalg.tridiagonal_matmul(rows, rhs, diagonals_format="sequence")


@rule("MatrixSolveLs")
def _least_squares(inputs: Sequence[Any], attrs: Attrs) -> Any:
    matrix, rhs, regularizer = inputs
    weight = td.cast(regularizer, matrix.dtype)
    return td.linalg.lstsq(matrix, rhs, weight, attrs.get("fast", True))


@rule("Svd", results="s u v")
def _svd(inputs: Sequence[Any], attrs: Attrs) -> Any:
    (x,) = inputs
    if attrs.get("compute_uv", True):
        return tuple(td.linalg.svd(x, attrs.get("full_matrices", False)))
    return td.linalg.svd(x, compute_uv=False), td.zeros([0], x.dtype), td.zeros([0], x.dtype)


@rule("SelfAdjointEigV2", results="e v")
def _eigh(inputs: Sequence[Any], attrs: Attrs) -> Any:
    (x,) = inputs
    if attrs.get("compute_v", True):
        return tuple(td.linalg.eigh(x))
    return td.linalg.eigvalsh(x), td.zeros([0], x.dtype)


@rule("Eig", results="e v")
def _eig(inputs: Sequence[Any], attrs: Attrs) -> Any:
    (x,) = inputs
    if attrs.get("compute_v", True):
        return tuple(td.cast(part, attrs["Tout"]) for part in td.linalg.eig(x))
    return td.cast(td.linalg.eigvals(x), attrs["Tout"]), td.zeros([0], attrs["Tout"])


# -- elements and their places ---------------------------------------------------------------------


@rule("ApproximateEqual")
def _nearly_equal(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, y = inputs
    return td.abs(x - y) < td.cast(attrs.get("tolerance", 1e-5), x.dtype)


@rule("PopulationCount")
def _bits(inputs: Sequence[Any], attrs: Attrs) -> Any:
    (x,) = inputs
    width = x.dtype.size * 8
    ones = (td.bitwise.right_shift(x, td.cast(k, x.dtype)) & 1 for k in range(width))
    return td.cast(td.add_n(list(ones)), td.uint8)


@rule("CumulativeLogsumexp")
def _cumulative(inputs: Sequence[Any], attrs: Attrs) -> Any:
    axis = constant(inputs[1], "an axis")
    given = {key: attrs[key] for key in ("exclusive", "reverse") if key in attrs}
    return td.math.cumulative_logsumexp(inputs[0], axis, **given)


@rule("EuclideanNorm")
def _norm(inputs: Sequence[Any], attrs: Attrs) -> Any:
    axis = constant(inputs[1], "axes")
    return td.math.reduce_euclidean_norm(inputs[0], axis, attrs.get("keep_dims", False))


@rule("LowerBound")
def _lower_bound(inputs: Sequence[Any], attrs: Attrs) -> Any:
    rows, values = inputs
    return td.searchsorted(rows, values, "left", attrs.get("out_type", td.int32))


@rule("UpperBound")
def _upper_bound(inputs: Sequence[Any], attrs: Attrs) -> Any:
    rows, values = inputs
    return td.searchsorted(rows, values, "right", attrs.get("out_type", td.int32))


@rule("InTopK", "InTopKV2")
def _in_top_k(inputs: Sequence[Any], attrs: Attrs) -> Any:
    predictions, targets, *k = inputs
    return td.math.in_top_k(targets, predictions, k[0] if k else attrs["k"])


@rule("NthElement")
def _nth(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, n = inputs
    direction = "DESCENDING" if attrs.get("reverse", False) else "ASCENDING"
    return td.gather(td.sort(x, direction=direction), n, axis=-1)


@rule("Roll")
def _roll(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, shift, axis = inputs
    return td.roll(x, shift, constant(axis, "axes"))


@rule("Reverse")
def _reverse_some(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, chosen = inputs
    axes = [k for k, reverses in enumerate(constant(chosen, "the axes")) if reverses]
    return td.reverse(x, axes)


@rule("DynamicPartition")
def _partition(inputs: Sequence[Any], attrs: Attrs) -> Any:
    data, partitions = inputs
    return tuple(td.dynamic_partition(data, partitions, attrs["num_partitions"]))


@rule("ParallelDynamicStitch")
def _stitch(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return run_operation("DynamicStitch", attrs, *inputs)


def _per_segment(power: float) -> Callable[[Sequence[Any], Attrs], Any]:
    """The gradient of a reduction over segments of rows that indices choose: a row's share is
    divided by a power of the number of rows of its segment."""

    def gradient(inputs: Sequence[Any], attrs: Attrs) -> Any:
        upstream, indices, ids, rows = inputs
        shares = td.gather(upstream, ids)
        if power:
            one = td.ones_like(ids, upstream.dtype)
            counts = td.math.unsorted_segment_sum(one, ids, td.shape(upstream)[0])
            scale = td.gather(counts, ids) ** -power
            shares *= td.reshape(scale, [-1, *[1] * (len(upstream.shape) - 1)])
        return td.math.unsorted_segment_sum(shares, indices, rows)

    return gradient


rule("SparseSegmentSumGrad")(_per_segment(0.0))
rule("SparseSegmentMeanGrad")(_per_segment(1.0))
rule("SparseSegmentSqrtNGrad")(_per_segment(0.5))


def _counted(values: Any, size: Any, weights: Any, attrs: Attrs, axis: int | None) -> Any:
    """How often values below a size occur, or the sums of their weights; negative ones are refused
    by `td.math.bincount`."""
    is_binary = attrs.get("binary_output", False)
    count = 1 if isinstance(weights, td.RaggedTensor) else weights.shape.num_elements()
    given = None if is_binary or count == 0 else weights
    return td.math.bincount(
        values, given, minlength=size, maxlength=size, dtype=weights.dtype, axis=axis,
        binary_output=is_binary,
    )  # fmt: skip


@rule("Bincount")
def _bincount(inputs: Sequence[Any], attrs: Attrs) -> Any:
    values, size, weights = inputs
    return _counted(values, size, weights, attrs, None)


@rule("SparseBincount")
def _sparse_bincount(inputs: Sequence[Any], attrs: Attrs) -> Any:
    indices, values, shape, size, weights = inputs
    sparse = td.SparseTensor(indices, values, shape)
    return _counted(sparse, _scalar(size), weights, attrs, -1)


@rule("RaggedBincount")
def _ragged_bincount(inputs: Sequence[Any], attrs: Attrs) -> Any:
    splits, values, size, weights = inputs
    if len(splits.shape) != 1 or splits.shape[0] == 0:
        _refuse(f"RaggedBincount: splits must be a vector with an element, not {splits.shape}")
    rows = td.RaggedTensor.from_row_splits(values, splits)
    if weights.shape.num_elements() != 0:
        weights = td.RaggedTensor.from_row_splits(weights, splits)
    return _counted(rows, _scalar(size), weights, attrs, -1)


def _scalar(size: Any) -> Any:
    if len(size.shape) != 0:
        _refuse(f"size must be a scalar, not of shape {size.shape}")
    return size


def _refuse(text: str) -> None:
    raise td.errors.InvalidArgumentError(None, None, f"{text}{at(user_origin())}")


@rule("DenseBincount")
def _dense_bincount(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """Of a vector, or of each row of a matrix."""
    values, size, weights = inputs
    size = _scalar(size)
    if len(values.shape) > 2:
        _refuse(f"DenseBincount: input must have at most two axes, not {values.shape}")
    return _counted(values, size, weights, attrs, -1 if len(values.shape) == 2 else None)


# -- layouts of images -----------------------------------------------------------------------------


@rule("DataFormatVecPermute")
def _permuted(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """A vector, or rows of pairs, one for each axis in the order of another layout; with one for
    each spatial axis, these only."""
    (x,) = inputs
    source, target = _layouts(attrs)
    if len(x.shape) not in (1, 2):
        _refuse(f"DataFormatVecPermute: x must be a vector or a matrix, not of shape {x.shape}")
    if x.shape[0] == len(source) - 2:
        source, target = (
            [axis for axis in layout if axis not in "NC"] for layout in (source, target)
        )
    return td.gather(x, [source.index(axis) for axis in target])


@rule("DataFormatDimMap")
def _axis_of_layout(inputs: Sequence[Any], attrs: Attrs) -> Any:
    """Where axes of a layout are in another one."""
    (x,) = inputs
    source, target = _layouts(attrs)
    places = td.constant([target.index(axis) for axis in source], x.dtype)
    return td.gather(places, td.math.floormod(x, len(source)))


def _layouts(attrs: Attrs) -> tuple[list[str], list[str]]:
    source, target = attrs.get("src_format", "NHWC"), attrs.get("dst_format", "NCHW")
    if len(source) not in (4, 5) or sorted(source) != sorted(target):
        _refuse(f"The layouts {source!r} and {target!r} must have the same four or five axes")
    return list(source), list(target)


# -- windows and images ----------------------------------------------------------------------------


@rule("SpaceToBatch")
def _space_to_batch(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, paddings = inputs
    return td.space_to_batch_nd(x, [attrs["block_size"]] * 2, paddings)


@rule("BatchToSpace")
def _batch_to_space(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, crops = inputs
    return td.batch_to_space(x, [attrs["block_size"]] * 2, crops)


@rule("Dilation2D")
def _dilation(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, filters = inputs
    return td.nn.dilation2d(x, filters, attrs["strides"], attrs["padding"], "NHWC", attrs["rates"])


@rule("MaxPoolV2")
def _max_pool(inputs: Sequence[Any], attrs: Attrs) -> Any:
    x, sizes, strides = inputs
    return td.nn.max_pool2d(
        x, constant(sizes, "ksize"), constant(strides, "strides"), attrs["padding"],
        attrs.get("data_format", "NHWC"),
    )  # fmt: skip


@rule("LRNGrad")
def _lrn_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    dy, x, _ = inputs
    return pulled_back(lambda x: run_operation("LRN", attrs, x), x, dy)


@rule("MirrorPadGrad")
def _mirror_pad_grad(inputs: Sequence[Any], attrs: Attrs) -> Any:
    dy, paddings = inputs
    x = td.zeros(td.shape(dy) - td.cast(td.reduce_sum(paddings, 1), td.int32), dy.dtype)
    return pulled_back(lambda x: run_operation("MirrorPad", attrs, x, paddings), x, dy)


@rule("NonMaxSuppressionV5", results="selected_indices selected_scores valid_outputs")
def _soft_suppression(inputs: Sequence[Any], attrs: Attrs) -> Any:
    indices, scores = td.image.non_max_suppression_with_scores(*inputs)
    count = td.size(indices)
    if attrs.get("pad_to_max_output_size", False):
        rest = [[0, inputs[2] - count]]
        indices, scores = td.pad(indices, rest), td.pad(scores, rest)
    return indices, scores, count


@rule("QuantizeAndDequantizeV3")
def _quantize_and_dequantize(inputs: Sequence[Any], attrs: Attrs) -> Any:
    *given, bits = inputs
    values = {"range_given": True, **attrs, "num_bits": constant(bits, "num_bits")}
    return run_operation("QuantizeAndDequantizeV2", values, *given)


def _fractional(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pooling by windows of two sizes, which are drawn."""

    def pooled(inputs: Sequence[Any], attrs: Attrs) -> Any:
        ways = attrs.get("pseudo_random", False), attrs.get("overlapping", False)
        seed = attrs.get("seed") or attrs.get("seed2") or 0
        return tuple(function(inputs[0], attrs["pooling_ratio"], *ways, seed))

    return pooled


_WINDOWS = "output row_pooling_sequence col_pooling_sequence"
rule("FractionalMaxPool", results=_WINDOWS)(_fractional(td.nn.fractional_max_pool))
rule("FractionalAvgPool", results=_WINDOWS)(_fractional(td.nn.fractional_avg_pool))


# -- rows of a tensor --------------------------------------------------------------------------


def _in_rows(combine: Callable[..., Any]) -> Callable[..., Any]:
    """Rows combined with those of a tensor, of which another one is made."""

    def changed(inputs: Sequence[Any], attrs: Attrs) -> Any:
        x, rows, values = inputs
        return combine(x, td.reshape(rows, [-1, 1]), td.reshape(values, [-1, *x.shape[1:]]))

    return changed


rule("InplaceUpdate")(_in_rows(td.tensor_scatter_nd_update))
rule("InplaceAdd")(_in_rows(td.tensor_scatter_nd_add))
rule("InplaceSub")(_in_rows(td.tensor_scatter_nd_sub))


@rule("DeepCopy")
def _copied(inputs: Sequence[Any], attrs: Attrs) -> Any:
    return td.identity(inputs[0])
