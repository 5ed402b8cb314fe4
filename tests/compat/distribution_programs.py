"""Distributions, random numbers and gradients of the user in TensorFlow 1, whose numbers are
compared with TensorFlow's: as `programs.py`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.compat.data_programs import plain

FILE = Path(__file__).with_name("distribution_results.json")
PROGRAMS: dict[str, Callable[[Any], Any]] = {}
_MOMENTS = (
    "mean", "variance", "stddev", "mode", "entropy", "covariance", "batch_shape_tensor",
    "event_shape_tensor", "is_scalar_batch", "is_scalar_event",
)  # fmt: skip
_OF_VALUES = (
    "log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function",
)  # fmt: skip


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


def told(tf: Any, kind: str, values: Any, *args: Any, other: Any = None, **kwargs: Any) -> Any:
    """All that a distribution tells: of itself, of values, and of another one of its class."""
    distributions = tf.distributions
    one = getattr(distributions, kind)(*args, **kwargs)
    found: dict[str, Any] = {
        "is": [one.name, one.dtype.name, str(one.batch_shape), str(one.event_shape),
               str(one.reparameterization_type)]
    }  # fmt: skip
    tensors = {}
    calls = [(m, ()) for m in _MOMENTS] + [(m, (values,)) for m in _OF_VALUES]
    for name, given in [*calls, ("quantile", (0.3,))]:
        try:
            tensors[name] = getattr(one, name)(*given)
        except NotImplementedError:
            found[name] = "not implemented"
    if other is not None:
        other = getattr(distributions, kind)(**other)
        tensors["divergence"] = distributions.kl_divergence(one, other)
        tensors["cross_entropy"] = one.cross_entropy(other)
    drawn = one.sample([2, 3])
    found["sample"] = [str(drawn.shape), drawn.dtype.name]
    with tf.Session() as session:
        return found | {name: plain(session.run(t)) for name, t in tensors.items()}


@program
def normals(tf: Any) -> Any:
    return [
        told(tf, "Normal", [[0.3, -20.0], [-3.0, 6.0]], [0.0, 1.0], [1.0, 2.5],
             other={"loc": 0.5, "scale": [1.0, 3.0]}),
        told(tf, "Normal", -40.0, loc=0.0, scale=1.0),
        told(tf, "Laplace", [[0.3, -20.0], [-3.0, 6.0]], [0.0, 1.0], [1.0, 2.5]),
        told(tf, "StudentT", [-3.0, 6.0], [3.0, 5.0], [0.0, 1.0], [1.0, 2.5]),
        told(tf, "StudentT", [1.0, 2.0], [0.5, 1.5], 0.0, 1.0),
    ]  # fmt: skip


@program
def intervals(tf: Any) -> Any:
    return [
        told(tf, "Uniform", [[0.3, -20.0], [1.0, 3.5]], [0.0, 1.0], [1.0, 4.0]),
        told(tf, "Exponential", [[0.3, 2.0], [1.0, 3.5]], [0.5, 2.0]),
        told(tf, "Gamma", [[0.3, 2.0], [1.0, 3.5]], [0.5, 2.0], [1.0, 3.0],
             other={"concentration": [1.0, 3.0], "rate": 2.0}),
        told(tf, "Beta", [0.3, 0.9], [1.5, 2.0], [3.0, 3.0],
             other={"concentration1": [1.0, 3.0], "concentration0": 2.0}),
        told(tf, "Dirichlet", [0.1, 0.6, 0.3], [1.5, 2.0, 3.0],
             other={"concentration": [1.0, 1.0, 1.0]}),
    ]  # fmt: skip


@program
def outcomes(tf: Any) -> Any:
    shares = [[0.3, 0.2, 0.5], [0.1, 0.6, 0.3]]
    return [
        told(tf, "Bernoulli", [[0, 1], [1, 0]], probs=[0.2, 0.7], other={"logits": [0.1, -3.0]}),
        told(tf, "Bernoulli", [1.0, 0.0], logits=0.4, dtype=tf.float32),
        told(tf, "Categorical", [[0, 2], [1, 1]], probs=shares,
             other={"logits": [[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]]}),
        told(tf, "Categorical", [1, 0], logits=[0.4, 1.0, 2.0, 3.0]),
        told(tf, "Multinomial", [[1.0, 1.0, 2.0], [0.0, 3.0, 0.0]], [4.0, 3.0], probs=shares),
        told(tf, "Multinomial", [1.0, 1.0, 3.0], 5.0, logits=[1.0, 2.0, 3.0]),
        told(tf, "DirichletMultinomial", [[1.0, 1.0, 2.0], [0.0, 4.0, 0.0]], 4.0,
             [[1.5, 2.0, 3.0], [2.0, 2.0, 5.0]]),
    ]  # fmt: skip


@program
def samples(tf: Any) -> Any:
    """Samples by a seed, of which each session draws the same."""
    distributions = tf.distributions
    drawn = [
        distributions.Normal([0.0, 1.0], 2.0).sample(3, seed=7),
        distributions.Uniform(1.0, 4.0).sample([2, 2], seed=7),
        distributions.Bernoulli(probs=[0.2, 0.7]).sample(4, seed=7),
        distributions.Exponential(0.5).sample(3, seed=7),
        distributions.Laplace(0.0, 1.0).sample(3, seed=7),
        tf.random_normal([2], seed=3), tf.random_uniform([2], seed=3, dtype=tf.float64),
        tf.random_uniform([3], 0, 100, tf.int32, seed=3),
    ]  # fmt: skip
    found = []
    for _ in range(2):
        with tf.Session() as session:
            found += [plain(session.run(drawn)), plain(session.run(drawn))]
    return found


@program
def gradients_of_samples(tf: Any) -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    normal = tf.distributions.Normal(x * 2.0, tf.nn.softplus(x))
    chosen = tf.distributions.Categorical(logits=x)
    gradients = [
        tf.gradients(normal.log_prob(tf.stop_gradient(x + 1.0)), x)[0],
        tf.gradients(tf.reduce_sum(normal.sample(2, seed=1)), x)[0],
        tf.gradients(chosen.log_prob([0, 1]), x)[0], tf.gradients(chosen.entropy(), x)[0],
        tf.gradients(chosen.kl_divergence(tf.distributions.Categorical(logits=2.0 * x)), x)[0],
    ]  # fmt: skip
    with tf.Session() as session:
        return plain(session.run(gradients, {x: [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]}))


@program
def loops_of_cells(tf: Any) -> Any:
    """`raw_rnn` with states of its own, and with an end for each example."""

    class Cell:
        output_size = state_size = 2

        def __call__(self, given: Any, state: Any, scope: Any = None) -> Any:
            out = tf.tanh(given + state * 0.5)
            return out, out

        def zero_state(self, batch_size: Any, dtype: Any) -> Any:
            return tf.zeros([batch_size, 2], dtype)

    x = tf.reshape(tf.range(24.0), [4, 3, 2]) / 10.0
    lengths, cell, steps = tf.constant([4, 2, 1]), Cell(), tf.TensorArray(tf.float32, 4).unstack(x)

    def by_inputs(time: Any, output: Any, state: Any, loop_state: Any) -> Any:
        ended = time >= lengths
        given = tf.cond(
            tf.reduce_all(ended), lambda: tf.zeros([3, 2]), lambda: steps.read(time)
        )
        return ended, given, tf.zeros([3, 2]) if output is None else state, output, None

    def by_outputs(time: Any, output: Any, state: Any, loop_state: Any) -> Any:
        if output is None:
            kept = tf.constant(1), tf.TensorArray(tf.int32, 0, dynamic_size=True)
            return tf.zeros([3], tf.bool), x[0], tf.zeros([3, 2]), tf.zeros([4]), kept
        number, times = loop_state
        both = tf.concat([output, output], 1)
        return time >= lengths, output, state, both, (number * 2, times.write(time - 1, time))

    first, second = tf.nn.raw_rnn(cell, by_inputs), tf.nn.raw_rnn(cell, by_outputs)
    (number, times) = second[2]
    with tf.Session() as session:
        return [first[2], plain(session.run([
            first[0].stack(), first[1], second[0].stack(), second[1], number, times.stack()
        ]))]  # fmt: skip


@program
def gradients_of_the_user(tf: Any) -> Any:
    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        return x * x, lambda dy: dy * 7.0

    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = tf.placeholder(tf.float32, [2])
    chosen = tf.cond(x[0] > 0, lambda: scaled(x), lambda: x)
    wanted = [scaled(x), log1pexp(x), *(tf.gradients(y, x)[0] for y in
                                        (scaled(x), log1pexp(x), chosen))]  # fmt: skip
    with tf.Session() as session:
        return [plain(session.run(wanted, {x: v})) for v in ([1.0, -2.0], [-1.0, 100.0])]


@program
def parts_of_variables(tf: Any) -> Any:
    with tf.variable_scope("net"):
        v = tf.get_variable("v", initializer=[[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]])
        changes = [
            v[1].assign([7.0, 8.0]), v[:, 0].assign([1.0, 1.0, 2.0]), v[2, 1].assign(5.0)
        ]  # fmt: skip
        optimizer = tf.train.AdamOptimizer(0.1)
        train = optimizer.minimize(tf.reduce_sum(tf.square(v)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [plain(session.run(change)) for change in changes]
        session.run(train)
        return [found, plain(session.run(v)), sorted(x.name for x in optimizer.variables())]


@program
def proximal_optimizers(tf: Any) -> Any:
    def trained(kind: str, sparse: bool, **more: Any) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.get_variable("w", initializer=[[1.0, 2.0], [3.0, -4.0]])
            step = tf.train.get_or_create_global_step()
            if "DA" in kind:
                more["global_step"] = step
            optimizer = getattr(tf.train, kind)(0.5, **more)
            used = tf.gather(v, [0, 0]) if sparse else v
            train = optimizer.minimize(tf.reduce_sum(tf.square(used)), global_step=step)
            session.run(tf.global_variables_initializer())
            found = []
            for _ in range(3):
                session.run(train)
                found.append(plain(session.run(v)))
            return [found, sorted(x.name for x in optimizer.variables())]

    strengths = {"l1_regularization_strength": 0.1, "l2_regularization_strength": 0.2}
    return [
        trained(kind, sparse, **more)
        for kind in ("ProximalAdagradOptimizer", "AdagradDAOptimizer")
        for sparse in (False, True) for more in (strengths, {})
    ]  # fmt: skip


@program
def averages_in_branches(tf: Any) -> Any:
    """Batch normalization as programs of TensorFlow 1 write it: averages in one branch."""
    x, is_training = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.bool, [])
    with tf.variable_scope("norm"):
        gamma = tf.Variable([1.0, 1.0, 1.0], name="gamma")
        moments = tf.reduce_mean(x, 0), tf.reduce_mean(tf.square(x), 0)
        averages = tf.train.ExponentialMovingAverage(0.5)

        def updated() -> Any:
            with tf.control_dependencies([averages.apply(moments)]):
                return tuple(map(tf.identity, moments))

        mean, square = tf.cond(
            is_training, updated, lambda: tuple(map(averages.average, moments))
        )
        y = (x - mean) / tf.sqrt(square + 1.0) * gamma
    gradients = tf.gradients(tf.reduce_sum(y * x), [x, gamma])
    given, found = [[1.0, 2.0, 3.0], [3.0, 5.0, 9.0]], []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for training in (True, False, True, False):
            found.append(
                plain(session.run([y, mean, *gradients], {x: given, is_training: training}))
            )
    return [found, sorted(v.name for v in tf.global_variables())]


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    from tests.compat.programs import record

    tf.disable_v2_behavior()
    record(tf, PROGRAMS, FILE)
