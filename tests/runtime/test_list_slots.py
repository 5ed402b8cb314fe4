"""Elements of lists that are computed where the list keeps them."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, native, trace_like
from treadle.core.switches import disabled
from treadle.ops.collections.lists import list_get, list_length, list_new, list_push, list_stack
from treadle.ops.control.control_flow import while_loop


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def slots(executable):
    return executable.stages["schedule"].count("slot of")


def pushed(body, count=40):
    """A loop that pushes what `body` gives; more elements than lists begin with."""

    def f(h):
        items = list_new(h.spec)
        _, h, items = while_loop(
            lambda i, *_: i < count, lambda i, h, items: (i + 1, *body(h, items)), (0, h, items)
        )
        return list_stack(items), h

    return f


def test_kernels_write_into_the_list():
    def body(h, items):
        y = td.sin(h) * 2.0
        return h + td.reduce_mean(y), list_push(items, y)

    h = array(5, 6)
    graph = trace_like(pushed(body), h)
    executable = both(graph, h)
    assert slots(executable) == 1
    with disabled("slots"):
        plain = native(graph)
    assert slots(plain) == 0
    for a, b in zip(executable.run([h]), plain.run([h]), strict=True):
        assert a.tobytes() == b.tobytes()


def test_products_write_into_the_list():
    def f(h, w):
        def body(h, items):
            y = td.matmul(h, w)
            return td.tanh(y), list_push(items, y)

        return pushed(body, 12)(h)

    h, w = array(5, 6), array(6, 6, seed=1)
    assert slots(both(trace_like(f, h, w), h, w, rtol=1e-3, atol=1e-4)) == 1


def test_a_value_that_goes_on_is_copied():
    def body(h, items):
        y = td.sin(h) * 2.0
        return y, list_push(items, y)

    h = array(5, 6)
    both(trace_like(pushed(body), h), h)


def twice(h, items):
    y = td.sin(h) * 2.0
    return h + 1.0, list_push(list_push(items, y), td.cos(h))


def read_back(h, items):
    y = td.sin(h) * 2.0
    items = list_push(items, y)
    return h + list_get(items, list_length(items) - 1), items


@pytest.mark.parametrize("body", [twice, read_back])
def test_lists_that_may_move_are_filled_by_copies(body):
    h = array(5, 6)
    assert slots(both(trace_like(pushed(body), h), h, rtol=1e-4, atol=1e-4)) == 0


def test_positions_that_are_computed_later():
    def f(h):
        result = td.TensorArray(td.float32, 30, element_shape=h.shape)

        def body(i, h, result):
            y = td.tanh(h) + 1.0
            place = td.cast(td.reduce_sum(td.cast(y > 1.0, td.int32)) * 0, td.int32) + 29 - i
            return i + 1, h * 1.1, result.write(place, y)

        return while_loop(lambda i, *_: i < 30, body, (0, h, result))[2].stack()

    h = array(5, 6)
    both(trace_like(f, h), h, rtol=1e-4)


def test_errors_of_positions_are_raised():
    @td.function
    def f(h, n):
        result = td.TensorArray(td.float32, 5, element_shape=h.shape)
        for i in td.range(n):
            result = result.write(i, td.tanh(h) * 2.0)
        return result.stack()

    h = td.constant(array(5, 6))
    assert f(h, td.constant(5)).shape == (5, 5, 6)
    with pytest.raises(td.errors.OutOfRangeError):
        f(h, td.constant(6))
    assert np.isfinite(f(h, td.constant(4)).numpy()).all()
