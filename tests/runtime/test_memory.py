"""The memory plan: temporaries share memory, results continue in the memory of operands."""

import numpy as np

import treadle as td
from tests.runtime.harness import both, inputs, trace_like
from treadle.ops.control.control_flow import while_loop


def checked(fn, size):
    """Compiled and compared with the interpreter, on square matrices."""
    arrays = inputs(*[(size, size)] * fn.__code__.co_argcount)
    arrays = [a / np.float32(size**0.5) for a in arrays]
    return both(trace_like(fn, *arrays), *arrays, rtol=1e-3, atol=1e-4)


def test_a_result_continues_in_the_memory_of_its_operand():
    def turned(x, a, b):
        return td.matmul(td.reverse(td.tanh(td.matmul(x, a)), [0]), b)

    def straight(x, a, b):
        return td.matmul(td.tanh(td.matmul(x, a)), b)

    two, one = (checked(fn, 64).counters["workspace_bytes"] for fn in (turned, straight))
    assert two - one >= 64 * 64 * 4


def test_an_operand_that_is_read_again_keeps_its_memory():
    def fn(x, a, b):
        y = td.matmul(x, a)
        z = td.tanh(y)
        return td.matmul(z, b), td.matmul(y, b)

    checked(fn, 33)


def test_chains_of_heirs():
    def fn(x, a):
        for _ in range(4):
            x = td.tanh(td.matmul(x, a))
            x = td.matmul(td.exp(x * 0.1) + 1.0, a) * 0.01
        return x

    checked(fn, 20)


def test_loops_keep_what_the_next_iteration_reads():
    def fn(x, a):
        y = td.matmul(x, a)
        z = td.tanh(y)

        def body(i, s):
            t = td.sin(td.matmul(s, a))
            return i + 1, td.matmul(t * y, a) * 0.1 + z

        return while_loop(lambda i, s: i < 3, body, (td.constant(0), z))[1]

    checked(fn, 20)


def test_other_element_sizes_do_not_share():
    def fn(x, a):
        y = td.cast(td.matmul(x, a), td.float64)
        return td.matmul(td.reshape(y, (8, 32)), td.ones((32, 2), td.float64))

    checked(fn, 16)
