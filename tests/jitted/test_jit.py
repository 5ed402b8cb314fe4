"""`td.jit`: NumPy's meaning for functions of arrays and numbers."""

from typing import NamedTuple

import numpy as np
import pytest

import treadle as td
from tests.jitted.differential import compiled_text


def agree(function, *arguments, calls=2):
    """The jitted function gives and changes what the function itself does."""
    jitted = td.jit(function)
    for _ in range(calls):
        mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        theirs = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        expected, found = function(*theirs), jitted(*mine)
        same(expected, found)
        for a, b in zip(theirs, mine, strict=True):
            same(a, b)
    return jitted


def same(a, b):
    if isinstance(a, tuple | list):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert type(a) is type(b), (type(a), type(b))
    x, y = np.asarray(a), np.asarray(b)
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    if x.dtype.kind in "fc":
        np.testing.assert_allclose(y, x, rtol=1e-5 if x.dtype.itemsize < 8 else 1e-10, atol=1e-12)
    else:
        assert np.array_equal(x, y)


V = np.arange(5.0)
M = np.arange(12.0).reshape(3, 4)


class TestPromotion:
    @pytest.mark.parametrize("a", ["float64", "float32", "int64", "int32", "uint8", "bool"])
    @pytest.mark.parametrize("b", ["float64", "float32", "int64", "int32", "uint8", "bool"])
    def test_arrays(self, a, b):
        x, y = (np.arange(1, 6).astype(t) for t in (a, b))
        agree(lambda x, y: (x + y, x * y, x / y, np.maximum(x, y), x > y), x, y, calls=1)

    @pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
    def test_python_numbers_are_weak(self, dtype):
        x = np.arange(1, 6).astype(dtype)
        agree(lambda x, f: (x + 2, x * 1.5, 2 - x, x + f, x[0] + f, x[0] * 2), x, 0.25, calls=1)

    def test_scalars_of_numpy_are_strong(self):
        agree(lambda x, s: (x * s, x[1] * s), np.ones(3, np.float32), np.float64(1 / 3))

    def test_numbers_stay_pythons(self):
        agree(lambda n, f: (n + 1, n / 2, n // 2, f * 2, n > 3), 7, 1.5)


class TestInPlace:
    def test_the_caller_sees_what_is_assigned(self):
        def f(x):
            x[0] = 10
            x[1:3] += 1
            x *= 2

        agree(f, V)

    def test_views_share_elements(self):
        def f(a):
            b = a[1:]
            a[1] = 100
            b[-1] = 7
            return b, b.sum()

        agree(f, V)

    def test_a_row_of_a_transpose(self):
        def f(m):
            m.T[1] = 5
            row = m[0]
            row *= 2
            for r in m:
                r += 1
            return m[1]

        agree(f, M)

    def test_two_names_for_one_array(self):
        def f(x):
            y = z = np.zeros(3)
            y += x
            return y, z

        agree(f, np.ones(3))

    def test_helpers_change_their_arguments(self):
        def helper(v, a):
            v += a

        def f(x, a):
            helper(x, a)
            helper(x[2:], 1.0)

        agree(f, V, 2.0)

    def test_the_result_is_the_callers_array(self):
        @td.jit
        def f(x):
            x += 1
            return x, x[1:], x.reshape(5, 1)

        x = V.copy()
        whole, part, column = f(x)
        assert whole is x
        assert np.shares_memory(part, x) and np.shares_memory(column, x)

    def test_arrays_that_are_not_contiguous(self):
        @td.jit
        def f(x):
            x += 1

        x = np.zeros((4, 6))
        f(x[::2, 1:3])
        f(x.T)
        wanted = np.ones((4, 6))
        wanted[::2, 1:3] += 1
        assert np.array_equal(x, wanted)

    def test_one_array_twice(self):
        def f(x, y):
            x[0] = 5
            return y[0] * 1.0

        x = np.zeros(3)
        assert td.jit(f)(x, x) == 5

    def test_overlapping_arguments(self):
        def f(x, y):
            x += 1
            y *= 2

        a, b = np.arange(6.0), np.arange(6.0)
        td.jit(f)(a[:4], a[2:])
        f(b[:4], b[2:])
        assert np.array_equal(a, b)

    def test_read_only_arguments(self):
        x = V.copy()
        x.flags.writeable = False

        @td.jit
        def f(x):
            x[0] = 1

        with pytest.raises(ValueError, match="'x' in place, which is read-only"):
            f(x)

    def test_casting_of_assigning_operators(self):
        @td.jit
        def f(x):
            x += 0.5

        with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output"):
            f(np.arange(3))

    def test_out(self):
        def f(a, b, c):
            np.add(a, b, out=c)
            np.multiply(c, 2, c)
            np.dot(a, b, out=None)
            return c

        agree(f, V, V, np.zeros(5))

    def test_methods_that_change_arrays(self):
        def f(x, y):
            x.sort()
            y.fill(3)
            np.copyto(x[1:], y[1:], where=y[1:] > 5)
            np.add.at(y, np.array([0, 0, 2]), 1.5)

        agree(f, np.array([3.0, 1.0, 2.0]), np.zeros(3))


class TestIndexing:
    @pytest.mark.parametrize(
        "key",
        ["0", "-1", "1:3", "::-1", "None", "...", "(0, 1)", "(slice(None), 1)", "(slice(1), -1)",
         "[0, 2]", "([0, 2], [1, 1])", "m > 4", "(slice(None), [0, 3])", "([1, 0], slice(1, 3))",
         "np.array([[0, 1], [2, 0]])", "(None, 1)", "(1, ..., None)"],
    )  # fmt: skip
    def test_reading(self, key):
        agree(compiled_text(f"import numpy as np\ndef f(m):\n    return m[{key}]", key), M, calls=1)

    @pytest.mark.parametrize(
        "key", ["0", "-1", "1:3", "::-1", "(0, 1)", "(slice(None), 1)", "[0, 2]", "m > 4",
                "([0, 2], [1, 1])", "(slice(None), [0, 3])"],
    )  # fmt: skip
    def test_writing(self, key):
        text = f"def f(m):\n    m[{key}] = 7\n    m[{key}] += 1\n"
        agree(compiled_text(text, f"writing {key}"), M, calls=1)

    def test_positions_that_only_the_run_knows(self):
        def f(x, i, n):
            t = 0.0
            for k in range(n):
                t += x[k] * x[-1 - k] + x[i]
            return t, x[: i + 1], x[i:][::-1]

        jitted = agree(f, V, 2, 3)
        same(jitted(V, 1, 4), f(V, 1, 4))

    def test_out_of_range(self):
        @td.jit
        def f(x, i):
            return x[i]

        f(V, 1)
        with pytest.raises(td.errors.InvalidArgumentError, match="out of range"):
            f(V, 17)


class TestControlFlow:
    def test_loops_stay_loops(self):
        def f(x, n):
            for _ in range(n):
                x[1:-1] = 0.5 * (x[:-2] + x[2:])

        agree(f, V, 100)
        graphs = [td.jit(f).get_concrete_function(V, n).graph for n in (10, 10_000)]
        sizes = [sum(1 for _ in graph.walk()) for graph in graphs]
        assert sizes[0] == sizes[1] < 30

    def test_nested_bounds(self):
        def f(a):
            n = a.shape[0]
            for i in range(n):
                for j in range(i):
                    a[i, j] -= a[i, :j] @ a[j, :j]
                    a[i, j] /= a[j, j]
                a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])

        x = np.random.default_rng(0).normal(size=(6, 6))
        agree(f, x @ x.T + 6 * np.eye(6))

    def test_branches_change_arrays(self):
        def f(x, t):
            for i in range(x.shape[0]):
                if x[i] > t:
                    x[i] = -x[i]
                elif x[i] < 1:
                    x[0] += 1
            return x.sum()

        agree(f, V, 2.5)

    def test_break_and_else(self):
        def f(x, t):
            for i in range(x.shape[0]):
                if x[i] > t:
                    found = i
                    break
            else:
                found = -1
            return found

        jitted = agree(f, V, 2.5)
        assert jitted(V, 99.0) == -1

    def test_while(self):
        def f(n):
            steps = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            return steps

        jitted = td.jit(f)
        assert [jitted(n) for n in (6, 7, 27)] == [f(n) for n in (6, 7, 27)]

    def test_loops_whose_bounds_depend_on_other_loops_stay_loops(self):
        def chain(sizes):
            n = sizes.shape[0] - 1
            cost = np.zeros((n, n))
            for length in range(2, n + 1):
                for i in range(n - length + 1):
                    j = i + length - 1
                    best = np.inf
                    for k in range(i, j):
                        here = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                        best = min(best, here)
                    cost[i, j] = best
            return cost[0, n - 1]

        def size(n):
            return len(list(td.jit(chain).get_concrete_function(np.arange(1, n)).graph.walk()))

        agree(chain, np.array([3, 7, 2, 9, 4, 8, 5]))
        assert size(20) == size(60)

    def test_arrays_that_are_swapped_after_inner_loops_write_them(self):
        def spread(cells, steps):
            n, m = cells.shape
            now, after = cells.copy(), np.zeros_like(cells)
            for _ in range(steps):
                for i in range(n):
                    for j in range(m):
                        after[i, j] = now[i, (j + 1) % m] + 2 * now[(i + 1) % n, j]
                now, after = after, now
            return now, after

        def size(steps):
            return len(list(td.jit(spread).get_concrete_function(M, steps).graph.walk()))

        for steps in (5, 6):
            agree(spread, M, steps)
        assert size(7) == size(50)

    def test_ints_become_floats_in_loops(self):
        def f(x):
            s = 0
            p = 1
            for v in x:
                s += v
                p *= 1.5
            return s, p

        agree(f, V)

    def test_values_from_the_last_iteration(self):
        def f(x):
            for i in range(len(x)):
                y = x[i] * 2
            return y, i

        agree(f, V)

    def test_swapped_arrays(self):
        def f(p, n):
            pn = np.empty_like(p)
            for _ in range(n):
                pn[:] = p
                p, pn = pn, p
                p[1:-1] = pn[:-2] + pn[2:]
            return p

        agree(f, V, 4)
        agree(f, V, 7)

    def test_compute_with_closures_and_globals(self):
        table = np.array([1.0, 4.0, 9.0])

        def f(x, i):
            return x * table[i] + OFFSET

        agree(f, V, 1)


