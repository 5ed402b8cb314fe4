# ruff: noqa: E501
"""The inputs, attributes and results of TensorFlow's operations, as its registry has them.

A line is a type: the inputs with the type attribute or dtype of each (``*`` for a list of tensors),
the attributes that the inputs do not tell with their defaults, and the names of the results (``*``
for a list). ``axis/squeeze_dims`` is an attribute `squeeze_dims` that calls know as `axis`.
"""

from __future__ import annotations

import ast
from collections.abc import KeysView
from typing import Any, NamedTuple

import treadle as td


class Input(NamedTuple):
    """An input of an operation: tensors of one type attribute, or dtype, have one dtype."""

    name: str
    type: str
    is_list: bool


class Form(NamedTuple):
    """What an operation takes and gives.

    Attributes:
        attributes: their names in graphs, by the names in calls.
        defaults: by the names in calls, of the attributes that have one.
        gives_list: the only result is a list of tensors.
    """

    inputs: tuple[Input, ...]
    attributes: dict[str, str]
    defaults: dict[str, Any]
    results: tuple[str, ...]
    gives_list: bool


def form_of(type_: str) -> Form:
    """The form of a type; KeyError where it is not known."""
    inputs, attributes, results = _LINES[type_]
    pairs = [a.partition("=") for a in _split(attributes)]
    return Form(
        tuple(_input(text) for text in inputs.split()),
        {name.partition("/")[0]: name.rpartition("/")[2] for name, _, _ in pairs},
        {name.partition("/")[0]: _default(text) for name, sign, text in pairs if sign},
        tuple(results.replace("*", "").split()),
        results.strip().startswith("*"),
    )


def types() -> KeysView[str]:
    """The types whose forms are known."""
    return _LINES.keys()


def _input(text: str) -> Input:
    name, _, kind = text.removeprefix("*").partition(":")
    return Input(name, kind, text.startswith("*"))


def _split(text: str) -> list[str]:
    """The attributes: their lists have blanks."""
    return text.replace(", ", ",").split()


def _default(text: str) -> Any:
    found = getattr(td, text, None) if text.isidentifier() else None
    return found if isinstance(found, td.DType) else ast.literal_eval(text)


