"""Values rounded to those that few bits hold, and gradients through the rounding."""

from __future__ import annotations

from tests.facts_tf.registry import program, raised

ROWS = [[-10.0, -6.0, -5.98, -1.0, -0.01], [0.0, 0.02, 0.5, 3.3, 9.0]]
WEIGHTS = [[1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]]


def gradients(tf, function, *values):
    given = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        tape.watch(given)
        total = tf.reduce_sum(function(*given) * tf.constant(WEIGHTS))
    return tape.gradient(total, given)


@program
def ranges_of_numbers(tf):
    x, f = tf.constant(ROWS), tf.quantization.fake_quant_with_min_max_args
    return (
        f(x),
        f(x, min=0.5, max=2.0, num_bits=4),
        f(x, min=-3.0, max=-1.0, num_bits=3, narrow_range=True),
        gradients(tf, f, ROWS),
        tf.quantization.fake_quant_with_min_max_args_gradient(x * 0 + 1, x, min=-1, max=1),
        [
            raised(f, x, **kw)
            for kw in ({"min": 1.0, "max": 1.0}, {"num_bits": 1}, {"num_bits": 17})
        ],
    )


@program
def ranges_that_are_learned(tf):
    x, q = tf.constant(ROWS), tf.quantization
    f = q.fake_quant_with_min_max_vars
    return (
        f(x, -1.0, 1.0),
        f(x, 0.0, 0.0),
        tf.function(f)(x, tf.constant(-2.0), tf.constant(3.0), 5, True),
        gradients(tf, f, ROWS, -1.0, 1.0),
        gradients(tf, f, ROWS, 0.0, 0.0),
        list(q.fake_quant_with_min_max_vars_gradient(x * 0 + 1, x, -1.0, 1.0)),
        raised(f, x, [1.0], 2.0),
    )


@program
def ranges_of_channels(tf):
    q, low, high = tf.quantization, [-1.0, -2.0, -3.0, 0.0, -0.01], [1.0, 0.5, 3.0, 2.0, 0.01]
    f, x = q.fake_quant_with_min_max_vars_per_channel, tf.constant(ROWS)
    return (
        f(x, low, high, 6),
        gradients(tf, f, ROWS, low, high),
        list(q.fake_quant_with_min_max_vars_per_channel_gradient(x * 0 + 1, x, low, high)),
        raised(f, x, [1.0], [2.0]),
    )


@program
def multiples_of_a_scale(tf):
    x, f = (
        tf.constant([[-1.7, -0.5, 0.26], [0.1, 0.9, 3.3]]),
        (tf.quantization.quantize_and_dequantize_v2),
    )
    found = []
    for given in (False, True):
        values = [x, tf.constant(-1.0), tf.constant(1.0)]
        with tf.GradientTape() as tape:
            tape.watch(values)
            y = f(*values, range_given=given)
        found.append(tape.gradient(y, values))
    return (
        f(x, 0.0, 0.0),
        f(x, -1.0, 1.0, range_given=True),
        f(x, 0.0, 1.0, signed_input=False, range_given=True, num_bits=4),
        f(x, -1.0, 2.0, range_given=True, num_bits=3, round_mode="HALF_UP", narrow_range=True),
        f(x, [0.0] * 3, [0.0] * 3, axis=1, num_bits=4),
        f(tf.zeros([2]), 0.0, 0.0),
        tf.function(lambda x: f(x, -2.0, 2.0, range_given=True, num_bits=5))(x),
        found,
        raised(f, x, 1.0, -1.0, range_given=True),
        raised(f, x, 0.0, 0.0, num_bits=0),
    )


@program
def gradients_outside_of_a_range(tf):
    """The older function lets them pass, as its operations do."""
    x = tf.constant([-3.0, -0.5, 0.7, 5.0])

    def of(f, *values, **named):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(*values, **named)
        return y, tape.gradient(y, x)

    old, new = tf.quantization.quantize_and_dequantize, tf.quantization.quantize_and_dequantize_v2
    named = {"input": x, "input_min": -1.0, "input_max": 2.0, "range_given": True}
    return (
        of(old, x, -1.0, 2.0, range_given=True),
        of(old, x, -1.0, 2.0),
        of(tf.function(old), x, -1.0, 2.0, range_given=True),
        of(new, x, -1.0, 2.0),
        of(tf.raw_ops.QuantizeAndDequantizeV2, **named),
        of(tf.raw_ops.QuantizeAndDequantizeV3, **named, num_bits=8),
    )
