"""td.random with a global seed: which draws repeat each other, eagerly and in functions."""

from __future__ import annotations

from tests.facts_tf.registry import program


def pattern(draws):
    """The number of the first draw with the same elements, for each of them."""
    found = [draw.numpy().tolist() for draw in draws]
    return [found.index(elements) for elements in found]


def draw(tf, **seed):
    return tf.random.uniform([3], **seed)


@program
def eager_draws_after_a_seed(tf):
    found = []
    for seed in ({}, {"seed": 7}, {"seed": 0}):
        for kind in (tf.random.uniform, tf.random.normal, tf.random.truncated_normal):
            draws = []
            for _ in range(2):
                tf.random.set_seed(5)
                draws += [kind([3], **seed) for _ in range(3)]
            found.append(pattern(draws))
    return found


@program
def shuffles_and_dropouts_after_a_seed(tf):
    found = []
    for act in (
        lambda: tf.random.shuffle(tf.range(20)), lambda: tf.nn.dropout(tf.ones([40]), 0.5),
        lambda: tf.random.categorical(tf.zeros([1, 50]), 20),
    ):  # fmt: skip
        draws = []
        for _ in range(2):
            tf.random.set_seed(5)
            draws += [act() for _ in range(3)]
        found.append(pattern(draws))
    return found


@program
def elements_of_a_seed(tf):
    tf.random.set_seed(5)
    return tf.random.uniform([2])


@program
def two_draws_in_a_function(tf):
    tf.random.set_seed(5)
    twice = tf.function(lambda: (draw(tf), draw(tf)))
    return pattern([*twice(), *twice(), draw(tf)])


@program
def two_functions(tf):
    tf.random.set_seed(5)
    first, second = tf.function(lambda: draw(tf)), tf.function(lambda: draw(tf))
    draws = [first(), second(), first(), second()]
    tf.random.set_seed(5)
    return pattern([*draws, first(), second()])


@program
def functions_with_an_op_seed(tf):
    tf.random.set_seed(5)
    first, second = (tf.function(lambda: draw(tf, seed=7)) for _ in range(2))
    return pattern([first(), second(), draw(tf, seed=7), first(), second(), draw(tf, seed=7)])


@program
def a_function_that_is_traced_again(tf):
    tf.random.set_seed(5)
    function = tf.function(lambda x: draw(tf))
    return pattern([function(1), function(1), function(2), function(1), function(2)])


@program
def draws_in_a_loop(tf):
    tf.random.set_seed(5)

    @tf.function
    def drawn():
        array = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            array = array.write(i, draw(tf))
        return array.stack()

    return pattern([*drawn(), *drawn()])
