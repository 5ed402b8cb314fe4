"""Writes the checkpoints of this folder with TensorFlow (2.21, Keras 3.15).

    TF_CPP_MIN_LOG_LEVEL=3 python tests/train/tf_checkpoints/make.py

Each has a file of the same values for NumPy beside it, by the names in the checkpoint.
"""

import json
import os
from pathlib import Path

import keras
import ml_dtypes
import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
random = np.random.default_rng(0)


def expected(prefix, **more):
    """Write the values beside the checkpoint: numbers as nested lists, strings as Latin-1."""
    values = {}
    for name, shape in tf.train.list_variables(prefix):
        if name != "_CHECKPOINTABLE_OBJECT_GRAPH" and "ITERATOR" not in name:
            value = np.asarray(tf.train.load_variable(prefix, name))
            if value.dtype == object or value.dtype.kind == "S":
                kind, value = "string", np.asarray(value, object)
                listed = [v.decode("latin-1") for v in value.reshape(-1)]
            elif value.dtype.kind == "c":
                kind = value.dtype.name
                listed = [[v.real, v.imag] for v in value.reshape(-1).tolist()]
            else:
                kind, listed = value.dtype.name, value.astype("O").reshape(-1).tolist()
                listed = [float(v) if kind == "bfloat16" else v for v in listed]
            values[name] = [kind, list(shape), listed]
    Path(f"{prefix}.json").write_text(json.dumps({"values": values, **more}, indent=0))


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(random.normal(size=(2, 3)).astype("float32"))
        self.parts = [tf.Variable(3), (tf.Variable(2.5), tf.Variable(["a", "bc\xff", ""]))]
        self.by_name = {"x/y.z": tf.Variable(b"text"), "empty": []}
        self.generator = tf.random.Generator.from_seed(3)
        self.same = self.w


def module():
    net = Net()
    prefix = tf.train.Checkpoint(net, other=net, step=tf.Variable(7)).save(str(HERE / "module"))
    expected(prefix)


def dtypes():
    values = {}
    for name in (
        "float64", "float16", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64",
        "bool", "complex64", "complex128", "bfloat16", "float32", "int32",
    ):  # fmt: skip
        dtype = ml_dtypes.bfloat16 if name == "bfloat16" else name
        values[name] = tf.Variable(random.integers(0, 2, (3,)).astype(dtype))
    values["none"] = tf.Variable(tf.zeros([0, 4]))
    expected(tf.train.Checkpoint(**values).write(str(HERE / "dtypes")))


def many():
    """An index of several blocks, and several files of data."""
    values = {f"variable_{i:03d}": tf.Variable(float(i)) for i in range(150)}
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=200)
    options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    expected(tf.train.Checkpoint(**values).write(str(HERE / "many"), options))


def sequential():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((3,)),
        keras.layers.Dense(4, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.0),
        keras.layers.Dense(2),
    ])
    model.compile("adam", "mse")
    x, y = random.normal(size=(8, 3)), random.normal(size=(8, 2))
    model.fit(x, y, epochs=2, verbose=0, shuffle=False)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    prefix = checkpoint.save(str(HERE / "sequential"))
    outputs = model.predict(x, verbose=0).tolist()
    model.fit(x, y, epochs=1, verbose=0, shuffle=False)
    after = [w.tolist() for w in model.get_weights()]
    expected(prefix, x=x.tolist(), y=y.tolist(), outputs=outputs, after=after)


def functional():
    keras.utils.set_random_seed(2)
    start = keras.Input((4,), name="start")
    hidden = keras.layers.Dense(6, activation="tanh", name="first")(start)
    steps = keras.layers.Reshape((2, 3))(hidden)
    model = keras.Model(start, keras.layers.LSTM(3)(steps))
    x = random.normal(size=(5, 4))
    prefix = tf.train.Checkpoint(model).write(str(HERE / "functional"))
    expected(prefix, x=x.tolist(), outputs=model.predict(x, verbose=0).tolist())


def operations():
    """Between the layers of this model are operations, which checkpoints count, too."""
    keras.utils.set_random_seed(3)
    first, second = keras.Input((4,)), keras.Input((3,))
    hidden = keras.layers.Dense(3, name="hidden")(first) * 2.0 + second
    model = keras.Model([first, second], keras.layers.Dense(2)(keras.ops.tanh(hidden)))
    x = [random.normal(size=(5, size)) for size in (4, 3)]
    prefix = tf.train.Checkpoint(model).write(str(HERE / "operations"))
    outputs = model.predict(x, verbose=0).tolist()
    expected(prefix, x=[part.tolist() for part in x], outputs=outputs)


def named():
    """TensorFlow 1's Saver: values by names of variables."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("layer/kernel", initializer=random.normal(size=(2, 2)))
        tf.compat.v1.get_variable("layer/bias", initializer=np.array([1.5, -2.5], "float32"))
        tf.compat.v1.get_variable("step", initializer=np.int64(12))
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver()
        prefix = saver.save(session, str(HERE / "named"), write_meta_graph=False)
    expected(prefix)


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    for make in (module, dtypes, many, sequential, functional, named, operations):
        make()
    (HERE / "checkpoint").unlink()
