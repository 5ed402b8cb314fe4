"""Calls of `keras.ops`, as texts: what they are called on has names of one letter."""

from __future__ import annotations

from typing import Any

import numpy as np

_generator = np.random.default_rng(7)


def _normal(*shape: int) -> Any:
    return _generator.normal(size=shape).astype(np.float32)


# What the calls are made on. The values are the same in every run.
INPUTS: dict[str, Any] = {
    "F": _normal(2, 3), "G": _normal(2, 3), "P": np.abs(_normal(2, 3)) + 0.5,  # floats, positive
    "U": np.tanh(_normal(2, 3)) * np.float32(0.9),  # between -1 and 1
    "V": _normal(3), "W": _normal(4), "T": _normal(2, 3, 4), "S": _normal(1, 3, 1),
    "I": np.array([[3, -1, 2], [0, 5, -4]], np.int32),
    "J": np.array([[2, 3, 1], [4, 2, 3]], np.int32),
    "B": np.array([[True, False, True], [False, False, True]]),
    "C": np.array([[False, False, True], [True, False, True]]),
    "N": np.array([[1.0, np.nan, -np.inf], [np.inf, -0.0, 2.5]], np.float32),
    "M": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], np.float32),
    "Q": _normal(2, 3, 3), "R": _normal(5, 3),
    "D": np.array([1, 0, 2, 0, 1], np.int32), "E": np.array([0, 0, 1, 2, 2], np.int32),
    "K": np.array([0.1, 0.5, 0.9], np.float32),
    "X": np.abs(_normal(2, 6, 5, 2)), "Y": _normal(2, 8, 3), "Z": _normal(1, 4, 4, 4, 2),
    "A": _generator.uniform(size=(1, 6, 5, 3)).astype(np.float32),
    "H": _generator.uniform(size=(1, 6, 5, 3)).astype(np.float32),
    "L": np.sin(np.arange(64, dtype=np.float32) * 0.7)[None], "O": _normal(2, 4, 2, 3),
}  # fmt: skip

# Dtypes that promotion is recorded for.
DTYPES = ("bool", "int8", "uint8", "int32", "int64", "bfloat16", "float16", "float32", "float64")

