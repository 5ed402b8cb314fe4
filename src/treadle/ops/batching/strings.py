"""Batching rules of strings."""

from __future__ import annotations

from typing import Any

from treadle.core.shapes import broadcast, product
from treadle.ops.batching.call import BatchedCall, NoRule
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.registry import set_batching
from treadle.ops.shaping.reshaping import reshape_to
from treadle.ops.strings.encodings import (
    DECODE_BASE64,
    DECODE_CSV,
    DECODE_RAW,
    DECOMPRESS,
    ENCODE_BASE64,
)
from treadle.ops.strings.fingerprints import FINGERPRINT
from treadle.ops.strings.parts import CASED, JOIN, LENGTH, REDUCE_JOIN, STRIP, SUBSTR
from treadle.ops.strings.reading import HASH_BUCKETS, TO_NUMBER
from treadle.ops.strings.regular import FULL_MATCH, REPLACE
from treadle.ops.strings.texts import AS_STRING
from treadle.ops.strings.unicode import ENCODE, TRANSCODE


def _each_element(call: BatchedCall) -> Any:
    """Each element of the first input is done alone, or each row."""
    if any(call.batched[1:]):
        raise NoRule("its pattern or rewrite differs between examples")
    return call.run(*call.inputs)


def _broadcasting(call: BatchedCall) -> Any:
    dims = (call.count, *broadcast(*(call.dims(k) for k in range(len(call.inputs)))))
    return call.run(
        *(broadcast_dims(call.aligned(k, len(dims) - 1), dims) for k in range(len(call.inputs)))
    )


def _fingerprint(call: BatchedCall) -> Any:
    x = call.inputs[0]
    found = call.run(reshape_to(x, (product(x.dims[:2]), *x.dims[2:])))
    return reshape_to(found, (*x.dims[:2], *found.dims[1:]))


def _reduce_join(call: BatchedCall) -> Any:
    return call.run(call.inputs[0], axes=tuple(a + 1 for a in call.attrs["axes"]))


set_batching(_each_element, AS_STRING, CASED, DECODE_BASE64, DECOMPRESS, ENCODE_BASE64, LENGTH)
set_batching(_each_element, STRIP, TO_NUMBER, TRANSCODE, FULL_MATCH, REPLACE, *HASH_BUCKETS)
set_batching(_each_element, DECODE_CSV, DECODE_RAW, ENCODE)
set_batching(_broadcasting, JOIN, SUBSTR)
set_batching(_fingerprint, FINGERPRINT)
set_batching(_reduce_join, REDUCE_JOIN)
