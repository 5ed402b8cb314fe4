"""``td.strings``: operations on tensors of strings. Where TensorFlow gives ragged tensors, rows are
filled up with empty strings, or zeros."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.ops.strings.parts import (
    join,
    length,
    lower,
    reduce_join,
    split,
    strip,
    substr,
    upper,
)
from treadle.ops.strings.pieces import (
    bytes_split,
    ngrams,
    unsorted_segment_join,
)
from treadle.ops.strings.reading import (
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
)
from treadle.ops.strings.regular import (
    regex_full_match,
    regex_replace,
)
from treadle.ops.strings.texts import (
    as_string,
    format,
)
from treadle.ops.strings.unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