_TABLE = r"""
Abs | x:T |  | y
Acos | x:T |  | y
Acosh | x:T |  | y
Add | x:T y:T |  | z
AddN | *inputs:T |  | sum
AddV2 | x:T y:T |  | z
AdjustContrastv2 | images:T contrast_factor:float32 |  | output
AdjustHue | images:T delta:float32 |  | output
AdjustSaturation | images:T scale:float32 |  | output
All | input:bool axis:Tidx | keep_dims=False | output
Angle | input:T | Tout=float32 | output
Any | input:bool axis:Tidx | keep_dims=False | output
ApproximateEqual | x:T y:T | tolerance=9.999999747378752e-06 | z
ArgMax | input:T dimension:Tidx | output_type=int64 | output
ArgMin | input:T dimension:Tidx | output_type=int64 | output
AsString | input:T | precision=-1 scientific=False shortest=False width=-1 fill='' | output
Asin | x:T |  | y
Asinh | x:T |  | y
Assert | condition:bool *data | summarize=3 |
Atan | x:T |  | y
Atan2 | y:T x:T |  | z
Atanh | x:T |  | y
AvgPool | value:T | ksize strides padding data_format='NHWC' | output
AvgPool3D | input:T | ksize strides padding data_format='NDHWC' | output
AvgPool3DGrad | orig_input_shape:int32 grad:T | ksize strides padding data_format='NDHWC' | output
AvgPoolGrad | orig_input_shape:int32 grad:T | ksize strides padding data_format='NHWC' | output
BandedTriangularSolve | matrix:T rhs:T | lower=True adjoint=False | output
BatchMatMul | x:T y:T | adj_x=False adj_y=False grad_x=False grad_y=False | output
BatchMatMulV2 | x:T y:T | adj_x=False adj_y=False grad_x=False grad_y=False | output
BatchMatMulV3 | x:Ta y:Tb | Tout adj_x=False adj_y=False grad_x=False grad_y=False | output
BatchToSpace | input:T crops:Tidx | block_size | output
BatchToSpaceND | input:T block_shape:Tblock_shape crops:Tcrops |  | output
BesselI0 | x:T |  | y
BesselI0e | x:T |  | y
BesselI1 | x:T |  | y
BesselI1e | x:T |  | y
BesselJ0 | x:T |  | y
BesselJ1 | x:T |  | y
BesselK0 | x:T |  | y
BesselK0e | x:T |  | y
BesselK1 | x:T |  | y
BesselK1e | x:T |  | y
BesselY0 | x:T |  | y
BesselY1 | x:T |  | y
Betainc | a:T b:T x:T |  | z
BiasAdd | value:T bias:T | data_format='NHWC' | output
BiasAddGrad | out_backprop:T | data_format='NHWC' | output
Bincount | arr:int32 size:int32 weights:T |  | bins
Bitcast | input:T | type | output
BitwiseAnd | x:T y:T |  | z
BitwiseOr | x:T y:T |  | z
BitwiseXor | x:T y:T |  | z
BlockLSTMV2 | seq_len_max:int64 x:T cs_prev:T h_prev:T w:T wci:T wcf:T wco:T b:T | cell_clip=0.0 use_peephole=False | i cs f o ci co h
BroadcastArgs | s0:T s1:T |  | r0
BroadcastGradientArgs | s0:T s1:T |  | r0 r1
BroadcastTo | input:T shape:Tidx |  | output
Bucketize | input:T | boundaries | output
Cast | x:SrcT | DstT Truncate=False | y
Ceil | x:T |  | y
CheckNumerics | tensor:T | message | output
Cholesky | input:T |  | output
ClipByValue | t:T clip_value_min:T clip_value_max:T |  | output
Complex | real:T imag:T | Tout=complex64 | out
ComplexAbs | x:T | Tout=float32 | y
Concat | concat_dim:int32 *values:T |  | output
ConcatOffset | concat_dim:int32 *shape:shape_type |  | *offset
ConcatV2 | *values:T axis:Tidx |  | output
Conj | input:T |  | output
ConjugateTranspose | x:T perm:Tperm |  | y
Conv2D | input:T filter:T | strides use_cudnn_on_gpu=True padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Conv2DBackpropFilter | input:T filter_sizes:int32 out_backprop:T | strides use_cudnn_on_gpu=True padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Conv2DBackpropInput | input_sizes:int32 filter:T out_backprop:T | strides use_cudnn_on_gpu=True padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Conv3D | input:T filter:T | strides padding data_format='NDHWC' dilations=[1,1,1,1,1] | output
Conv3DBackpropFilterV2 | input:T filter_sizes:int32 out_backprop:T | strides padding data_format='NDHWC' dilations=[1,1,1,1,1] | output
Conv3DBackpropInputV2 | input_sizes:Tshape filter:T out_backprop:T | strides padding data_format='NDHWC' dilations=[1,1,1,1,1] | output
Cos | x:T |  | y
Cosh | x:T |  | y
CropAndResize | image:T boxes:float32 box_ind:int32 crop_size:int32 | method='bilinear' extrapolation_value=0.0 | crops
Cross | a:T b:T |  | product
Cumprod | x:T axis:Tidx | exclusive=False reverse=False | out
Cumsum | x:T axis:Tidx | exclusive=False reverse=False | out
CumulativeLogsumexp | x:T axis:Tidx | exclusive=False reverse=False | out
DataFormatDimMap | x:T | src_format='NHWC' dst_format='NCHW' | y
DataFormatVecPermute | x:T | src_format='NHWC' dst_format='NCHW' | y
Dawsn | x:T |  | y
DecodeBmp | contents:string | channels=0 | image
DecodeCompressed | bytes:string | compression_type='' | output
DecodeGif | contents:string |  | image
DecodeImage | contents:string | channels=0 dtype=uint8 expand_animations=True | image
DecodeJpeg | contents:string | channels=0 ratio=1 fancy_upscaling=True try_recover_truncated=False acceptable_fraction=1.0 dct_method='' | image
DecodePng | contents:string | channels=0 dtype=uint8 | image
DecodeRaw | bytes:string | out_type little_endian=True | output
DeepCopy | x:T |  | y
DenseBincount | input:Tidx size:Tidx weights:T | binary_output=False | output
DepthToSpace | input:T | block_size data_format='NHWC' | output
DepthwiseConv2dNative | input:T filter:T | strides padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
DepthwiseConv2dNativeBackpropFilter | input:T filter_sizes:int32 out_backprop:T | strides padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
DepthwiseConv2dNativeBackpropInput | input_sizes:int32 filter:T out_backprop:T | strides padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Diag | diagonal:T |  | output
DiagPart | input:T |  | diagonal
Digamma | x:T |  | y
Dilation2D | input:T filter:T | strides rates padding | output
Dilation2DBackpropFilter | input:T filter:T out_backprop:T | strides rates padding | filter_backprop
Dilation2DBackpropInput | input:T filter:T out_backprop:T | strides rates padding | in_backprop
Div | x:T y:T |  | z
DivNoNan | x:T y:T |  | z
DrawBoundingBoxesV2 | images:T boxes:float32 colors:float32 |  | output
DynamicPartition | data:T partitions:int32 | num_partitions | *outputs
DynamicStitch | *indices:int32 *data:T |  | merged
EditDistance | hypothesis_indices:int64 hypothesis_values:T hypothesis_shape:int64 truth_indices:int64 truth_values:T truth_shape:int64 | normalize=True | output
Eig | input:T | compute_v=True Tout | e v
Einsum | *inputs:T | equation | output
Elu | features:T |  | activations
EluGrad | gradients:T outputs:T |  | backprops
EmptyTensorList | element_shape:shape_type max_num_elements:int32 | element_dtype | handle
EncodeJpeg | image:uint8 | format='' quality=95 progressive=False optimize_size=False chroma_downsampling=True density_unit='in' x_density=300 y_density=300 xmp_metadata='' | contents
EncodePng | image:T | compression=-1 | contents
EnsureShape | input:T | shape | output
Equal | x:T y:T | incompatible_shape_error=True | z
Erf | x:T |  | y
Erfc | x:T |  | y
Erfinv | x:T |  | y
EuclideanNorm | input:T axis:Tidx | keep_dims=False | output
Exp | x:T |  | y
ExpandDims | input:T axis:Tdim |  | output
Expint | x:T |  | y
Expm1 | x:T |  | y
ExtractImagePatches | images:T | ksizes strides rates padding | patches
ExtractVolumePatches | input:T | ksizes strides padding | patches
FFT | input:Tcomplex |  | output
FFT2D | input:Tcomplex |  | output
FFT3D | input:Tcomplex |  | output
FakeQuantWithMinMaxArgs | inputs:float32 | min=-6.0 max=6.0 num_bits=8 narrow_range=False | outputs
FakeQuantWithMinMaxVars | inputs:float32 min:float32 max:float32 | num_bits=8 narrow_range=False | outputs
FakeQuantWithMinMaxVarsPerChannel | inputs:float32 min:float32 max:float32 | num_bits=8 narrow_range=False | outputs
Fill | dims:index_type value:T |  | output
Floor | x:T |  | y
FloorDiv | x:T y:T |  | z
FloorMod | x:T y:T |  | z
FractionalAvgPool | value:T | pooling_ratio pseudo_random=False overlapping=False deterministic=False seed=0 seed2=0 | output row_pooling_sequence col_pooling_sequence
FractionalMaxPool | value:T | pooling_ratio pseudo_random=False overlapping=False deterministic=False seed=0 seed2=0 | output row_pooling_sequence col_pooling_sequence
FresnelCos | x:T |  | y
FresnelSin | x:T |  | y
FusedBatchNorm | x:T scale:T offset:T mean:T variance:T | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormV2 | x:T scale:U offset:U mean:U variance:U | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormV3 | x:T scale:U offset:U mean:U variance:U | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3
Gather | params:Tparams indices:Tindices | validate_indices=True | output
GatherNd | params:Tparams indices:Tindices | bad_indices_policy='' | output
GatherV2 | params:Tparams indices:Tindices axis:Taxis | batch_dims=0 | output
Greater | x:T y:T |  | z
GreaterEqual | x:T y:T |  | z
HSVToRGB | images:T |  | output
HistogramFixedWidth | values:T value_range:T nbins:int32 | dtype=int32 | out
IFFT | input:Tcomplex |  | output
IFFT2D | input:Tcomplex |  | output
IFFT3D | input:Tcomplex |  | output
IRFFT | input:Tcomplex fft_length:int32 | Treal=float32 | output
IRFFT2D | input:Tcomplex fft_length:int32 | Treal=float32 | output
IRFFT3D | input:Tcomplex fft_length:int32 | Treal=float32 | output
Identity | input:T |  | output
IdentityN | *input |  | *output
Igamma | a:T x:T |  | z
IgammaGradA | a:T x:T |  | z
Igammac | a:T x:T |  | z
Imag | input:T | Tout=float32 | output
ImageProjectiveTransformV2 | images:dtype transforms:float32 output_shape:int32 | interpolation fill_mode='CONSTANT' | transformed_images
ImageProjectiveTransformV3 | images:dtype transforms:float32 output_shape:int32 fill_value:float32 | interpolation fill_mode='CONSTANT' | transformed_images
InTopK | predictions:float32 targets:T | k | precision
InTopKV2 | predictions:float32 targets:T k:T |  | precision
InplaceAdd | x:T i:int32 v:T |  | y
InplaceSub | x:T i:int32 v:T |  | y
InplaceUpdate | x:T i:int32 v:T |  | y
Inv | x:T |  | y
Invert | x:T |  | y
InvertPermutation | x:T |  | y
IsFinite | x:T |  | y
IsInf | x:T |  | y
IsNan | x:T |  | y
L2Loss | t:T |  | output
LRN | input:T | depth_radius=5 bias=1.0 alpha=1.0 beta=0.5 | output
LRNGrad | input_grads:T input_image:T output_image:T | depth_radius=5 bias=1.0 alpha=1.0 beta=0.5 | output
LeakyRelu | features:T | alpha=0.20000000298023224 | activations
LeakyReluGrad | gradients:T features:T | alpha=0.20000000298023224 | backprops
LeftShift | x:T y:T |  | z
Less | x:T y:T |  | z
LessEqual | x:T y:T |  | z
Lgamma | x:T |  | y
LinSpace | start:T stop:T num:Tidx |  | output
Log | x:T |  | y
Log1p | x:T |  | y
LogMatrixDeterminant | input:T |  | sign log_abs_determinant
LogSoftmax | logits:T |  | logsoftmax
LogicalAnd | x:bool y:bool |  | z
LogicalNot | x:bool |  | y
LogicalOr | x:bool y:bool |  | z
LowerBound | sorted_inputs:T values:T | out_type=int32 | output
Lu | input:T | output_idx_type=int32 | lu p
MatMul | a:T b:T | transpose_a=False transpose_b=False grad_a=False grad_b=False | product
MatrixBandPart | input:T num_lower:Tindex num_upper:Tindex |  | band
MatrixDeterminant | input:T |  | output
MatrixDiag | diagonal:T |  | output
MatrixDiagPart | input:T |  | diagonal
MatrixDiagPartV2 | input:T k:int32 padding_value:T |  | diagonal
MatrixDiagPartV3 | input:T k:int32 padding_value:T | align='RIGHT_LEFT' | diagonal
MatrixDiagV2 | diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T |  | output
MatrixDiagV3 | diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T | align='RIGHT_LEFT' | output
MatrixInverse | input:T | adjoint=False | output
MatrixLogarithm | input:T |  | output
MatrixSetDiag | input:T diagonal:T |  | output
MatrixSetDiagV2 | input:T diagonal:T k:int32 |  | output
MatrixSetDiagV3 | input:T diagonal:T k:int32 | align='RIGHT_LEFT' | output
MatrixSolve | matrix:T rhs:T | adjoint=False | output
MatrixSolveLs | matrix:T rhs:T l2_regularizer:float64 | fast=True | output
MatrixSquareRoot | input:T |  | output
MatrixTriangularSolve | matrix:T rhs:T | lower=True adjoint=False | output
Max | input:T axis:Tidx | keep_dims=False | output
MaxPool | input:T | ksize strides padding explicit_paddings=[] data_format='NHWC' | output
MaxPool3D | input:T | ksize strides padding data_format='NDHWC' | output
MaxPool3DGrad | orig_input:T orig_output:T grad:T | ksize strides padding data_format='NDHWC' | output
MaxPoolGrad | orig_input:T orig_output:T grad:T | ksize strides padding explicit_paddings=[] data_format='NHWC' | output
MaxPoolV2 | input:T ksize:int32 strides:int32 | padding data_format='NHWC' | output
MaxPoolWithArgmax | input:T | ksize strides Targmax=int64 padding include_batch_in_index=False | output argmax
Maximum | x:T y:T |  | z
Mean | input:T axis:Tidx | keep_dims=False | output
Min | input:T axis:Tidx | keep_dims=False | output
Minimum | x:T y:T |  | z
MirrorPad | input:T paddings:Tpaddings | mode | output
MirrorPadGrad | input:T paddings:Tpaddings | mode | output
Mod | x:T y:T |  | z
Mul | x:T y:T |  | z
MulNoNan | x:T y:T |  | z
Multinomial | logits:T num_samples:int32 | seed=0 seed2=0 output_dtype=int64 | output
Ndtri | x:T |  | y
Neg | x:T |  | y
NextAfter | x1:T x2:T |  | output
NoOp |  |  |
NonMaxSuppression | boxes:float32 scores:float32 max_output_size:int32 | iou_threshold=0.5 | selected_indices
NonMaxSuppressionV2 | boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold |  | selected_indices
NonMaxSuppressionV3 | boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold score_threshold:T_threshold |  | selected_indices
NonMaxSuppressionV4 | boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold score_threshold:T_threshold | pad_to_max_output_size=False | selected_indices valid_outputs
NonMaxSuppressionV5 | boxes:T scores:T max_output_size:int32 iou_threshold:T score_threshold:T soft_nms_sigma:T | pad_to_max_output_size=False | selected_indices selected_scores valid_outputs
NotEqual | x:T y:T | incompatible_shape_error=True | z
NthElement | input:T n:int32 | reverse=False | values
OneHot | indices:TI depth:int32 on_value:T off_value:T | axis=-1 | output
OnesLike | x:T |  | y
Pack | *values:T | axis=0 | output
Pad | input:T paddings:Tpaddings |  | output
PadV2 | input:T paddings:Tpaddings constant_values:T |  | output
ParallelDynamicStitch | *indices:int32 *data:T |  | merged
Polygamma | a:T x:T |  | z
PopulationCount | x:T |  | y
Pow | x:T y:T |  | z
PreventGradient | input:T | message='' | output
PrintV2 | input:string | output_stream='stderr' end='\n' |
Prod | input:T axis:Tidx | keep_dims=False | output
Qr | input:T | full_matrices=False | q r
QuantizeAndDequantizeV2 | input:T input_min:T input_max:T | signed_input=True num_bits=8 range_given=False round_mode='HALF_TO_EVEN' narrow_range=False axis=-1 | output
QuantizeAndDequantizeV3 | input:T input_min:T input_max:T num_bits:int32 | signed_input=True range_given=True narrow_range=False axis=-1 | output
RFFT | input:Treal fft_length:int32 | Tcomplex=complex64 | output
RFFT2D | input:Treal fft_length:int32 | Tcomplex=complex64 | output
RFFT3D | input:Treal fft_length:int32 | Tcomplex=complex64 | output
RGBToHSV | images:T |  | output
RaggedBincount | splits:int64 values:Tidx size:Tidx weights:T | binary_output=False | output
RandomGammaGrad | alpha:T sample:T |  | output
RandomShuffle | value:T | seed=0 seed2=0 | output
RandomStandardNormal | shape:T | seed=0 seed2=0 dtype | output
RandomUniform | shape:T | seed=0 seed2=0 dtype | output
RandomUniformInt | shape:T minval:Tout maxval:Tout | seed=0 seed2=0 | output
Range | start:Tidx limit:Tidx delta:Tidx |  | output
Rank | input:T |  | output
Real | input:T | Tout=float32 | output
RealDiv | x:T y:T |  | z
Reciprocal | x:T |  | y
ReciprocalGrad | y:T dy:T |  | z
Relu | features:T |  | activations
Relu6 | features:T |  | activations
Relu6Grad | gradients:T features:T |  | backprops
ReluGrad | gradients:T features:T |  | backprops
Reshape | tensor:T shape:Tshape |  | output
ResizeBilinear | images:T size:int32 | align_corners=False half_pixel_centers=False | resized_images
ResizeNearestNeighbor | images:T size:int32 | align_corners=False half_pixel_centers=False | resized_images
Reverse | tensor:T dims:bool |  | output
ReverseSequence | input:T seq_lengths:Tlen | seq_dim batch_dim=0 | output
ReverseV2 | tensor:T axis:Tidx |  | output
RightShift | x:T y:T |  | z
Rint | x:T |  | y
Roll | input:T shift:Tshift axis:Taxis |  | output
Round | x:T |  | y
Rsqrt | x:T |  | y
RsqrtGrad | y:T dy:T |  | z
ScatterNd | indices:Tindices updates:T shape:Tindices | bad_indices_policy='' | output
ScatterNdNonAliasingAdd | input:T indices:Tindices updates:T | bad_indices_policy='' | output
SegmentMax | data:T segment_ids:Tindices |  | output
SegmentMean | data:T segment_ids:Tindices |  | output
SegmentMin | data:T segment_ids:Tindices |  | output
SegmentProd | data:T segment_ids:Tindices |  | output
SegmentSum | data:T segment_ids:Tindices |  | output
Select | condition:bool x:T y:T |  | output
SelectV2 | condition:bool t:T e:T |  | output
SelfAdjointEigV2 | input:T | compute_v=True | e v
Selu | features:T |  | activations
SeluGrad | gradients:T outputs:T |  | backprops
SetSize | set_indices:int64 set_values:T set_shape:int64 | validate_indices=True | size
Shape | input:T | out_type=int32 | output
ShapeN | *input:T | out_type=int32 | *output
Sigmoid | x:T |  | y
SigmoidGrad | y:T dy:T |  | z
Sign | x:T |  | y
Sin | x:T |  | y
Sinh | x:T |  | y
Size | input:T | out_type=int32 | output
Slice | input:T begin:Index size:Index |  | output
Snapshot | input:T |  | output
Softmax | logits:T |  | softmax
SoftmaxCrossEntropyWithLogits | features:T labels:T |  | loss backprop
Softplus | features:T |  | activations
SoftplusGrad | gradients:T features:T |  | backprops
Softsign | features:T |  | activations
SoftsignGrad | gradients:T features:T |  | backprops
SpaceToBatch | input:T paddings:Tpaddings | block_size | output
SpaceToBatchND | input:T block_shape:Tblock_shape paddings:Tpaddings |  | output
SpaceToDepth | input:T | block_size data_format='NHWC' | output
SparseAdd | a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T b_shape:int64 thresh:Treal |  | sum_indices sum_values sum_shape
SparseBincount | indices:int64 values:Tidx dense_shape:int64 size:Tidx weights:T | binary_output=False | output
SparseFillEmptyRows | indices:int64 values:T dense_shape:int64 default_value:T |  | output_indices output_values empty_row_indicator reverse_index_map
SparseFillEmptyRowsGrad | reverse_index_map:int64 grad_values:T |  | d_values d_default_value
SparseReduceMax | input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 | keep_dims=False | output
SparseReduceMaxSparse | input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 | keep_dims=False | output_indices output_values output_shape
SparseReduceSum | input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 | keep_dims=False | output
SparseReduceSumSparse | input_indices:int64 input_values:T input_shape:int64 reduction_axes:int32 | keep_dims=False | output_indices output_values output_shape
SparseReorder | input_indices:int64 input_values:T input_shape:int64 |  | output_indices output_values
SparseSegmentMean | data:T indices:Tidx segment_ids:Tsegmentids | sparse_gradient=False | output
SparseSegmentMeanGrad | grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 |  | output
SparseSegmentMeanWithNumSegments | data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments | sparse_gradient=False | output
SparseSegmentSqrtN | data:T indices:Tidx segment_ids:Tsegmentids | sparse_gradient=False | output
SparseSegmentSqrtNGrad | grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 |  | output
SparseSegmentSqrtNWithNumSegments | data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments | sparse_gradient=False | output
SparseSegmentSum | data:T indices:Tidx segment_ids:Tsegmentids | sparse_gradient=False | output
SparseSegmentSumGrad | grad:T indices:Tidx segment_ids:Tsegmentids output_dim0:int32 |  | output
SparseSegmentSumWithNumSegments | data:T indices:Tidx segment_ids:Tsegmentids num_segments:Tnumsegments | sparse_gradient=False | output
SparseSlice | indices:int64 values:T shape:int64 start:int64 size:int64 |  | output_indices output_values output_shape
SparseSoftmax | sp_indices:int64 sp_values:T sp_shape:int64 |  | output
SparseSoftmaxCrossEntropyWithLogits | features:T labels:Tlabels |  | loss backprop
SparseSparseMaximum | a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T b_shape:int64 |  | output_indices output_values
SparseSparseMinimum | a_indices:int64 a_values:T a_shape:int64 b_indices:int64 b_values:T b_shape:int64 |  | output_indices output_values
SparseTensorDenseMatMul | a_indices:Tindices a_values:T a_shape:int64 b:T | adjoint_a=False adjoint_b=False | product
SparseToDense | sparse_indices:Tindices output_shape:Tindices sparse_values:T default_value:T | validate_indices=True | dense
Spence | x:T |  | y
Split | axis:int32 value:T | num_split | *output
SplitV | value:T size_splits:Tlen axis:int32 | num_split | *output
Sqrt | x:T |  | y
SqrtGrad | y:T dy:T |  | z
Square | x:T |  | y
SquaredDifference | x:T y:T |  | z
Squeeze | input:T | axis/squeeze_dims=[] | output
StatelessMultinomial | logits:T num_samples:int32 seed:Tseed | output_dtype=int64 | output
StatelessRandomGetAlg |  |  | alg
StatelessRandomGetKeyCounter | seed:Tseed |  | key counter
StatelessRandomNormal | shape:T seed:Tseed | dtype=float32 | output
StatelessRandomNormalV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StatelessRandomUniform | shape:T seed:Tseed | dtype=float32 | output
StatelessRandomUniformIntV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype |  | output
StatelessRandomUniformV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StatelessTruncatedNormal | shape:T seed:Tseed | dtype=float32 | output
StatelessTruncatedNormalV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StaticRegexFullMatch | input:string | pattern | output
StaticRegexReplace | input:string | pattern rewrite replace_global=True | output
StopGradient | input:T |  | output
StridedSlice | input:T begin:Index end:Index strides:Index | begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0 | output
StridedSliceGrad | shape:Index begin:Index end:Index strides:Index dy:T | begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0 | output
StringFormat | *inputs | template='%s' placeholder='%s' summarize=3 | output
StringJoin | *inputs:string | separator='' | output
StringLength | input:string | unit='BYTE' | output
StringLower | input:string | encoding='' | output
StringStrip | input:string |  | output
StringToHashBucketFast | input:string | num_buckets | output
StringToNumber | string_tensor:string | out_type=float32 | output
StringUpper | input:string | encoding='' | output
Sub | x:T y:T |  | z
Substr | input:string pos:T len:T | unit='BYTE' | output
Sum | input:T axis:Tidx | keep_dims=False | output
Svd | input:T | compute_uv=True full_matrices=False | s u v
Tan | x:T |  | y
Tanh | x:T |  | y
TanhGrad | y:T dy:T |  | z
TensorListConcat | input_handle | element_dtype element_shape=None | tensor lengths
TensorListConcatV2 | input_handle element_shape:shape_type leading_dims:int64 | element_dtype | tensor lengths
TensorListElementShape | input_handle | shape_type | element_shape
TensorListFromTensor | tensor:element_dtype element_shape:shape_type |  | output_handle
TensorListGather | input_handle indices:int32 element_shape:int32 | element_dtype | values
TensorListGetItem | input_handle index:int32 element_shape:int32 | element_dtype | item
TensorListLength | input_handle |  | length
TensorListPopBack | input_handle element_shape:int32 | element_dtype | output_handle tensor
TensorListPushBack | input_handle tensor:element_dtype |  | output_handle
TensorListReserve | element_shape:shape_type num_elements:int32 | element_dtype | handle
TensorListResize | input_handle size:int32 |  | output_handle
TensorListScatter | tensor:element_dtype indices:int32 element_shape:shape_type |  | output_handle
TensorListScatterV2 | tensor:element_dtype indices:int32 element_shape:shape_type num_elements:int32 |  | output_handle
TensorListSetItem | input_handle index:int32 item:element_dtype | resize_if_index_out_of_bounds=False | output_handle
TensorListSplit | tensor:element_dtype element_shape:shape_type lengths:int64 |  | output_handle
TensorListStack | input_handle element_shape:int32 | element_dtype num_elements=-1 | tensor
TensorScatterAdd | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterMax | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterMin | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterSub | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterUpdate | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
Tile | input:T multiples:Tmultiples |  | output
TopKV2 | input:T k:Tk | sorted=True index_type=int32 | values indices
Transpose | x:T perm:Tperm |  | y
TridiagonalMatMul | superdiag:T maindiag:T subdiag:T rhs:T |  | output
TridiagonalSolve | diagonals:T rhs:T | partial_pivoting=True perturb_singular=False | output
TruncateDiv | x:T y:T |  | z
TruncateMod | x:T y:T |  | z
TruncatedNormal | shape:T | seed=0 seed2=0 dtype | output
Unique | x:T | out_idx=int32 | y idx
UniqueV2 | x:T axis:Taxis | out_idx=int32 | y idx
UniqueWithCounts | x:T | out_idx=int32 | y idx count
UniqueWithCountsV2 | x:T axis:Taxis | out_idx=int32 | y idx count
Unpack | value:T | num axis=0 | *output
UnravelIndex | indices:Tidx dims:Tidx |  | output
UnsortedSegmentMax | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentMin | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentProd | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentSum | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UpperBound | sorted_inputs:T values:T | out_type=int32 | output
Where | condition:T |  | index
Xdivy | x:T y:T |  | z
Xlog1py | x:T y:T |  | z
Xlogy | x:T y:T |  | z
ZerosLike | x:T |  | y
Zeta | x:T q:T |  | z
"""
_LINES = {
    parts[0].strip(): (parts[1], parts[2], parts[3])
    for parts in (line.split("|") for line in _TABLE.strip().splitlines())
}