OFFSET = np.array([0.5])


class TestSurroundings:
    def test_tensors_and_tapes(self):
        @td.jit
        def f(x, w):
            return (x @ w).sum()

        w = td.Variable(np.ones((4, 2)))
        with td.GradientTape() as tape:
            y = f(td.constant(M), w)
        assert float(y) == 2 * M.sum()
        assert np.allclose(tape.gradient(y, w), M.sum(0)[:, None] * np.ones((4, 2)))

    def test_inside_a_function(self):
        @td.jit
        def f(x):
            y = x.copy()
            y[0] = 5
            return y

        @td.function
        def g(x):
            return f(x) * 2

        assert np.allclose(g(td.constant(V)), np.array([10.0, 2, 4, 6, 8]))

    def test_gradients(self):
        def f(x, a):
            t = 0.0
            for i in range(1, x.shape[0]):
                t += np.sin(x[i] * x[i - 1]) * a
            return t

        value, (dx, da) = td.value_and_grad(f, (0, 1))(V, 0.5)
        assert np.isclose(value, f(V, 0.5))
        for i in range(5):
            step = np.zeros(5)
            step[i] = 1e-6
            assert np.isclose(dx[i], (f(V + step, 0.5) - f(V - step, 0.5)) / 2e-6, atol=1e-6)
        assert np.isclose(da, f(V, 1.0))
        assert isinstance(da, float) and dx.dtype == np.float64
        assert np.allclose(td.grad(td.jit(f))(V, 0.5), dx)

    def test_gradient_of_a_function_that_changes_its_argument(self):
        def f(x):
            x += 1
            return x.sum()

        with pytest.raises(TypeError, match="changes its argument 0 in place"):
            td.grad(f)(V.copy())

    def test_arrays_of_objects_are_refused(self):
        with pytest.raises(TypeError, match="argument 'x' is an array of dtype object"):
            td.jit(lambda x: x)(np.array([None]))

    def test_the_text_is_autographs(self):
        @td.jit
        def f(x):
            for i in range(x.shape[0]):
                x[i] = 0

        assert "ag__.set_item(x, i, 0)" in td.autograph.to_code(f.python_function)

    def test_ints_are_constants_until_a_second_value(self):
        @td.jit
        def f(x, n):
            return x[:n]

        for n in (3, 3, 4, 1, 2):
            assert np.array_equal(f(V, n), V[:n])
        assert f.experimental_get_tracing_count() == 2

    def test_methods(self):
        class Model:
            def __init__(self):
                self.w = np.array([1.0, 2.0])

            @td.jit
            def predict(self, x):
                return x @ self.w

        assert Model().predict(np.ones((3, 2))).tolist() == [3.0, 3.0, 3.0]


