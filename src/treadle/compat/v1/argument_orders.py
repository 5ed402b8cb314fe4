"""The orders of arguments that TensorFlow 1 has and TensorFlow 2 has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.compat.older_arguments import OlderArguments

_COMPARED = "x y data summarize message name"
_SEGMENTS = "data indices segment_ids name num_segments sparse_gradient"
_BLOCKS = "input block_size name data_format"
_EXAMPLES = "serialized features name example_names"

# By the name of a function, with that of its module where another one has the same name, its
# arguments in TensorFlow 1's order (see `OlderArguments`).
_ORDERS = {
    **dict.fromkeys(
        (
            "assert_equal", "assert_none_equal", "assert_less", "assert_less_equal",
            "assert_greater", "assert_greater_equal",
        ),
        _COMPARED,
    ),
    "assert_near": "x y rtol atol data summarize message name",
    **dict.fromkeys(
        ("assert_negative", "assert_non_negative", "assert_non_positive", "assert_positive"),
        "x data summarize message name",
    ),
    **dict.fromkeys(("assert_rank", "assert_rank_at_least"), "x rank data summarize= message name"),
    "assert_rank_in": "x ranks data summarize= message name",
    "assert_scalar": "tensor name message",
    "assert_all_finite": "t=x msg=message name x message",
    **dict.fromkeys(("v1.shape", "v1.size"), "input name out_type"),
    **dict.fromkeys(("math.softmax", "math.log_softmax"), "logits axis name dim=axis"),
    "avg_pool2d": "value=input ksize strides padding data_format name input",
    "batch_norm_with_global_normalization": "t=input m=mean v=variance beta gamma "
    "variance_epsilon scale_after_normalization name input mean variance",
    "boolean_mask": "tensor mask name axis",
    "confusion_matrix": "labels predictions num_classes dtype name weights",
    "conv3d_transpose": "value=input filter=filters output_shape strides padding data_format name "
    "input filters dilations",
    "crelu": "features name axis",
    "crop_and_resize": "image boxes box_ind=box_indices crop_size method extrapolation_value name "
    "box_indices",
    "decode_csv": "records record_defaults field_delim use_quote_delim name na_value select_cols",
    "decode_raw": "input_bytes out_type little_endian name bytes=input_bytes",
    **dict.fromkeys(("depth_to_space", "space_to_depth"), _BLOCKS),
    "draw_bounding_boxes": "images boxes name colors",
    "embedding_lookup_sparse": "params sp_ids sp_weights partition_strategy= name combiner "
    "max_norm allow_fast_lookup",
    "extract_image_patches": "images ksizes=sizes strides rates padding name sizes",
    **dict.fromkeys(
        ("fractional_avg_pool", "fractional_max_pool"),
        "value pooling_ratio pseudo_random overlapping deterministic= seed seed2= name",
    ),
    "gather": "params indices validate_indices name axis batch_dims",
    "gather_nd": "params indices name batch_dims bad_indices_policy",
    "max_pool_with_argmax": "input ksize strides padding data_format Targmax=output_dtype name "
    "output_dtype include_batch_in_index",
    "pad": "tensor paddings mode name constant_values",
    **dict.fromkeys(("parse_example", "parse_single_example"), _EXAMPLES),
    "safe_embedding_lookup_sparse": "embedding_weights sparse_ids sparse_weights combiner "
    "default_id name partition_strategy= max_norm allow_fast_lookup",
    "sample_distorted_bounding_box": "image_size bounding_boxes seed seed2= min_object_covered "
    "aspect_ratio_range area_range max_attempts use_image_if_no_bounding_boxes name",
    **dict.fromkeys(("serialize_sparse", "serialize_many_sparse"), "sp_input name out_type"),
    **dict.fromkeys(
        ("sparse.segment_mean", "sparse.segment_sqrt_n", "sparse.segment_sum"),
        _SEGMENTS,
    ),
    **dict.fromkeys(
        ("string_to_hash_bucket", "to_hash_bucket"), "string_tensor=input num_buckets name input"
    ),
    **dict.fromkeys(
        ("string_to_number", "to_number"), "string_tensor=input out_type name input"
    ),
    "stateless_multinomial": "logits num_samples seed output_dtype=dtype name",
    "sufficient_statistics": "x axes shift keep_dims=keepdims name keepdims",
    "v1.transpose": "a perm name conjugate",
}  # fmt: skip


def in_order_of_1(name: str, call: Callable[..., Any], module: str = "") -> Callable[..., Any]:
    """A function that takes its arguments as TensorFlow 1 does; itself where that is the same."""
    order = _ORDERS.get(f"{module.rpartition('.')[2]}.{name}", _ORDERS.get(name))
    if order is None or not callable(call):
        return call
    return OlderArguments(name, order).taken_by(call)
