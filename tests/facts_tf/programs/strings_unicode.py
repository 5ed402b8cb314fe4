"""td.strings: bytes, neighbours, characters, encodings, segments. Ragged results as dense ones."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program

WORDS = [["aé€", "b"], ["", "xyz"]]
BROKEN = [b"a\xff\xfeb", b"a\xe2\x82b\xc0\x80", b"\xf0\x9f\x98\x80c", b"\xed\xa0\x80", b""]
CODES = [[97, 233, 0x1F600], [0, 98, 8364]]


def dense(x):
    if isinstance(x, tuple | list):
        return [dense(part) for part in x]
    return x.to_tensor() if hasattr(x, "to_tensor") else x


def traced(tf, fn, *args):
    """What a function gives eagerly, and in a function of strings of open shape."""
    tensors = [tf.constant(a) for a in args]
    specs = [tf.TensorSpec([None] * t.shape.rank, t.dtype) for t in tensors]
    whole = tf.function(lambda *xs: dense(fn(*xs)), input_signature=specs)
    return outcome(lambda: dense(fn(*tensors))), outcome(whole, *tensors)


@program
def bytes_split(tf):
    fn = tf.strings.bytes_split
    return [traced(tf, fn, x) for x in ("abc", ["ab", "c", ""], WORDS, BROKEN)]


@program
def ngrams(tf):
    def of(x, *args, **kwargs):
        return traced(tf, lambda v: tf.strings.ngrams(v, *args, **kwargs), x)

    def raised(x, *args, **kwargs):
        return outcome(lambda: dense(tf.strings.ngrams(x, *args, **kwargs)))

    row, rows = ["a", "b", "c"], [["a", "b", "c"], ["d", "e", "f"]]
    return [
        of(rows, 2), of(row, 1), of(row, [1, 2]), of(row, (2, 3), "|"), of([rows], 2),
        of(rows, 2, pad_values=("<", ">")), of(rows, 3, pad_values="_", separator=""),
        of(rows, 3, pad_values=("<", ">"), padding_width=1), of(row, [2, 4], pad_values="-"),
        of(row, 2, pad_values="-", padding_width=5),
        raised(row, 2, pad_values="-", padding_width=0),
        of(row, 5), of(row, 5, preserve_short_sequences=True),
        of(row, [2, 5], preserve_short_sequences=True),
        of(row, [4, 5], preserve_short_sequences=True),
        of(row, 6, pad_values="-", padding_width=1, preserve_short_sequences=True),
        raised("a", 2), raised(row, 0), raised(row, [1, 0]), raised(row, 2, padding_width=1),
        raised(row, 2, pad_values=1),
        raised(row, 2, pad_values="-", padding_width=-1),
    ]  # fmt: skip


@program
def characters(tf):
    s = tf.strings
    found = []
    for fn in (
        s.unicode_decode, s.unicode_decode_with_offsets, s.unicode_split,
        s.unicode_split_with_offsets,
    ):  # fmt: skip
        found += [
            traced(tf, lambda x, fn=fn: fn(x, "UTF-8"), "aé€"),
            traced(tf, lambda x, fn=fn: fn(x, "UTF-8"), WORDS),
            traced(tf, lambda x, fn=fn: fn(x, "UTF-8"), BROKEN),
            outcome(lambda fn=fn: dense(fn(BROKEN, "UTF-8", "ignore"))),
            outcome(lambda fn=fn: dense(fn(BROKEN[0], "UTF-8", "strict"))),
            outcome(lambda fn=fn: dense(fn(BROKEN[:2], "UTF-8", replacement_char=63))),
            outcome(lambda fn=fn: fn(["é", "a"][0], "UTF-9")),
            outcome(lambda fn=fn: fn("a", "UTF-8", "keep")),
            outcome(lambda fn=fn: fn("a", "UTF-8", replacement_char=0x110000)),
            outcome(lambda fn=fn: dense(fn("aé€".encode("utf-16-be"), "UTF-16-BE"))),
            outcome(lambda fn=fn: dense(fn("aé€".encode("utf-32-be"), "UTF-32-BE"))),
            outcome(lambda fn=fn: dense(fn(b"\xe9a", "LATIN1"))),
        ]
    controls = b"a\x00b\x05\t\n\r\x1f\x7f"
    return [*found, s.unicode_decode(controls, "UTF-8", replace_control_characters=True)]


@program
def encoded(tf):
    def of(x, *args, **kwargs):
        return traced(tf, lambda v: tf.strings.unicode_encode(v, *args, **kwargs), np.int32(x))

    def raised(x, *args, **kwargs):
        return outcome(lambda: tf.strings.unicode_encode(x, *args, **kwargs))

    bad = [97, 0xD800, 0x110000, -1, 98]
    return [
        *(of(CODES, encoding) for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")),
        of(CODES[0], "UTF-8"), raised([CODES, CODES], "UTF-8"), of(bad, "UTF-8"),
        of(bad, "UTF-8", "ignore"), of(bad, "UTF-8", replacement_char=63),
        raised(bad, "UTF-8", "strict"), raised(CODES[0], "LATIN1"), raised(CODES[0], "UTF-8", "x"),
        of(np.zeros((2, 0)), "UTF-8"),
    ]  # fmt: skip


@program
def transcoded(tf):
    def of(x, *args, **kwargs):
        return traced(tf, lambda v: tf.strings.unicode_transcode(v, *args, **kwargs), x)

    def raised(x, *args, **kwargs):
        return outcome(lambda: tf.strings.unicode_transcode(x, *args, **kwargs))

    controls = b"a\x00b\x05\t\n\r\x1f\x7f"
    return [
        of(WORDS, "UTF-8", "UTF-16-BE"), of("aé", "UTF-8", "UTF-32-BE"),
        of(BROKEN, "UTF-8", "UTF-8"), of(BROKEN, "UTF-8", "UTF-8", "ignore"),
        of(BROKEN, "UTF-8", "UTF-8", replacement_char=63), of(b"\xe9", "ISO-8859-1", "UTF-8"),
        of(controls, "UTF-8", "UTF-8", replace_control_characters=True),
        of("あ".encode("shift_jis"), "shift_jis", "UTF-8"), of(b"", "UTF-8", "UTF-8"),
        raised(BROKEN[0], "UTF-8", "UTF-8", "strict"), raised("a", "X", "UTF-8"),
        raised("a", "UTF-8", "LATIN1"), raised("a", "UTF-8", "UTF-8", "x"),
    ]  # fmt: skip


@program
def segments_joined(tf):
    def of(x, ids, *args, **kwargs):
        return traced(
            tf, lambda v, i: tf.strings.unsorted_segment_join(v, i, *args, **kwargs), x, ids
        )

    def raised(x, ids, *args):
        return outcome(lambda: tf.strings.unsorted_segment_join(x, ids, *args))

    rows = [["a", "b"], ["c", "d"]]
    return [
        of(["a", "b", "c"], np.int32([1, 0, 1]), 3, separator="-"), of(rows, np.int64([1, 1]), 2),
        of(rows, np.int32([[0, 1], [1, 0]]), 2, ":"), of(rows, np.int32([0, 2]), 3, ", "),
        raised(["a", "b"], [-1, 0], 1), raised(["a", "b"], [5, 0], 1), raised(["a"], [0, 1], 1),
        raised(["a"], [0.0], 1), of(["a"], np.int32([0]), tf.constant(2)),
    ]  # fmt: skip
