"""``td.nn``: neural network functions."""

from treadle.names import missing_in
from treadle.ops.elementwise.unary import (
    sigmoid,
    tanh,
)
from treadle.ops.image.blocks import (
    batch_to_space,
    depth_to_space,
    space_to_batch,
    space_to_depth,
)
from treadle.ops.image.convolution import (
    conv2d,
    conv2d_transpose,
    depthwise_conv2d,
)
from treadle.ops.image.one_axis import (
    atrous_conv2d,
    avg_pool1d,
    conv1d,
    conv1d_transpose,
    max_pool1d,
    separable_conv2d,
)
from treadle.ops.image.pooling import (
    avg_pool,
    avg_pool2d,
    max_pool,
    max_pool2d,
)
from treadle.ops.nn.activations import (
    elu,
    gelu,
    leaky_relu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softsign,
    swish,
)
from treadle.ops.nn.compositions import (
    batch_normalization,
    bias_add,
    crelu,
    dropout,
    embedding_lookup,
    in_top_k,
    l2_normalize,
    local_response_normalization,
    log_poisson_loss,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_cross_entropy_with_logits,
    weighted_moments,
    zero_fraction,
)
from treadle.ops.nn.losses import (
    l2_loss,
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from treadle.ops.nn.softmax import (
    log_softmax,
    softmax,
)

__all__ = [
    "atrous_conv2d",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_normalization",
    "batch_to_space",
    "bias_add",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "crelu",
    "depth_to_space",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "moments",
    "normalize_moments",
    "relu",
    "relu6",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]

__getattr__ = missing_in(__name__)