def test_numbers_computed_of_what_a_branch_made_leave_it():
    def f(a, n):
        k = 0
        for i in range(n):
            if a[i] > 0:
                j = int(a[i]) + i
                k += j - 1
                if a[i] > 2:
                    return k + j, k - j * 2
        return k, -k

    agree(f, np.array([1.0, -1.0, 2.0, 3.0, 4.0]), 5, calls=1)


def test_products_of_sizes_are_numbers():
    def f(x, k, out):
        n = x.shape[0]
        m = out.shape[0] // (k * n)
        for i in range(n):
            for a in range(k):
                for b in range(m):
                    out[a * n * m + i * m + b] = x[i]

    agree(f, V, 2, np.zeros(30))
    jitted = td.jit(f)
    for k in (1, 2, 3):
        mine, theirs = np.zeros(30), np.zeros(30)
        jitted(V, k, mine)
        f(V, k, theirs)
        same(mine, theirs)


class Options(NamedTuple):
    scale: float = 2.0
    shift: float = 1.0


def test_named_tuples_are_arguments():
    def f(x, options=Options()):
        return x * options.scale + options.shift

    agree(f, V)
    agree(lambda x, o: f(x, o), V, Options(3.0, 0.5), calls=1)


def test_positions_that_no_step_tells_are_not_read_back():
    def f(x, y):
        for k in range(7):
            x[(k * 3) % 7] = x[(k * 3) % 7] + 1.0
        k = 2
        while k < 7:
            y[(k * 3) % 7] += 1.0
            k += 1

    agree(f, np.arange(7.0), np.arange(7.0), calls=1)


