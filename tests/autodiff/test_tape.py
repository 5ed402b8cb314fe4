import gc
import weakref

import numpy as np
import pytest

import treadle as td


def gradient(f, *xs, **kwargs):
    with td.GradientTape() as tape:
        tape.watch(list(xs))
        y = f(*xs)
    return tape.gradient(y, list(xs), **kwargs)


def test_polynomial():
    x = td.constant(3.0)
    (dx,) = gradient(lambda x: x * x * x + 2.0 * x, x)
    assert dx.numpy() == 29.0
    assert dx.dtype is td.float32


def test_structures_of_targets_and_sources():
    x, y = td.constant([1.0, 2.0]), td.constant([3.0, 4.0])
    with td.GradientTape() as tape:
        tape.watch({"x": x, "y": [y]})
        a, b = x * y, y * y
    grads = tape.gradient({"a": a, "b": [b, b]}, {"x": x, "rest": (y, x)})
    np.testing.assert_array_equal(grads["x"], [3.0, 4.0])
    np.testing.assert_array_equal(grads["rest"][0], [1.0 + 12.0, 2.0 + 16.0])
    np.testing.assert_array_equal(grads["rest"][1], grads["x"])


def test_intermediate_source_and_upstream_source():
    x = td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y * x
    dy, dx = tape.gradient(z, [y, x])
    assert dy.numpy() == 2 * 4.0 * 2.0
    assert dx.numpy() == 5 * 2.0**4


