"""One batch on several devices: `make_parallel` splits it, and gradients of the parts are joined.

The devices are logical ones: four names for parts of one processor, so that a program for several
accelerators can be tried without them.
"""

import numpy as np

import treadle as tf

DEVICES = 4


def make_devices():
    """Four logical devices. It must be done before the first tensor is placed on one."""
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration() for _ in range(DEVICES)]
    )
    return [device.name for device in tf.config.list_logical_devices("CPU")]


def make_parallel(fn, devices, **batches):
    """What `fn` gives for parts of the batches, each part computed on a device of its own.

    Returns:
        A list of the results, one for each device.
    """
    parts = {name: tf.split(batch, len(devices)) for name, batch in batches.items()}
    results = []
    for i, device in enumerate(devices):
        with tf.device(device):
            results.append(fn(**{name: part[i] for name, part in parts.items()}))
    return results


def make_model():
    tf.keras.utils.set_random_seed(1)
    return tf.keras.Sequential([
        tf.keras.layers.Input(shape=(8,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(3),
    ])


def make_step(model, devices):
    """A training step over the devices, each of which has its part of the batch."""
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)

    @tf.function
    def tower(x, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
            loss = tf.reduce_mean(losses)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(x, labels):
        losses, gradients = zip(*make_parallel(tower, devices, x=x, labels=labels))
        means = [tf.add_n(parts) / len(devices) for parts in zip(*gradients)]
        optimizer.apply_gradients(zip(means, model.trainable_variables))
        return tf.add_n(losses) / len(devices)

    return step


def main():
    devices = make_devices()
    print("\n".join(devices))
    assert len(devices) == DEVICES

    a, b = tf.random.normal([8, 5]), tf.random.normal([8, 5])
    products = make_parallel(lambda a, b: a * b, devices, a=a, b=b)
    assert all(p.device.endswith(name) for p, name in zip(products, devices))
    np.testing.assert_array_equal(tf.concat(products, axis=0), a * b)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 8)).astype(np.float32)
    labels = np.argmax(x[:, :3] + x[:, 3:6], axis=1)
    one, four = make_model(), make_model()
    step_of_one, step_of_four = make_step(one, devices[:1]), make_step(four, devices)
    alone = [float(step_of_one(x, labels)) for _ in range(50)]
    together = [float(step_of_four(x, labels)) for _ in range(50)]
    print(f"losses on one device {alone[0]:.4f} ... {alone[-1]:.4f}")
    print(f"on four devices      {together[0]:.4f} ... {together[-1]:.4f}")
    assert alone[-1] < alone[0] / 4
    np.testing.assert_allclose(together, alone, rtol=1e-4)
    for mine, theirs in zip(one.get_weights(), four.get_weights()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    main()