_UNARY = {
    "F": "abs absolute arctan arcsinh ceil conj copy cos deg2rad exp exp2 expm1 fabs fliplr flipud "
    "floor i0 imag isreal logical_not nan_to_num negative rad2deg ravel real round sign signbit "
    "sin sinc sinh size square tan tanh transpose trunc ones_like zeros_like empty_like shape ndim "
    "relu relu6 sigmoid sparse_sigmoid softplus softsign soft_shrink sparse_plus silu squareplus "
    "log_sigmoid leaky_relu hard_sigmoid hard_silu elu selu gelu celu tanh_shrink hard_tanh "
    "hard_shrink softmax log_softmax sparsemax erf erfc logsumexp normalize rms_normalization "
    "layer_normalization angle cbrt nonzero unstack stop_gradient",
    "P": "arccosh(P+1) log log10 log1p log2 reciprocal rsqrt sqrt",
    "U": "arccos arcsin arctanh erfinv",
    "N": "isfinite isinf isnan isneginf isposinf nan_to_num nanmax nanmin nansum nanprod nanmean "
    "nanstd nanvar nanmedian nancumsum nancumprod nanargmax nanargmin signbit",
    "M": "cholesky det eigh inv logdet slogdet matrix_rank pinv corrcoef lu_factor trace diag",
    "F ": "sum mean prod max min amax amin any all std var median argmax argmin ptp cumsum cumprod "
    "sort argsort diff count_nonzero average flip",
    "I": "bitwise_invert bitwise_not abs sign square cumsum sort unique",
    "B": "sum prod max min sort logical_not cumsum argmax",
}  # fmt: skip
_BINARY = {
    "F, G": "add subtract multiply divide true_divide maximum minimum fmax fmin arctan2 logaddexp "
    "logaddexp2 hypot heaviside mod fmod floor_divide equal less greater_equal isclose allclose "
    "logical_and logical_xor cross vdot inner outer nextafter divide_no_nan kron psnr(F,G,2.0)",
    "I, J": "add mod fmod floor_divide divide gcd lcm bitwise_and bitwise_or bitwise_xor "
    "left_shift right_shift ldexp(F,J) power(P,J) power(I,2) less_equal greater not_equal isin "
    "inner floor_divide(I,2) maximum(I,2.5) add(I,1) add(I,0.5) multiply(B,2) subtract(F,1)",
    "F, V": "add multiply dot matmul subtract",
    "B, C": "logical_or equal not_equal",
}  # fmt: skip
_CALLS = """
sum(T,axis=(0,2)) sum(T,axis=1,keepdims=True) mean(T,axis=-1) max(T,axis=(0,1)) min(F,initial=-9.0)
max(B,axis=0) prod(T,axis=0) std(T,axis=1) var(T,axis=(1,2),keepdims=True) argmax(T,axis=1)
argmin(T,axis=2,keepdims=True) cumsum(T,axis=1) cumprod(F,axis=0) any(B,axis=0) all(B,axis=1)
count_nonzero(I,axis=1) average(F,axis=1) average(F,axis=1,weights=V) average(F,weights=P)
median(T,axis=1) median(T,axis=(0,2),keepdims=True) quantile(F,0.3) quantile(T,K,axis=1)
quantile(F,0.3,method="nearest") quantile(F,0.3,method="midpoint") percentile(F,30.0,axis=0)
nanmean(N,axis=0) nanmax(N,axis=1,keepdims=True) nansum(N,axis=1) nanmedian(F,axis=1)
nanpercentile(F,30.0) nanquantile(F,0.3,axis=0) nancumsum(N,axis=1) ptp(F,axis=1) bincount(D)
bincount(D,minlength=6) bincount(D,weights=E) histogram(W,bins=4) digitize(F,V[:1])
histogram(W,bins=3,range=(-1.0,1.0)) trapezoid(F) trapezoid(T,axis=1,dx=0.5) trace(T,offset=1)
diagonal(T) diagonal(F,offset=1) diag(V) diag(V,k=1) diagflat(F) tril(T) triu(T,k=1) tril(F,k=-1)
vander(V) vander(V,N=2,increasing=True) meshgrid(V,W) meshgrid(V,W,indexing="ij") arange(5)
arange(1,6,2) arange(0.0,1.0,0.25) arange(3,dtype="float32") linspace(0,1,5)
linspace(0.0,1.0,4,endpoint=False) linspace(0,1,3,retstep=True) linspace(V,V+1,3,axis=1)
logspace(0,2,3) geomspace(1.0,8.0,4) eye(3) eye(2,3,k=1) identity(2,dtype="int32") tri(3,k=-1)
full((2,2),3.5) full_like(I,7) ones((2,),dtype="bool") zeros((2,1)) bartlett(5) blackman(5)
hamming(5) hanning(5) kaiser(5,8.0) array([1,2]) array([1.5,2])
convert_to_tensor([1,2],dtype="float16") reshape(T,(6,-1)) expand_dims(F,(0,-1)) squeeze(S)
squeeze(S,axis=0) transpose(T,(2,0,1)) swapaxes(T,0,2) moveaxis(T,0,-1) moveaxis(T,(0,1),(1,2))
broadcast_to(V,(2,3)) flip(T,axis=1) flip(T,axis=(0,2)) rot90(F) rot90(T,k=3,axes=(1,2)) roll(F,1)
roll(T,2,axis=1) view(I,"float32") view(I,"int16") concatenate([F,G],axis=1) concatenate([F,I])
append(F,I) append(F,G,axis=0) stack([F,G],axis=1) hstack([F,G]) vstack([F,I]) dstack([F,G])
split(T,2,axis=2) split(W,[1,3]) array_split(W,3) hsplit(F,3) vsplit(F,2) dsplit(T,[1,3]) tile(F,2)
tile(F,(2,1,2)) repeat(F,2) repeat(F,2,axis=1) pad(F,((1,1),(1,1)))
pad(F,((0,1),(2,0)),constant_values=3.0) pad(F,((1,1),(2,2)),mode="symmetric")
pad(F,((1,0),(2,2)),mode="reflect") sort(T,axis=1) argsort(F,axis=0) take(F,[0,2],axis=1)
take(F,[-1,1]) take_along_axis(F,I[:1]*0+1,axis=0) take_along_axis(V,[0,2,-1])
get_item(T,(0,slice(1,3))) unravel_index(D,(2,3)) searchsorted(K,W) searchsorted(K,V,side="right")
isin(I,[2,5],invert=True) unique(D,return_counts=True)
unique(D,return_index=True,return_inverse=True) unique(D,size=5,fill_value=9) nonzero(B)
where(B,F,G) where(B,F,0) where(B) select([B,C],[F,G],default=1.5) clip(F,-0.5,0.5) clip(I,0,3)
round(F,decimals=1) isclose(F,F+1e-6) allclose(F,F+1) cross(R,R[::-1]) matmul(T,swapaxes(T,1,2))
matmul(F,M) matmul(I,M) dot(T,W) tensordot(T,F,axes=((0,1),(0,1))) tensordot(F,M,axes=1)
einsum("ijk,kl->ijl",T,T[0,0,:,None]) einsum("ii->i",M) correlate(W,V) correlate(W,V,mode="full")
correlate(W,V,mode="same") outer(V,W) kron(I,J) linalg.norm(F) linalg.norm(F,ord=1,axis=1)
norm(M,ord="nuc") norm(M,ord=2) norm(F,ord=float("inf"),axis=0,keepdims=True) norm(M,ord=-1)
qr(M)[1]*0 svd(R,compute_uv=False) solve(M,V) solve(M,R.T) solve_triangular(M,V,lower=True)
lstsq(R,R[:,0]*2) cholesky(M,upper=True) cholesky_inverse(M) eig(M)[0]*0
jvp(square,(array(F),),(array(G),)) segment_sum(R,E) segment_max(R,E,num_segments=4)
segment_min(R,E) segment_prod(R,E) top_k(F,2) in_top_k(J[:,0]*0+1,F,2)
logsumexp(T,axis=(0,2),keepdims=True) cdist(F,R) fft((F,G)) fft2((F,G)) ifft2((F,G))
rfft(L,fft_length=16) irfft((F,G)) stft(L,16,8,16) stft(L,8,4,16,window="hamming",center=False)
istft(stft(L,16,8,16),16,8,16) extract_sequences(L,10,7) view_as_complex(O[...,:2])
view_as_real(cast(F,"complex64")) relu(I) celu(F,alpha=0.5) elu(F,alpha=2.0)
gelu(F,approximate=False) glu(T) hard_shrink(F,threshold=0.3) leaky_relu(F,negative_slope=0.1)
soft_shrink(F,threshold=0.1) squareplus(F,b=2) threshold(F,0.1,-1.0) softmax(T,axis=1)
softmax(F,axis=None) log_softmax(T,axis=0) sparsemax(T,axis=1) one_hot(D,3)
one_hot(D,3,axis=0,dtype="int32") multi_hot(J,6) categorical_crossentropy(softmax(G),softmax(F))
categorical_crossentropy(softmax(G),F,from_logits=True)
sparse_categorical_crossentropy(D[:2],softmax(F))
sparse_categorical_crossentropy(D[:2],F,from_logits=True)
binary_crossentropy(cast(C,"float32"),sigmoid(F))
binary_crossentropy(cast(C,"float32"),F,from_logits=True) moments(T,axes=(0,1))
moments(F,axes=1,keepdims=True) batch_normalization(F,V,V*V+1,-1)
batch_normalization(T,V,V*V+1,1,offset=V,scale=V) normalize(F,axis=0) normalize(F,order=1)
rms_normalization(T,scale=W) layer_normalization(T,gamma=W,beta=W)
layer_normalization(T,axis=(1,2),epsilon=0.1) max_pool(X,2) max_pool(Y,3,strides=2,padding="same")
average_pool(X,(2,3),strides=1,padding="same") average_pool(Z,2)
adaptive_average_pool(array(X),(4,2)) adaptive_max_pool(array(Y),3)
adaptive_average_pool(array(Z),(2,3,1)) conv(X,X[0,:3,:2,:,None],padding="same")
conv(Y,Y[0,:3,:,None],strides=2) conv(X,X[0,:2,:2,:,None],dilation_rate=2)
depthwise_conv(X,X[0,:3,:3,:,None]) depthwise_conv(X,X[0,:3,:3,:,None],strides=2,padding="same")
depthwise_conv(X,X[0,:2,:2,:,None],strides=2,dilation_rate=2,padding="same")
separable_conv(X,X[0,:3,:3,:,None],X[:1,:1,:2,:]) conv_transpose(X,X[0,:3,:3,None,:],strides=2)
conv_transpose(X,X[0,:3,:3,None,:],strides=2,padding="same") depth_to_space(repeat(X,2,axis=3),2)
space_to_depth(X[:,:,:4],2) unfold(transpose(X,(0,3,1,2)),2,stride=2)
fold(unfold(transpose(X,(0,3,1,2)),2,stride=2),(6,5),2,stride=2) dot_product_attention(O,O,O)
dot_product_attention(O,O,O,is_causal=True,scale=0.3) polar(P,F) psnr(A,H,1.0)
rearrange(T,"a b c -> b (a c)") rearrange(T,"a b (c d) -> (a c) b d",c=2) cast(F,"int32")
cast(I,"bool") saturate_cast(F*300,"uint8") slice(T,(0,1,1),(2,2,2)) shape(T)
slice_update(T,(0,1,1),T[:,:1,:2]*0) scatter([[1],[3]],[5.0,6.0],(5,))
scatter_update(V,[[1]],[9.0]) scatter_update(F,[[0,1],[1,2]],[9.0,8.0],reduction="add")
scatter_update(V,[[1],[1]],[2.0,3.0],reduction="mul") scatter_update(V,[[1]],[2.0],reduction="max")
unstack(F,axis=1) cond(True,lambda:F,lambda:G) switch(1,[lambda a:a,lambda a:a+1],F)
while_loop(lambda i,x:i<3,lambda i,x:(i+1,x*2),(0,F)) fori_loop(0,3,lambda i,x:add(x,i),F)
map(lambda r:r*2,F) vectorized_map(lambda r:r+1,F) scan(lambda c,r:(c+r,c*r),V*0,R)
scan(lambda c,r:(c+r,c),V*0,R,reverse=True) associative_scan(lambda a,b:a+b,R)
associative_scan(lambda a,b:a*b,R,reverse=True) associative_scan(lambda a,b:a+b,T,axis=1)
image.rgb_to_grayscale(A) image.rgb_to_hsv(A) image.hsv_to_rgb(A) image.resize(A,(4,7))
image.resize(A,(9,9),interpolation="bicubic") image.resize(A,(4,4),crop_to_aspect_ratio=True)
image.resize(A,(3,3),antialias=True) image.pad_images(A,1,2,3,4)
image.crop_images(A,1,1,target_height=3,target_width=2)
image.pad_images(A,top_padding=1,left_padding=1,target_height=9,target_width=9)
image.extract_patches(A,2) image.extract_patches(A,(3,2),strides=1,padding="same")
image.extract_patches_3d(Z,2) image.affine_transform(A,array([1.0,0.1,0.5,-0.1,1.0,0.2,0.0,0.0]))
image.affine_transform(A,array([1.0,0.1,0.5,-0.1,1.0,0.2,0.001,0.0]),interpolation="nearest",fill_mode="reflect")
image.perspective_transform(A,array([[0.0,0.0],[0.0,4.0],[5.0,0.0],[5.0,4.0]]),array([[0.5,0.0],[0.0,4.0],[5.0,0.5],[4.0,4.0]]))
image.map_coordinates(F,array([[0.3,1.0],[1.5,2.4]]),1)
image.map_coordinates(F,array([[0.3,1.9],[1.5,3.4]]),1,"nearest")
image.map_coordinates(F,array([[0.3,-1.9],[1.5,3.4]]),0,"wrap") image.gaussian_blur(A)
image.sobel_edges(A)
image.scale_and_translate(A,(1,4,4,3),array([0.7,0.8]),array([0.1,0.2]),(1,2),"linear")
image.ssim(A,H,filter_size=3)
image.scale_and_translate(A,(1,8,8,3),array([1.3,1.5]),array([0.1,0.2]),(1,2),"lanczos3")
random.normal((3,2),seed=42) random.normal((4,),mean=2.0,stddev=0.5,dtype="float16",seed=1)
random.uniform((5,),seed=42)
random.uniform((3,),minval=-2.0,maxval=3.0,seed=random.SeedGenerator(7))
random.randint((6,),0,10,seed=5) random.randint((4,),-3,3,dtype="int8",seed=5)
random.shuffle(R,seed=3) random.shuffle(T,axis=1,seed=3) random.dropout(T,0.4,seed=2)
random.gamma((4,),2.0,seed=4) random.dropout(T,0.4,noise_shape=(None,1,None),seed=2)
random.binomial((4,),10.0,0.3,seed=6) random.beta((3,),2.0,3.0,seed=8)
random.SeedGenerator(3).next()
"""


