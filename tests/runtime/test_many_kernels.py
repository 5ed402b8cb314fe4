"""Programs of many nodes: how much code they hold, and that it is right."""

import re

import numpy as np
import pytest

import treadle as td
from treadle import runtime
from treadle.kernel.ir import Affine, Axis, Buffer, Const, Kernel, Load, Store, apply, const
from treadle.passes import disabled
from treadle.runtime import interpreter
from treadle.runtime.cpu.elements import MOST_INLINE
from treadle.runtime.cpu.program_blueprint import MOST_OPERANDS
from treadle.runtime.cpu.program_entry import MOST_WRITTEN_OUT
from treadle.runtime.fusion.lifting import MANY, Lifting, lift_constants

X = np.linspace(-3, 3, 23, dtype=np.float32)


@pytest.fixture(autouse=True)
def python_unrolls():
    """Long programs come from loops that are not rolled."""
    with disabled("rolled_loops"):
        yield


def program(function, *arguments):
    return runtime.compile(td.function(function).get_concrete_function(*arguments).graph)


def check(function, *arrays):
    """The program, which must give what the interpreter gives, but for the functions' ULPs."""
    executable = program(function, *arrays)
    values = [*arrays, *executable.graph.captures]
    for _ in range(2):
        found = executable.run(values)
        for a, b in zip(found, interpreter.run(executable.graph, values), strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=1e-6)
    return executable


def kernels(executable):
    """The distinct kernels that a program calls."""
    return {key for kind, key in executable.program.table.keys if kind == "kernel"}


# -- constants as operands ---------------------------------------------------------------------


def wide(n):
    return lambda x: [td.sin(x * float(k + 2)) for k in range(n)]


@pytest.mark.parametrize("n", [MANY - 1, MANY + 1, 3 * MANY, 300])
def test_kernels_that_differ_in_constants_become_one(n):
    executable = check(wide(n), X)
    assert len(kernels(executable)) <= MANY + 1
    assert executable.counters["kernels"] <= MANY + 1  # the others are segments of one launch


def test_constants_that_come_again_stay_in_the_code():
    executable = check(lambda x: [td.tanh(x + float(k % 3)) * 2.0 for k in range(90)], X)
    assert "constant" not in {kind for kind, _ in executable.program.table.keys}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_the_bits_are_those_of_constants_in_the_code(dtype):
    x = td.cast(X, dtype)

    def result(many):
        def f(x):
            extra = [x * (7.0 + k) for k in range(many)]
            return [td.cast(x * 0.1 + 3.3 - (x / 1.7) * -0.0, td.float32), *extra]

        return np.array(program(f, x).run([x._buffer])[0])

    np.testing.assert_array_equal(result(0).view(np.int32), result(2 * MANY).view(np.int32))


def flat(*values):
    """A flat kernel: y = ((x + c0) * c1) * ..."""
    i = Axis("i", 8)
    x, y = Buffer("x", td.float32, (8,)), Buffer("y", td.float32, (8,))
    at = (Affine(((i, 1),)),)
    total = Load(x, at)
    for value in values:
        total = apply("add", total, const(value, td.float32))
    return Kernel((i,), (x, y), (Store(y, at, total),))


def test_lifting():
    kernel, found = lift_constants(flat(1.5, -0.0, 1.5))
    assert [c.value for c in found] == [1.5, 0.0]
    assert [b.shape for b in kernel.buffers] == [(8,), (8,), (), ()]
    assert not any(isinstance(e, Const) for s in kernel.stores for e in s.value.children)
    assert lift_constants(flat(2.5, 0.0, 2.5))[0] is kernel
    plain = flat()
    assert lift_constants(plain) == (plain, [])
    large = flat(*range(1, 60))
    assert lift_constants(large) == (large, [])


def test_the_first_constants_of_a_program_are_not_lifted():
    lift = Lifting()
    for k in range(MANY):
        assert lift(flat(float(k)))[1] == []
    assert len(lift(flat(1000.0))[1]) == 1
    assert lift(flat(3.0))[1] == []


# -- functions that are called -----------------------------------------------------------------


