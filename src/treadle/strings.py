"""``td.strings``: operations on tensors of strings. What gives ragged tensors in TensorFlow is not
here, but for `split`, which fills up rows with empty strings."""

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

__all__ = [
    "as_string",
    "format",
    "join",
    "length",
    "lower",
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
    "upper",
]

__getattr__ = missing_in(__name__)
