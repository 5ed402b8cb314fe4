"""Gradients beyond `tape.gradient(loss, weights)`: of gradients, of one's own, of many outputs."""

import numpy as np

import treadle as tf


@tf.custom_gradient
def log1pexp(x):
    """log(1 + exp(x)), whose gradient is a number for large x, too."""
    e = tf.exp(x)

    def gradient(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), gradient


@tf.custom_gradient
def binarize(x):
    """The signs of x. Its gradient is that of x itself between -1 and 1, and zero outside."""

    def straight_through(upstream):
        return tf.where(tf.abs(x) <= 1, upstream, tf.zeros_like(upstream))

    return tf.where(x >= 0, tf.ones_like(x), -tf.ones_like(x)), straight_through


def slope_of_a_custom_gradient():
    x = tf.constant(100.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        own = log1pexp(x)
        plain = tf.math.log(1 + tf.exp(x))
    assert tape.gradient(own, x) == 1.0
    assert np.isnan(tape.gradient(plain, x))


def binary_weights():
    """Weights that are -1 or 1 are found by descent on real numbers, whose signs they are."""
    rng = np.random.default_rng(0)
    wanted = rng.choice([-1.0, 1.0], size=(16, 1)).astype(np.float32)
    x = rng.normal(size=(256, 16)).astype(np.float32)
    y = x @ wanted
    latent = tf.Variable(tf.random.uniform([16, 1], -0.5, 0.5))
    optimizer = tf.keras.optimizers.SGD(0.01)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ binarize(latent) - y) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, latent), latent)])
        return loss

    losses = [float(step()) for _ in range(100)]
    print(f"binary weights: loss {losses[0]:.2f}, then {losses[-1]:.2f}")
    assert losses[-1] < 1e-8 and np.array_equal(np.sign(latent), wanted)


@tf.function
def rosenbrock(p):
    return tf.reduce_sum(100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2)


def newton():
    """The minimum of Rosenbrock's valley by Newton's method, with the jacobian of a gradient."""
    p = tf.Variable([-1.2, 1.0, 1.2], dtype=tf.float64)
    steps, size = 0, np.inf
    while size > 1e-8 and steps < 20:
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = rosenbrock(p)
            gradient = inner.gradient(value, p)
        hessian = outer.jacobian(gradient, p)
        p.assign_sub(tf.linalg.solve(hessian, gradient[:, tf.newaxis])[:, 0])
        steps, size = steps + 1, tf.norm(gradient)
    print(f"Newton's method: {p.numpy().round(6)} after {steps} steps")
    np.testing.assert_allclose(p, np.ones(3), atol=1e-8)


@tf.function
def hessian_times(p, direction):
    """The product of a Hessian and a vector, without the Hessian."""
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as inner:
            inner.watch(p)
            value = rosenbrock(p)
        along = tf.reduce_sum(inner.gradient(value, p) * direction)
    return outer.gradient(along, p)


def products_with_a_hessian():
    p = tf.constant([0.5, -0.3, 0.8], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as inner:
            inner.watch(p)
            value = rosenbrock(p)
        gradient = inner.gradient(value, p)
    hessian = outer.jacobian(gradient, p)
    for direction in tf.eye(3, dtype=tf.float64):
        product = hessian_times(p, direction)
        np.testing.assert_allclose(product, tf.linalg.matvec(hessian, direction), rtol=1e-12)


def gradient_of_each_example():
    """One gradient for each row of a batch; their mean is the gradient of the mean loss."""
    layer = tf.keras.layers.Dense(2)
    x, y = tf.random.normal([6, 4]), tf.random.normal([6, 2])
    with tf.GradientTape(persistent=True) as tape:
        losses = tf.reduce_sum((layer(x) - y) ** 2, axis=1)
        loss = tf.reduce_mean(losses)
    each = tape.jacobian(losses, layer.kernel)
    assert each.shape == (6, 4, 2)
    mean = tape.gradient(loss, layer.kernel)
    np.testing.assert_allclose(tf.reduce_mean(each, axis=0), mean, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    tf.random.set_seed(1)
    slope_of_a_custom_gradient()
    binary_weights()
    newton()
    products_with_a_hessian()
    gradient_of_each_example()
