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
All | input:bool axis:Tidx | keep_dims=False | output
Any | input:bool axis:Tidx | keep_dims=False | output
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
BatchMatMul | x:T y:T | adj_x=False adj_y=False grad_x=False grad_y=False | output
BatchMatMulV2 | x:T y:T | adj_x=False adj_y=False grad_x=False grad_y=False | output
BatchMatMulV3 | x:Ta y:Tb | Tout adj_x=False adj_y=False grad_x=False grad_y=False | output
BiasAdd | value:T bias:T | data_format='NHWC' | output
Bitcast | input:T | type | output
BitwiseAnd | x:T y:T |  | z
BitwiseOr | x:T y:T |  | z
BitwiseXor | x:T y:T |  | z
BlockLSTMV2 | seq_len_max:int64 x:T cs_prev:T h_prev:T w:T wci:T wcf:T wco:T b:T | cell_clip=0.0 use_peephole=False | i cs f o ci co h
BroadcastGradientArgs | s0:T s1:T |  | r0 r1
BroadcastTo | input:T shape:Tidx |  | output
Bucketize | input:T | boundaries | output
Cast | x:SrcT | DstT Truncate=False | y
Ceil | x:T |  | y
CheckNumerics | tensor:T | message | output
Cholesky | input:T |  | output
ClipByValue | t:T clip_value_min:T clip_value_max:T |  | output
Concat | concat_dim:int32 *values:T |  | output
ConcatV2 | *values:T axis:Tidx |  | output
Conj | input:T |  | output
ConjugateTranspose | x:T perm:Tperm |  | y
Conv2D | input:T filter:T | strides use_cudnn_on_gpu=True padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Conv2DBackpropInput | input_sizes:int32 filter:T out_backprop:T | strides use_cudnn_on_gpu=True padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Cos | x:T |  | y
Cosh | x:T |  | y
Cumprod | x:T axis:Tidx | exclusive=False reverse=False | out
Cumsum | x:T axis:Tidx | exclusive=False reverse=False | out
DecodeBmp | contents:string | channels=0 | image
DecodeJpeg | contents:string | channels=0 ratio=1 fancy_upscaling=True try_recover_truncated=False acceptable_fraction=1.0 dct_method='' | image
DecodePng | contents:string | channels=0 dtype=uint8 | image
DecodeRaw | bytes:string | out_type little_endian=True | output
DepthwiseConv2dNative | input:T filter:T | strides padding explicit_paddings=[] data_format='NHWC' dilations=[1,1,1,1] | output
Digamma | x:T |  | y
Div | x:T y:T |  | z
DivNoNan | x:T y:T |  | z
Einsum | *inputs:T | equation | output
Elu | features:T |  | activations
EnsureShape | input:T | shape | output
Equal | x:T y:T | incompatible_shape_error=True | z
Erf | x:T |  | y
Erfc | x:T |  | y
Exp | x:T |  | y
ExpandDims | input:T axis:Tdim |  | output
Expm1 | x:T |  | y
Fill | dims:index_type value:T |  | output
Floor | x:T |  | y
FloorDiv | x:T y:T |  | z
FloorMod | x:T y:T |  | z
FusedBatchNorm | x:T scale:T offset:T mean:T variance:T | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormV2 | x:T scale:U offset:U mean:U variance:U | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormV3 | x:T scale:U offset:U mean:U variance:U | epsilon=9.999999747378752e-05 exponential_avg_factor=1.0 data_format='NHWC' is_training=True | y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3
Gather | params:Tparams indices:Tindices | validate_indices=True | output
GatherNd | params:Tparams indices:Tindices | bad_indices_policy='' | output
GatherV2 | params:Tparams indices:Tindices axis:Taxis | batch_dims=0 | output
Greater | x:T y:T |  | z
GreaterEqual | x:T y:T |  | z
Identity | input:T |  | output
IdentityN | *input |  | *output
IgammaGradA | a:T x:T |  | z
Imag | input:T | Tout=float32 | output
ImageProjectiveTransformV2 | images:dtype transforms:float32 output_shape:int32 | interpolation fill_mode='CONSTANT' | transformed_images
ImageProjectiveTransformV3 | images:dtype transforms:float32 output_shape:int32 fill_value:float32 | interpolation fill_mode='CONSTANT' | transformed_images
Inv | x:T |  | y
Invert | x:T |  | y
InvertPermutation | x:T |  | y
IsFinite | x:T |  | y
IsInf | x:T |  | y
IsNan | x:T |  | y
L2Loss | t:T |  | output
LRN | input:T | depth_radius=5 bias=1.0 alpha=1.0 beta=0.5 | output
LeakyRelu | features:T | alpha=0.20000000298023224 | activations
LeftShift | x:T y:T |  | z
Less | x:T y:T |  | z
LessEqual | x:T y:T |  | z
Lgamma | x:T |  | y
LinSpace | start:T stop:T num:Tidx |  | output
Log | x:T |  | y
Log1p | x:T |  | y
LogSoftmax | logits:T |  | logsoftmax
LogicalAnd | x:bool y:bool |  | z
LogicalNot | x:bool |  | y
LogicalOr | x:bool y:bool |  | z
MatMul | a:T b:T | transpose_a=False transpose_b=False grad_a=False grad_b=False | product
MatrixDeterminant | input:T |  | output
MatrixDiag | diagonal:T |  | output
MatrixDiagPart | input:T |  | diagonal
MatrixDiagPartV2 | input:T k:int32 padding_value:T |  | diagonal
MatrixDiagPartV3 | input:T k:int32 padding_value:T | align='RIGHT_LEFT' | diagonal
MatrixInverse | input:T | adjoint=False | output
Max | input:T axis:Tidx | keep_dims=False | output
MaxPool | input:T | ksize strides padding explicit_paddings=[] data_format='NHWC' | output
Maximum | x:T y:T |  | z
Mean | input:T axis:Tidx | keep_dims=False | output
Min | input:T axis:Tidx | keep_dims=False | output
Minimum | x:T y:T |  | z
MirrorPad | input:T paddings:Tpaddings | mode | output
Mod | x:T y:T |  | z
Mul | x:T y:T |  | z
MulNoNan | x:T y:T |  | z
Multinomial | logits:T num_samples:int32 | seed=0 seed2=0 output_dtype=int64 | output
Neg | x:T |  | y
NoOp |  |  |
NotEqual | x:T y:T | incompatible_shape_error=True | z
OneHot | indices:TI depth:int32 on_value:T off_value:T | axis=-1 | output
OnesLike | x:T |  | y
Pack | *values:T | axis=0 | output
Pad | input:T paddings:Tpaddings |  | output
PadV2 | input:T paddings:Tpaddings constant_values:T |  | output
Pow | x:T y:T |  | z
PreventGradient | input:T | message='' | output
PrintV2 | input:string | output_stream='stderr' end='\n' |
Prod | input:T axis:Tidx | keep_dims=False | output
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
Relu | features:T |  | activations
Relu6 | features:T |  | activations
Reshape | tensor:T shape:Tshape |  | output
ResizeBilinear | images:T size:int32 | align_corners=False half_pixel_centers=False | resized_images
ResizeNearestNeighbor | images:T size:int32 | align_corners=False half_pixel_centers=False | resized_images
ReverseV2 | tensor:T axis:Tidx |  | output
RightShift | x:T y:T |  | z
Rint | x:T |  | y
Round | x:T |  | y
Rsqrt | x:T |  | y
ScatterNd | indices:Tindices updates:T shape:Tindices | bad_indices_policy='' | output
Select | condition:bool x:T y:T |  | output
SelectV2 | condition:bool t:T e:T |  | output
Selu | features:T |  | activations
Shape | input:T | out_type=int32 | output
ShapeN | *input:T | out_type=int32 | *output
Sigmoid | x:T |  | y
Sign | x:T |  | y
Sin | x:T |  | y
Sinh | x:T |  | y
Size | input:T | out_type=int32 | output
Slice | input:T begin:Index size:Index |  | output
Snapshot | input:T |  | output
Softmax | logits:T |  | softmax
SoftmaxCrossEntropyWithLogits | features:T labels:T |  | loss backprop
Softplus | features:T |  | activations
Softsign | features:T |  | activations
SparseSoftmaxCrossEntropyWithLogits | features:T labels:Tlabels |  | loss backprop
Split | axis:int32 value:T | num_split | *output
SplitV | value:T size_splits:Tlen axis:int32 | num_split | *output
Sqrt | x:T |  | y
Square | x:T |  | y
SquaredDifference | x:T y:T |  | z
Squeeze | input:T | axis/squeeze_dims=[] | output
StatelessRandomGetAlg |  |  | alg
StatelessRandomGetKeyCounter | seed:Tseed |  | key counter
StatelessRandomNormalV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StatelessRandomUniformIntV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype |  | output
StatelessRandomUniformV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StatelessTruncatedNormalV2 | shape:Tshape key:uint64 counter:uint64 alg:int32 | dtype=float32 | output
StaticRegexFullMatch | input:string | pattern | output
StaticRegexReplace | input:string | pattern rewrite replace_global=True | output
StopGradient | input:T |  | output
StridedSlice | input:T begin:Index end:Index strides:Index | begin_mask=0 end_mask=0 ellipsis_mask=0 new_axis_mask=0 shrink_axis_mask=0 | output
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
Tan | x:T |  | y
Tanh | x:T |  | y
TensorScatterAdd | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterMax | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterMin | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterSub | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
TensorScatterUpdate | tensor:T indices:Tindices updates:T | bad_indices_policy='' | output
Tile | input:T multiples:Tmultiples |  | output
TopKV2 | input:T k:Tk | sorted=True index_type=int32 | values indices
Transpose | x:T perm:Tperm |  | y
TruncateDiv | x:T y:T |  | z
TruncateMod | x:T y:T |  | z
TruncatedNormal | shape:T | seed=0 seed2=0 dtype | output
Unique | x:T | out_idx=int32 | y idx
UniqueV2 | x:T axis:Taxis | out_idx=int32 | y idx
UniqueWithCounts | x:T | out_idx=int32 | y idx count
UniqueWithCountsV2 | x:T axis:Taxis | out_idx=int32 | y idx count
Unpack | value:T | num axis=0 | *output
UnsortedSegmentMax | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentMin | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentProd | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
UnsortedSegmentSum | data:T segment_ids:Tindices num_segments:Tnumsegments |  | output
Where | condition:T |  | index
Xdivy | x:T y:T |  | z
Xlog1py | x:T y:T |  | z
Xlogy | x:T y:T |  | z
ZerosLike | x:T |  | y
"""
_LINES = {
    parts[0].strip(): (parts[1], parts[2], parts[3])
    for parts in (line.split("|") for line in _TABLE.strip().splitlines())
}
