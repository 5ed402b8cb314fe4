"""``td.nn``: neural network functions."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided
from treadle.nn import experimental
from treadle.ops.elementwise.unary import (
    sigmoid,
    tanh,
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

if TYPE_CHECKING:
    from treadle.ops.image.any_rank import (
        avg_pool,
        conv_transpose,
        convolution,
        max_pool,
        pool,
        with_space_to_batch,
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
        depthwise_conv2d_backprop_filter,
        depthwise_conv2d_backprop_input,
    )
    from treadle.ops.image.fractional_pooling import (
        fractional_avg_pool,
        fractional_max_pool,
    )
    from treadle.ops.image.morphology import (
        dilation2d,
        erosion2d,
    )
    from treadle.ops.image.one_axis import (
        atrous_conv2d,
        atrous_conv2d_transpose,
        avg_pool1d,
        conv1d,
        conv1d_transpose,
        max_pool1d,
        separable_conv2d,
    )
    from treadle.ops.image.pooling import (
        avg_pool2d,
        max_pool2d,
        max_pool_with_argmax,
    )
    from treadle.ops.image.volumes import (
        avg_pool3d,
        conv3d,
        conv3d_transpose,
        max_pool3d,
    )
    from treadle.ops.nn.compositions import (
        batch_norm_with_global_normalization,
        batch_normalization,
        bias_add,
        compute_average_loss,
        crelu,
        dropout,
        embedding_lookup,
        in_top_k,
        l2_normalize,
        local_response_normalization,
        log_poisson_loss,
        moments,
        normalize_moments,
        scale_regularization_loss,
        sufficient_statistics,
        weighted_cross_entropy_with_logits,
        weighted_moments,
        zero_fraction,
    )
    from treadle.ops.nn.compositions import local_response_normalization as lrn
    from treadle.ops.nn.isotonic import (
        isotonic_regression,
    )
    from treadle.ops.nn.labels import (
        collapse_repeated,
        ctc_unique_labels,
    )
    from treadle.ops.nn.sampled import (
        nce_loss,
        sampled_softmax_loss,
    )
    from treadle.ops.random.candidates import (
        all_candidate_sampler,
        compute_accidental_hits,
        fixed_unigram_candidate_sampler,
    )
    from treadle.ops.statistics.sorting import (
        approx_max_k,
        approx_min_k,
        top_k,
    )
    from treadle.sparse.label_sequences import (
        ctc_beam_search_decoder,
        ctc_greedy_decoder,
        ctc_loss,
    )
    from treadle.sparse.segments import embedding_lookup_sparse, safe_embedding_lookup_sparse

__all__ = [
    "all_candidate_sampler",
    "approx_max_k",
    "approx_min_k",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "batch_to_space",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "gelu",
    "in_top_k",
    "isotonic_regression",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "relu",
    "relu6",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
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
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "zero_fraction",
]

explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle.ops.image.any_rank": """
        avg_pool conv_transpose convolution max_pool pool with_space_to_batch
        """,
    "treadle.ops.image.blocks": "batch_to_space depth_to_space space_to_batch space_to_depth",
    "treadle.ops.image.convolution": """
        conv2d conv2d_transpose depthwise_conv2d depthwise_conv2d_backprop_filter
        depthwise_conv2d_backprop_input
        """,
    "treadle.ops.image.fractional_pooling": "fractional_avg_pool fractional_max_pool",
    "treadle.ops.image.morphology": "dilation2d erosion2d",
    "treadle.ops.image.one_axis": """
        atrous_conv2d atrous_conv2d_transpose avg_pool1d conv1d conv1d_transpose max_pool1d
        separable_conv2d
        """,
    "treadle.ops.image.pooling": "avg_pool2d max_pool2d max_pool_with_argmax",
    "treadle.ops.image.volumes": "avg_pool3d conv3d conv3d_transpose max_pool3d",
    "treadle.ops.nn.compositions": """
        batch_norm_with_global_normalization batch_normalization bias_add compute_average_loss crelu
        dropout embedding_lookup in_top_k l2_normalize local_response_normalization log_poisson_loss
        lrn=local_response_normalization moments normalize_moments scale_regularization_loss
        sufficient_statistics weighted_cross_entropy_with_logits weighted_moments zero_fraction
        """,
    "treadle.ops.nn.isotonic": "isotonic_regression",
    "treadle.ops.nn.labels": "collapse_repeated ctc_unique_labels",
    "treadle.ops.nn.sampled": "nce_loss sampled_softmax_loss",
    "treadle.ops.random.candidates": """
        all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler
        """,
    "treadle.ops.statistics.sorting": "approx_max_k approx_min_k top_k",
    "treadle.sparse.label_sequences": "ctc_beam_search_decoder ctc_greedy_decoder ctc_loss",
    "treadle.sparse.segments": "embedding_lookup_sparse safe_embedding_lookup_sparse",
})  # fmt: skip
