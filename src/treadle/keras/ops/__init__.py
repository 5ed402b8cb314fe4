"""``td.keras.ops``: Keras's functions of tensors, which functional models may have as steps."""

from treadle.keras.ops import image, linalg, nn, numpy
from treadle.keras.ops.core import (
    associative_scan,
    cast,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    custom_gradient,
    dtype,
    fori_loop,
    is_tensor,
    map,
    saturate_cast,
    scan,
    scatter,
    scatter_update,
    shape,
    slice,
    slice_update,
    stop_gradient,
    switch,
    unstack,
    vectorized_map,
    while_loop,
)
from treadle.keras.ops.einops import rearrange
from treadle.keras.ops.linalg import *  # noqa: F403
from treadle.keras.ops.linear_algebra import logdet
from treadle.keras.ops.nn import *  # noqa: F403
from treadle.keras.ops.numpy import *  # noqa: F403
from treadle.keras.ops.tensor_operators import add_operators
from treadle.keras.ops.transforms import (
    cdist,
    erf,
    erfc,
    erfinv,
    extract_sequences,
    fft,
    fft2,
    ifft2,
    in_top_k,
    irfft,
    istft,
    logsumexp,
    rfft,
    rsqrt,
    segment_max,
    segment_min,
    segment_prod,
    segment_sum,
    stft,
    top_k,
    view_as_complex,
    view_as_real,
)
from treadle.names import missing_in

__all__ = [
    "associative_scan", "cast", "cdist", "cond", "convert_to_numpy", "convert_to_tensor",
    "custom_gradient", "dtype", "erf", "erfc", "erfinv", "extract_sequences", "fft", "fft2",
    "fori_loop", "ifft2", "image", "in_top_k", "irfft", "is_tensor", "istft", "linalg",
    "logdet", "logsumexp", "map", "nn", "numpy", "rearrange", "rfft", "rsqrt", "saturate_cast",
    "scan", "scatter", "scatter_update", "segment_max", "segment_min", "segment_prod",
    "segment_sum", "shape", "slice", "slice_update", "stft", "stop_gradient", "switch", "top_k",
    "unstack", "vectorized_map", "view_as_complex", "view_as_real", "while_loop",
]  # fmt: skip
__all__ += linalg.__all__ + nn.__all__ + numpy.__all__

__getattr__ = missing_in(__name__)

add_operators()
