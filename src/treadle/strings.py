"""``td.strings``: operations on tensors of strings."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided
from treadle.ops.strings.parts import (
    join,
    length,
    lower,
    reduce_join,
    strip,
    substr,
    upper,
)
from treadle.ops.strings.pieces import (
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
    unicode_encode,
    unicode_transcode,
)

if TYPE_CHECKING:
    from treadle.ragged.strings import (
        bytes_split,
        split,
        unicode_decode,
        unicode_decode_with_offsets,
        unicode_split,
        unicode_split_with_offsets,
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
__getattr__ = provided(__name__, {
    "treadle.ragged.strings": """
        bytes_split split unicode_decode unicode_decode_with_offsets unicode_split
        unicode_split_with_offsets
        """,
})  # fmt: skip
