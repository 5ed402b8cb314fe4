"""Calls whose operations have the same names, types and shapes as TensorFlow 1's.

``TF_CPP_MIN_LOG_LEVEL=3 PYTHONPATH=. /path/with/tensorflow/python tests/compat/calls.py`` writes
what TensorFlow says into ``names.json``.
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("names.json")

# Each is evaluated in one graph, in this order, with a placeholder ``x`` of shape (?, 4).
CALLS = """
tf.placeholder(tf.float32)
tf.placeholder("float", [3, None])
x + 1.0
tf.add(x, 1.0)
x * 2.0
tf.multiply(x, 2.0)
x - 1.0
tf.subtract(x, 1.0)
x / 2.0
tf.div(x, 2.0)
x[0]
x[:, 1:3]
tf.reduce_sum(x)
tf.reduce_mean(x, 1, keep_dims=True)
tf.reduce_max(x, reduction_indices=[0])
tf.matmul(x, tf.ones([4, 2]))
tf.nn.relu(x)
tf.nn.relu(x, name="h")
tf.nn.elu(x, name="h")
tf.nn.softmax(x)
tf.square(x)
tf.concat([x, x], 0)
tf.stack([x, x])
tf.reshape(x, [-1])
tf.cast(x, tf.int32)
tf.cast(x, tf.float32)
tf.argmax(x, 1)
tf.argmax(x, dimension=1)
tf.equal(x, x)
x > 1.0
tf.random_normal([2])
tf.truncated_normal([2])
tf.zeros([2])
tf.transpose(x)
tf.expand_dims(x, 0)
tf.gather(x, [0])
tf.nn.l2_loss(x)
tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x)
tf.sigmoid(x)
tf.nn.sigmoid(x)
tf.tanh(x)
tf.exp(x)
tf.log(x)
tf.pow(x, 2.0)
x ** 2.0
-x
abs(x)
tf.identity(x)
tf.shape(x)
tf.zeros_like(x)
tf.ones_like(x)
tf.range(3)
tf.one_hot([1], 3)
tf.tile(x, [1, 2])
tf.maximum(x, 0.0)
tf.clip_by_value(x, 0.0, 1.0)
tf.nn.bias_add(x, tf.zeros([4]))
tf.to_float(x)
x @ tf.transpose(x)
tf.split(x, 2, 1)[0]
tf.unstack(x, axis=1)[0]
tf.stop_gradient(x)
tf.nn.top_k(x)[0]
tf.py_func(lambda q: q, [x], tf.float32)
tf.constant([1.0, 2.0, 3.0], shape=[3], name="v1")
tf.Variable(1.0).op.outputs[0]
tf.Variable([1.0], name="b").op.outputs[0]
tf.get_variable("w", [2, 3]).op.outputs[0]
tf.assign(tf.get_variable("w2", [2]), [1.0, 2.0])
tf.assign_add(tf.get_variable("w3", [2]), [1.0, 2.0])
""".strip().splitlines()


def told(tf: Any) -> list[list[str]]:
    """What is known of each call's result: its name, type and shape."""
    found = []
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        for call in CALLS:
            result = eval(call, {"tf": tf, "x": x})
            found.append([result.name, result.op.type, str(result.shape)])
    return found


if __name__ == "__main__":
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    FILE.write_text(json.dumps(dict(zip(CALLS, told(tf), strict=True)), indent=0) + "\n")