@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace_of_a_size_that_varies(endpoint):
    jitted = td.jit(lambda n: np.linspace(0.0, 1.0, n, endpoint, retstep=True))
    for n in (5, 3, 7, 1, np.int64(4), np.int64(6)):
        same(np.linspace(0.0, 1.0, n, endpoint), jitted(n)[0])

    agree(lambda x: np.linspace(x, 3 * x, int(x[2]), endpoint, axis=-1), V, calls=1)


def test_short_rows_in_loops():
    """Rows of several short lengths that iterations write and later ones read, and vectors that a
    loop adds up, give NumPy's results."""

    def smooth(x, steps):
        total = np.zeros(x.shape[1])
        for _ in range(steps):
            for i in range(1, x.shape[0]):
                if i % 3 != 1:
                    d = x[i - 1] - x[i]
                    total += d / (1.0 + np.sum(d * d))
                x[i] += 0.25 * (x[i - 1] - x[i])
        return total

    sizes = [(n, np.float64) for n in (1, 3, 4, 7, 9)] + [(n, np.float32) for n in (3, 6, 15)]
    for length, dtype in sizes:
        x = np.random.default_rng(length).normal(size=(7, length)).astype(dtype)
        ours, theirs = x.copy(), x.copy()
        found, expected = td.jit(smooth)(ours, 3), smooth(theirs, 3)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_an_array_of_another_dtype_after_the_first_iteration():
    def f(x, n):
        v = np.zeros(4)
        for _ in range(9):
            v = x * 2
        return v, v.dtype == x.dtype

    agree(f, np.arange(4, dtype=np.float32), 3)


def _of_vectorize(function, types=()):
    """What Numba's ``@vectorize`` gives, as far as it is looked at."""
    made = type("DUFunc", (), {"__module__": "numba.np.ufunc.dufunc"})()
    made._dispatcher = type("Dispatcher", (), {"py_func": staticmethod(function)})()
    made.types, made._frozen = list(types), bool(types)
    return made


def test_functions_of_numbas_vectorize_are_traced():
    def above(x, y):
        if x > y:
            return x - y
        return 0.0

    as_given, of_floats = _of_vectorize(above), _of_vectorize(above, ["ff->f", "dd->d"])

    @td.jit
    def f(x, y):
        return as_given(x, 1.5), of_floats(x, y[:, None]), of_floats(3, 2), as_given(x[2], 1.0)

    x, y = np.arange(4, dtype=np.float32), np.array([1, 2], np.int64)
    found = f(x, y)
    wanted = np.maximum(x - 1.5, 0), np.maximum(x.astype(float) - y[:, None], 0), 1.0, 1.0
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[1].dtype == np.float64
    assert of_floats.types == ["ff->f", "dd->d"]
    with pytest.raises(TypeError, match="no loop of dd->d takes"):
        td.jit(lambda x: _of_vectorize(above, ["dd->d"])(x, x))(np.array([1j]))


def test_functions_that_numba_has_compiled_are_traced():
    """Numba's objects keep the function as ``py_func``."""
    dispatcher = type("CPUDispatcher", (), {"__module__": "numba.core.registry"})

    def plain(x):
        return x.sum() if x[0] > 0 else x.max()

    compiled = dispatcher()
    compiled.py_func = plain

    @td.jit
    def outer(x):
        return compiled(x) + compiled(-x)

    x = np.array([1.0, 2.0])
    assert outer(x) == plain(x) + plain(-x)
    assert td.jit(compiled)(x) == plain(x)