def functions(executable, name):
    """How many bodies of a vector function a program's kernels hold."""
    return len(re.findall(rf"^define internal [^@]*@{name}\.v", executable.stages["llvm"], re.M))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_functions_are_written_once_in_a_kernel_of_many(dtype):
    def chain(n):
        def f(x):
            for _ in range(n):
                x = td.sin(x) * 1.5
            return td.tanh(x)

        return f

    x = X.astype(dtype)
    assert functions(check(chain(MOST_INLINE - 1), x), "sin") == 0
    many = check(chain(MOST_INLINE + 4), x)
    assert functions(many, "sin") == 1 and functions(many, "tanh") == 1
    text = {n: len(program(chain(n), x).stages["llvm"]) for n in (10, 18)}
    assert text[18] < 1.5 * text[10]


@pytest.mark.parametrize("name", ["sin", "exp", "tanh", "log1p", "erf", "atan"])
def test_called_functions_have_the_bits_of_inline_ones(name):
    function = {"erf": td.math.erf}.get(name) or getattr(td, name, None) or getattr(td.math, name)
    many = 2 * MOST_INLINE
    x = np.concatenate([X, np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e9, 1e-30])])
    rows = np.stack([x + np.float32(k) for k in range(many)])

    def together(rows):
        return td.stack([function(rows[k]) for k in range(many)])

    with np.errstate(all="ignore"):
        one = np.array(program(lambda r: function(r), rows).run([rows])[0])
        all_ = np.array(program(together, rows).run([rows])[0])
    np.testing.assert_array_equal(one.view(np.int32), all_.view(np.int32))


def test_scalar_chains():
    def f(x):
        for k in range(60):
            x = td.cos(x) + 0.01 * k
        return x

    executable = check(f, np.float32(0.3))
    assert executable.stages["llvm"].count("@cos.f32(float %x0)") == 1


# -- operands as data --------------------------------------------------------------------------


def large(x, v):
    """Launches of several kinds, with more operands than code should store."""
    results = [td.sin(x * float(k + 1)) for k in range(MOST_OPERANDS // 3 + 40)]
    total = td.zeros_like(x)
    for k in range(40):
        total = td.tanh(total + results[k]) * x + td.reduce_max(results[k + 1])
    v.assign(v * 2.0 + total)
    return [*results, total, td.nn.softmax(total), v + 1.0]


def test_large_programs():
    v = td.Variable(np.ones_like(X))
    executable = program(lambda x: large(x, v), X)
    assert "@fill_words(" in executable.stages["llvm"]
    other = td.Variable(np.ones_like(X))
    for _ in range(3):
        found = executable.run([X, v])
        expected = [np.array(a) for a in _eagerly(large, X, other)]
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def _eagerly(function, x, v):
    return [a.numpy() for a in function(td.constant(x), v)]


def test_small_programs_store_their_operands():
    assert "@fill_words(" not in program(wide(20), X).stages["llvm"]


def test_large_programs_of_symbolic_sizes():
    def f(x):
        return [td.sin(x * float(k + 1)) for k in range(MOST_OPERANDS // 3 + 40)]

    with disabled("siblings"):
        executable = program(f, td.TensorSpec([None]))
    assert "@fill_words(" in executable.stages["llvm"]
    for size in (1, 23, 100):
        x = np.linspace(-1, 1, size, dtype=np.float32)
        for k, a in enumerate(executable.run([x])):
            np.testing.assert_allclose(a, np.sin(x * (k + 1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [MOST_WRITTEN_OUT - 1, MOST_WRITTEN_OUT, MOST_WRITTEN_OUT + 5])
def test_many_arguments(n):
    arrays = [np.full(3, k, np.float32) for k in range(n)]
    executable = program(lambda *xs: [x + 1.0 for x in xs], *arrays)
    for k, a in enumerate(executable.run(arrays)):
        np.testing.assert_array_equal(a, np.full(3, k + 1, np.float32))
    strided = np.arange(6, dtype=np.float32).view(_Subclass)  # no plain ndarray: the Python path
    assert len(executable.run([*arrays[:-1], strided[:3]])) == n


class _Subclass(np.ndarray):
    pass
