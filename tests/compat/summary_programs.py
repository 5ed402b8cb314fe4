"""Programs that write summaries, whose messages are compared with TensorFlow's.

``PYTHONPATH=. /path/with/tensorflow/python tests/compat/summary_programs.py`` writes what
TensorFlow gives into ``summaries.json``.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("summaries.json")
_GRID = np.arange(24, dtype=np.float32).reshape(2, 3, 4, 1)
_SPREAD = np.concatenate([np.linspace(-3, 5, 40), np.zeros(7), [1e-20, 1e30, 7e-13]])
_TONE = np.sin(np.linspace(0, 20, 90)).astype(np.float32).reshape(2, 45) * 1.2

# Each gives a message Summary, or a list of them.
CALLS = {
    "scalar": lambda tf: tf.summary.scalar("loss", 1.5),
    "scalar of int": lambda tf: tf.summary.scalar("step", tf.constant(7, tf.int64)),
    "family": lambda tf: tf.summary.scalar("loss", 2.5, family="train"),
    "strange name": lambda tf: tf.summary.scalar("/a b:c/d", 2.5),
    "same names": lambda tf: [tf.summary.scalar("x", 1.0), tf.summary.scalar("x", 2.0)],
    "histogram": lambda tf: tf.summary.histogram("h", _SPREAD),
    "histogram of one": lambda tf: tf.summary.histogram("h", 0.0),
    "histogram of ints": lambda tf: tf.summary.histogram("h", tf.constant([1, 1, -4, 100])),
    "histogram of none": lambda tf: tf.summary.histogram("h", tf.zeros([0])),
    "image": lambda tf: tf.summary.image("i", _GRID),
    "one image": lambda tf: tf.summary.image("i", _GRID, max_outputs=1),
    "image of both signs": lambda tf: tf.summary.image("i", _GRID - 5.0),
    "image of bytes": lambda tf: tf.summary.image("i", tf.cast(_GRID, tf.uint8)),
    "image of zeros": lambda tf: tf.summary.image("i", np.zeros([1, 2, 2, 3], np.float32)),
    "image with NaN": lambda tf: tf.summary.image(
        "i", np.where(_GRID == 5, np.nan, np.concatenate([_GRID] * 3, -1)).astype(np.float32)
    ),
    "audio": lambda tf: tf.summary.audio("a", _TONE, 100),
    "audio of one": lambda tf: tf.summary.audio("a", _TONE[..., None], 44100.0, max_outputs=1),
    "text": lambda tf: tf.summary.text("t", tf.constant([["a", "b"], ["c", "d"]])),
    "tensor": lambda tf: tf.summary.tensor_summary("v", [[1, 2]], display_name="shown"),
    "merge": lambda tf: tf.summary.merge(
        [tf.summary.scalar("x", 1.0), tf.summary.histogram("y", [1.0, 2.0])]
    ),
    "merge all": lambda tf: [tf.summary.scalar("a/x", 1.0), tf.summary.merge_all()],
}


def told(tf: Any, call: Any) -> Any:
    """Names of tensors and what is in their messages; names of operations of the graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        made = call(tf)
        given = made if isinstance(made, list) else [made]
        found = [(t.name, tf.Summary.FromString(session.run(t)).value) for t in given]
        return [[name, [_value(tf, v) for v in values]] for name, values in found]


def _value(tf: Any, value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    if kind == "simple_value":
        about: Any = found
    elif kind == "histo":
        about = [found.min, found.max, found.num, found.sum, found.sum_squares,
                 list(found.bucket_limit), list(found.bucket)]  # fmt: skip
    elif kind == "image":
        pixels = tf.Session().run(tf.image.decode_png(found.encoded_image_string))
        about = [found.height, found.width, found.colorspace, pixels.tolist()]
    elif kind == "audio":
        about = [found.sample_rate, found.num_channels, found.length_frames, found.content_type,
                 found.encoded_audio_string.hex()]  # fmt: skip
    else:
        about = [found.dtype, [d.size for d in found.tensor_shape.dim],
                 [s.decode() for s in found.string_val], found.tensor_content.hex()]  # fmt: skip
    plugin = value.metadata.plugin_data.plugin_name
    return [value.tag, kind, about, plugin, value.metadata.display_name]


if __name__ == "__main__":
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    lines = [f"{json.dumps(k)}: {json.dumps(told(tf, c))}" for k, c in CALLS.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
