"""Writes the files that the tests read with TensorFlow: ``python tests/io/make_fixtures.py``.

Run it with a Python that has tensorflow.
"""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent / "fixtures"


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    t = tf.train
    HERE.mkdir(exist_ok=True)

    def feature(value: object) -> object:
        if isinstance(value[0], bytes):  # type: ignore[index]
            return t.Feature(bytes_list=t.BytesList(value=value))
        if isinstance(value[0], float):  # type: ignore[index]
            return t.Feature(float_list=t.FloatList(value=value))
        return t.Feature(int64_list=t.Int64List(value=value))

    examples = [
        t.Example(features=t.Features(feature={
            "name": feature([b"number %d" % i]),
            "numbers": feature([i, -i, 1 << 40, -(1 << 62)] + list(range(i * 20))),
            "shares": feature([i / 3, -1e-30, 3e38]),
        }))
        for i in range(5)
    ]  # fmt: skip
    sequence = t.SequenceExample(
        context=t.Features(feature={"length": feature([3])}),
        feature_lists=t.FeatureLists(feature_list={
            "words": t.FeatureList(feature=[feature([w]) for w in (b"a", b"bc", b"")]),
            "pairs": t.FeatureList(feature=[feature([i, i * i]) for i in range(3)]),
        }),
    )  # fmt: skip
    for kind in ("", "GZIP", "ZLIB"):
        path = str(HERE / f"examples{kind and '.' + kind.lower()}.tfrecord")
        with tf.io.TFRecordWriter(path, kind) as writer:
            for example in examples:
                writer.write(example.SerializeToString())
    with tf.io.TFRecordWriter(str(HERE / "sequence.tfrecord")) as writer:
        writer.write(sequence.SerializeToString())
    tensors = [
        tf.constant([[1.5, -2.0]]), tf.constant([1, -1], tf.int16), tf.constant(["x", "yz"]),
        tf.constant(True), tf.constant([0.5], tf.bfloat16), tf.constant([1 - 2j], tf.complex128),
    ]  # fmt: skip
    with tf.io.TFRecordWriter(str(HERE / "tensors.tfrecord")) as writer:
        for tensor in tensors:
            writer.write(tf.io.serialize_tensor(tensor).numpy())


if __name__ == "__main__":
    main()