def _calls() -> list[str]:
    found = []
    for arguments, names in (_UNARY | _BINARY).items():
        for name in names.split():
            found.append(name if "(" in name else f"{name}({arguments.strip()})")
    found += _CALLS.split("\n")
    split: list[str] = []
    for line in found:
        split += _at_spaces(line)
    for name in ("add", "divide", "power", "equal", "where(B,"):
        call = name if "(" in name else f"{name}("
        split += [
            f'{call}cast(J,"{a}"),cast(J,"{b}"))'
            for number, a in enumerate(DTYPES) for b in DTYPES[number:]
            if a != "bool" or (name != "power" and (name != "add" or b != "bool"))
        ]  # fmt: skip
    for name in ("sum", "mean", "prod", "var", "sqrt", "exp", "sin", "cumsum", "max", "argmax"):
        split += [f'{name}(cast(J,"{a}"))' for a in DTYPES]
    return list(dict.fromkeys(split))


def _at_spaces(line: str) -> list[str]:
    """The calls of a line, which have blanks between them."""
    calls, depth, current, quoted = [], 0, "", False
    for c in line:
        quoted ^= c == '"'
        depth += (c in "([") - (c in ")]")
        if c == " " and depth == 0 and not quoted:
            calls.append(current)
            current = ""
        else:
            current += c
    return [call for call in [*calls, current] if call]


CALLS = _calls()


def made(keras: Any, call: str, inputs: dict[str, Any]) -> Any:
    """What a call gives with a library's `keras.ops` and `keras.random`."""
    ops = keras.ops
    names = {name: getattr(ops, name) for name in dir(ops) if name[0] != "_"}
    names["slice"] = slice if ",slice(" in call else ops.slice  # Python's, in an index
    names["random"] = keras.random
    return eval(call, {**names, **inputs})


def parts(value: Any) -> list[tuple[str, tuple[int, ...], Any]]:
    """The dtype, the shape and the values of each part of a result; bools as bytes, 16-bit floats
    in float32."""
    if isinstance(value, list | tuple):
        return [part for inner in value for part in parts(inner)]
    dtype = str(getattr(value.dtype, "name", value.dtype)) if hasattr(value, "dtype") else "python"
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.name in ("bfloat16", "float16"):
        array = array.astype(np.float32)
    return [(dtype, array.shape, array)]
