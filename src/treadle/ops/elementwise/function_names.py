"""The public functions that work on the elements of one tensor, or of two that broadcast.

Classes that hold tensors, those of users and ragged ones, hand all of them on in one way.
"""

UNARY = (
    "abs acos acosh angle asin asinh atan atanh cast ceil clip_by_value conj cos cosh digamma erf"
    " erfc erfcinv erfinv exp expm1 floor imag is_finite is_inf is_nan lgamma log log1p log_sigmoid"
    " logical_not ndtri negative nextafter real reciprocal reciprocal_no_nan rint round rsqrt"
    " saturate_cast sigmoid sign sin sinh softplus sqrt square tan tanh bessel_i0 bessel_i0e"
    " bessel_i1 bessel_i1e zeros_like ones_like as_string check_numerics invert relu relu6"
    " leaky_relu gelu log_softmax elu selu softsign swish silu lower upper strip length substr"
    " regex_replace regex_full_match to_number to_hash_bucket to_hash_bucket_fast"
    " to_hash_bucket_strong unicode_transcode encode_base64 decode_base64 adjust_brightness"
    " adjust_gamma random_brightness stateless_random_brightness convert_image_dtype"
)
BINARY = (
    "add subtract multiply divide truediv pow complex divide_no_nan multiply_no_nan floordiv"
    " floormod mod realdiv truncatediv truncatemod scalar_mul equal not_equal greater greater_equal"
    " less less_equal logical_and logical_or logical_xor maximum minimum squared_difference xdivy"
    " xlogy xlog1py zeta atan2 bitwise_and bitwise_or bitwise_xor left_shift right_shift"
)