def test_target_is_source():
    x = td.constant([1.0, 2.0])
    v = td.Variable([1.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        v.value()
    assert tape.gradient([x, v], [x, v])[0].numpy().tolist() == [1.0, 1.0]


def test_trainable_variables_are_watched_when_read():
    v = td.Variable([1.0, 2.0], name="v")
    fixed = td.Variable([5.0, 6.0], trainable=False)
    with td.GradientTape() as tape:
        y = v * v * fixed
    dv, dfixed = tape.gradient(y, [v, fixed])
    np.testing.assert_array_equal(dv, [10.0, 24.0])
    assert dfixed is None
    assert [w.name for w in tape.watched_variables()] == ["v:0"]


def test_watch_accessed_variables_off():
    v, w = td.Variable(2.0), td.Variable(3.0)
    with td.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = v * w
    assert tape.gradient(y, [v, w]) == [None, td.constant(2.0)]
    assert tape.watched_variables()[0] is w


def test_watching_a_non_trainable_variable():
    v = td.Variable(2.0, trainable=False)
    with td.GradientTape() as tape:
        tape.watch(v)
        y = v * v
    assert tape.gradient(y, v).numpy() == 4.0


def test_gradient_is_of_the_value_read_not_of_the_value_now():
    v = td.Variable(3.0)
    with td.GradientTape() as tape:
        y = v * v
        v.assign(10.0)
    assert tape.gradient(y, v).numpy() == 6.0


def test_second_use_raises_and_persistent_does_not():
    x = td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used"):
        tape.gradient(y, x)
    with td.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_persistent_tape_records_its_own_gradient():
    x = td.constant(3.0)
    with td.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        dy = tape.gradient(y, x)
    assert tape.gradient(dy, x).numpy() == 18.0


def test_nested_tapes_give_higher_orders():
    x = td.constant(2.0)
    with td.GradientTape() as third:
        third.watch(x)
        with td.GradientTape() as second:
            second.watch(x)
            with td.GradientTape() as first:
                first.watch(x)
                y = x**5
            d1 = first.gradient(y, x)
        d2 = second.gradient(d1, x)
    d3 = third.gradient(d2, x)
    assert [d.numpy() for d in (d1, d2, d3)] == [80.0, 160.0, 240.0]


def test_inner_gradient_inside_the_inner_block():
    x = td.constant(3.0)
    with td.GradientTape() as outer:
        outer.watch(x)
        with td.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
            dy = inner.gradient(y, x)
    assert outer.gradient(dy, x).numpy() == 18.0


def test_output_gradients_weight_the_targets():
    x = td.constant([1.0, 2.0])
    (dx,) = gradient(lambda x: x * x, x, output_gradients=td.constant([10.0, 100.0]))
    np.testing.assert_array_equal(dx, [20.0, 400.0])


def test_output_gradients_none_among_them():
    x = td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        a, b = x * x, 3.0 * x
    assert tape.gradient([a, b], x, output_gradients=[None, td.constant(2.0)]).numpy() == 10.0


def test_output_gradient_of_a_wrong_shape():
    x = td.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"has shape \(3,\), expected \(2,\)"):
        gradient(lambda x: x * x, x, output_gradients=td.constant([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("mode", ["zero", td.UnconnectedGradients.ZERO])
def test_unconnected_gradients(mode):
    x, y = td.constant([1.0, 2.0]), td.constant([[3.0]])
    assert gradient(lambda x, y: x * x, x, y)[1] is None
    assert gradient(lambda x, y: x * x, x, y, unconnected_gradients=mode)[1].numpy() == [[0.0]]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'some'"):
        gradient(lambda x: x, x, unconnected_gradients="some")


def test_integers_are_not_watched():
    n = td.constant(3)
    with td.GradientTape() as tape, pytest.warns(UserWarning, match=r"must be floating.*int32"):
        tape.watch(n)
    x = td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.cast(td.cast(x, td.int32), td.float32)
    assert tape.gradient(y, x) is None


def test_integer_target_warns():
    x = td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.cast(x, td.int32)
    with pytest.warns(UserWarning, match="dtype of the target"):
        assert tape.gradient(y, x) is None


@pytest.mark.parametrize(
    ("target", "source", "error", "text"),
    [
        (None, None, TypeError, "received None"),
        (3.0, None, TypeError, "a target is 3.0 of type 'float'"),
        (None, "abc", TypeError, "received None"),
    ],
)
def test_wrong_targets(target, source, error, text):
    x = td.constant(1.0)
    with td.GradientTape() as tape:
        tape.watch(x)
    with pytest.raises(error, match=text):
        tape.gradient(target, x if source is None else source)


def test_wrong_sources_leave_the_tape_usable():
    x = td.constant(1.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="a source is 'abc' of type 'str'"):
        tape.gradient(y, "abc")
    with pytest.raises(TypeError, match=r"test_tape\.py"):
        tape.gradient(y, [x, None])
    assert tape.gradient(y, x).numpy() == 2.0


def test_watch_of_a_number():
    with td.GradientTape() as tape, pytest.raises(ValueError, match="Passed in object 3.0 of type"):
        tape.watch(3.0)


def test_stop_recording():
    x = td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            c = x * x
        y = c * x
    assert tape.gradient(y, x).numpy() == 9.0
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass


def test_reset_forgets():
    x, v = td.constant(3.0), td.Variable(1.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        before = x * x * v
        tape.reset()
        tape.watch(x)
        y = x * 2.0
    assert tape.watched_variables() == ()
    assert tape.gradient([before, y], x).numpy() == 2.0


def test_reentering():
    tape = td.GradientTape()
    with tape, pytest.raises(ValueError, match="Tape is still recording"), tape:
        pass


def test_tape_leaves_its_block_after_an_error():
    x = td.constant(1.0)
    tape = td.GradientTape()
    with pytest.raises(ZeroDivisionError), tape:
        1 / 0
    with td.GradientTape() as other:
        other.watch(x)
        y = x * x
    assert other.gradient(y, x).numpy() == 2.0
    assert tape.watched_variables() == ()


def test_memory_is_released():
    x = td.constant(np.ones(1000))
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
        inner = weakref.ref(y)
        z = td.reduce_sum(y * y)
    del y
    assert inner() is not None
    tape.gradient(z, x)
    gc.collect()
    assert inner() is None


def test_unwatched_operations_are_not_kept():
    x = td.constant(np.ones(10))
    with td.GradientTape() as tape:
        y = x * 2.0
        inner = weakref.ref(y)
        del y
        gc.collect()
        assert inner() is None
        tape.watch(x)


def test_multiple_outputs_get_zeros_for_missing_gradients():
    x = td.constant([1.0, 2.0, 3.0, 4.0])
    with td.GradientTape() as tape:
        tape.watch(x)
        first, _ = td.split(x, 2)
        y = first * first
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0, 0.0, 0.0])


def test_many_uses_add_up():
    x = td.constant([1.0, 2.0])
    (dx,) = gradient(lambda x: td.add_n([x * float(i) for i in range(10)]), x)
    np.testing.assert_array_equal(dx, [45.0, 45.0])


def test_only_what_leads_to_the_sources_is_computed():
    calls = []

    @td.custom_gradient
    def noted(x):
        def grad(dy):
            calls.append(1)
            return dy

        return x + 0.0, grad

    x, y = td.constant(1.0), td.constant(2.0)
    with td.GradientTape() as tape:
        tape.watch([x, y])
        z = noted(x) * y
    assert tape.gradient(z, y).numpy() == 1.0
    assert not calls


def test_a_rule_that_breaks_its_promise_is_named():
    @td.custom_gradient
    def bad(x):
        return x * 2.0, lambda dy: td.constant([1.0, 2.0, 3.0])

    x = td.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"gradient of bad .*input 0 has shape \(3,\)"):
        gradient(bad, x)


def test_complex():
    z = td.constant(1.0 + 2.0j)
    (dz,) = gradient(lambda z: z * z, z)
    assert dz.numpy() == pytest.approx(np.conj(2 * (1 + 2j)))


def test_traced_tape_equals_eager():
    v = td.Variable([1.0, -2.0])

    @td.function(autograph=False)
    def step(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.reduce_sum(td.tanh(x * v) + v * v)
        assert tape.watched_variables() == (v,)
        return tape.gradient(y, [x, v])

    x = td.constant([0.5, 0.25])
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.reduce_sum(td.tanh(x * v) + v * v)
    for traced, eager in zip(step(x), tape.gradient(y, [x, v]), strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-6)


def test_symbolic_batch_dim():
    @td.function(autograph=False, input_signature=[td.TensorSpec([None, 3]), td.TensorSpec([3])])
    def f(x, w):
        with td.GradientTape() as tape:
            tape.watch([x, w])
            y = td.reduce_mean((x * w) ** 2)
        return tape.gradient(y, [x, w])

    for rows in (1, 2, 5):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        w = np.array([1.0, 2.0, 3.0], np.float32)
        dx, dw = f(x, w)
        np.testing.assert_allclose(dx, 2 * x * w * w / x.size, rtol=1e-5)
        np.testing.assert_allclose(dw, (2 * x * x * w / x.size).sum(0), rtol=1e-5)


def test_only_watched_tensors_have_gradients():
    x, c = td.constant(2.0), td.constant(5.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * c
    assert tape.gradient(y, [x, c])[1] is None


def test_a_target_that_is_a_source_has_its_seed_as_gradient():
    v, c = td.Variable(3.0), td.constant(2.0)
    with td.GradientTape(persistent=True) as tape:
        chosen = v if c > 0 else v * v
        w = v * 2.0
    assert float(tape.gradient(chosen, v)) == 1.0
    assert float(tape.gradient([w, v], v)) == 3.0
    assert float(tape.gradient(c, c, output_gradients=td.constant(5.0))) == 5.0
    assert tape.gradient(v, c) is None


@pytest.mark.parametrize("other", [(5,), (None,)])
def test_a_dim_that_turns_out_to_be_broadcast(other):
    """What is unknown while tracing counts as not broadcast: a call that does is left to NumPy."""

    @td.function(input_signature=[td.TensorSpec(other), td.TensorSpec([None])])
    def gradient(x, y):
        with td.GradientTape() as tape:
            tape.watch(y)
            loss = td.reduce_sum(x * y)
        return tape.gradient(loss, y)

    x = td.range(5.0)
    np.testing.assert_array_equal(gradient(x, td.ones([5])), x)
    np.testing.assert_array_equal(gradient(x, td.ones([1])), [10])
    with pytest.raises(td.errors.InvalidArgumentError, match=r"test_tape\.py:\d+"):
        gradient(x, td.ones([3]))


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_gradients_in_vectorized_map_within_the_block(staged, persistent):
    """A tape sees what a mapped function does, so that this may ask it for gradients; afterwards it
    knows the operations on all examples, once."""
    v = td.Variable([1.0, 2.0, 3.0])

    def run():
        with td.GradientTape(persistent=persistent) as tape:
            squares = v * v
            rows = td.vectorized_map(
                lambda i: tape.gradient(td.gather(squares, i) * v[0], v), td.range(3)
            )
            cubes = td.vectorized_map(lambda x: x * v, squares) if persistent else squares
        return rows, tape.gradient(cubes, v) if persistent else rows

    rows, total = (td.function(run) if staged else run)()
    np.testing.assert_array_equal(rows, [[3, 0, 0], [4, 4, 0], [9, 0, 6]])
    if persistent:  # of the sum over i and j of v[i] ** 2 * v[j]
        np.testing.assert_array_equal(total, [2 * x * 6 + 14 for x in (1, 2, 3)])
