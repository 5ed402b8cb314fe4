"""Whole programs against the interpreter: kernels, control flow, variables, effects."""

import numpy as np
import pytest

import treadle as td
from tests.runtime.harness import both, inputs, native, trace, trace_like
from treadle.core import errors
from treadle.core.spec import TensorSpec
from treadle.ops.control.control_flow import cond, while_loop
from treadle.passes import disabled, switches
from treadle.runtime import compile


def softmax(x):
    e = td.exp(x - td.reduce_max(x, -1, keepdims=True))
    return e / td.reduce_sum(e, -1, keepdims=True)


def layer_norm(x, scale):
    mean = td.reduce_mean(x, -1, keepdims=True)
    centered = x - mean
    variance = td.reduce_mean(centered * centered, -1, keepdims=True)
    return centered * td.math.rsqrt(variance + 1e-5) * scale


def layer_norm_gradient(x, dy):
    with td.GradientTape() as tape:
        tape.watch(x)
        y = layer_norm(x, 1.0)
    return tape.gradient(y, x, output_gradients=dy)


def spread_again(x):
    """The sums of rows are spread along the rows after dims of 1 were dropped and added."""
    total = td.reduce_sum(x, 1)
    return x * td.reshape(total, (-1, 1)) + td.reshape(total, (-1, 1, 1))[:, :, 0]


def around_a_product(x, w):
    """The sums of rows meet the rows through a product too, which a kernel must wait for."""
    total = td.reduce_sum(x, 1)
    mixed = td.matmul(td.reshape(total, (1, -1)), w)
    return x * td.reshape(total, (-1, 1)) + td.reshape(mixed, (-1, 1)), mixed


STRAIGHT = {
    "chain": (lambda x: td.exp(x) * 2.0 + x, [(7, 33)]),
    "broadcast": (lambda x, y: x + y * 2.0, [(5, 1, 7), (3, 1)]),
    "softmax": (softmax, [(6, 19)]),
    "softmax op": (lambda x: td.nn.softmax(td.tanh(x)), [(6, 19)]),
    "layer norm": (layer_norm, [(6, 40), (40,)]),
    "layer norm gradient": (layer_norm_gradient, [(6, 40)] * 2),
    "sums spread again": (spread_again, [(6, 40)]),
    "sums around a product": (around_a_product, [(6, 40), (6, 6)]),
    "loss and gradient": (
        lambda p, y: (td.reduce_mean(td.square(p - y)), (p - y) * 2.0),
        [(90, 70)] * 2,
    ),
    "column sums": (lambda x: (td.reduce_sum(x, 0), td.reduce_sum(x, 0) / 3.0), [(31, 17)]),
    "sum of all after sums of rows": (
        lambda x: td.reduce_sum(x, 1) * td.reduce_sum(x) + td.reduce_max(x),
        [(4, 6)],
    ),
    "column mean removed": (lambda x: x - td.reduce_mean(x, 0), [(31, 17)]),
    "square matrix": (lambda x: x / td.reduce_sum(x * x, 0), [(9, 9)]),
    "rows of a square matrix": (lambda x: x + td.reduce_max(x, 1, keepdims=True), [(9, 9)]),
    "middle axis": (lambda x: x - td.reduce_max(x, 1, keepdims=True), [(4, 5, 6)]),
    "transposed": (lambda x: td.transpose(td.exp(x)) + 1.0, [(4, 7)]),
    "reshaped": (lambda x: td.exp(td.reshape(td.tanh(x), [-1, 3])), [(4, 9)]),
    "slices": (lambda x: x[1:, ::2] * x[:-1, 1::2], [(6, 8)]),
    "concatenated": (lambda x, y: td.concat([x * 2.0, td.exp(y)], 1), [(3, 4), (3, 2)]),
    "matmul": (lambda x, w: td.nn.relu(td.matmul(x, w) + 1.0), [(5, 6), (6, 7)]),
    "argmax": (lambda x: td.argmax(td.tanh(x), 1), [(5, 6)]),
    "returned twice": (lambda x: (td.exp(x), td.exp(x), x), [(5,)]),
    "scalars": (lambda x: (td.reduce_sum(x) * 2.0 + 1.0, td.sqrt(td.reduce_sum(x * x))), [(5, 3)]),
    "scalar broadcast": (lambda x: x / td.sqrt(td.reduce_sum(x * x)), [(500, 300)]),
    "empty": (lambda x: (td.exp(x), td.reduce_sum(x, 0)), [(0, 3)]),
}


SWITCHES = [s.name for s in switches() if s.stage in ("target", "program") and not s.required]


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("off", ["", *SWITCHES, "all"])
def test_straight_lines(name, off):
    fn, shapes = STRAIGHT[name]
    arrays = inputs(*shapes)
    with disabled(*([off] if off else [])):
        both(trace_like(fn, *arrays), *arrays, rtol=2e-5, atol=2e-5)


OPEN = [
    "chain", "softmax", "softmax op", "layer norm", "column sums", "column mean removed", "matmul",
    "middle axis", "transposed", "slices", "argmax", "returned twice", "scalars", "reshaped",
    "scalar broadcast", "rows of a square matrix", "sums spread again",
]  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_straight_lines_with_a_symbolic_batch(name):
    fn, shapes = STRAIGHT[name]
    for size in (1, 2, 7):
        arrays = inputs(*((size, *s[1:]) if i == 0 else s for i, s in enumerate(shapes)))
        specs = [TensorSpec((None, *s[1:]) if i == 0 else s) for i, s in enumerate(shapes)]
        both(trace(fn, *specs), *arrays, rtol=2e-5, atol=2e-5)


def kernels(graph):
    return native(graph).counters["kernels"]


def test_what_fuses_into_one_kernel():
    x, y, s = TensorSpec((64, 100)), TensorSpec((64, 100)), TensorSpec((100,))
    assert kernels(trace(softmax, x)) == 1
    assert kernels(trace(layer_norm, x, s)) == 1
    assert kernels(trace(layer_norm_gradient, x, y)) == 1
    assert kernels(trace(spread_again, x)) == 1
    assert kernels(trace(lambda x: softmax(td.tanh(x) + 1.0) * 2.0, x)) == 1
    assert kernels(trace(lambda x, y: (td.exp(x + y), td.tanh(x + y)), x, y)) == 1
    assert kernels(trace(lambda x: x - td.reduce_mean(x, 0), x)) == 2
    wide = TensorSpec((64, 300))
    assert kernels(trace(lambda x: td.nn.softmax(x * 2.0, 0) + 1.0, wide)) == 1
    assert kernels(trace(lambda x: td.nn.softmax(x, 1) * 2.0, TensorSpec((3, 40, 300)))) == 2
    assert kernels(trace(lambda x: x - td.reduce_mean(x, 0), wide)) == 2


def test_reductions_of_the_same_rows_are_one_kernel():
    x, y, labels = TensorSpec((64, 100)), TensorSpec((64, 100)), TensorSpec((64,), td.int32)

    def loss_and_gradient(x, labels):
        with td.GradientTape() as tape:
            tape.watch(x)
            losses = td.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        return losses, tape.gradient(losses, x)

    checked = native(trace(loss_and_gradient, x, labels)).stages["kernels"]
    assert checked.count("exp(") == 1
    sums = [td.reduce_sum, td.reduce_max, td.reduce_mean]
    assert kernels(trace(lambda x: [f(x, 1) for f in sums], x)) == 1
    assert kernels(trace(lambda x: [f(x, 0) for f in sums], x)) == 1
    assert kernels(trace(lambda x: [f(x) for f in sums], x)) == 1
    # a scale's and a shift's gradient
    assert kernels(trace(lambda x, y: (td.reduce_sum(x, 0), td.reduce_sum(x * y, 0)), x, y)) == 1
    # nothing in common, or in another direction, or the second needs the first
    assert kernels(trace(lambda x, y: (td.reduce_sum(x, 0), td.reduce_sum(y, 0)), x, y)) == 2
    assert kernels(trace(lambda x: (td.reduce_sum(x, 0), td.reduce_sum(x, 1)), x)) == 2

    def variance(x):
        mean = td.reduce_mean(x, 0)
        return mean, td.reduce_mean((x - mean) ** 2, 0)

    array = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    both(trace(variance, x), array, rtol=2e-5)
    both(trace(loss_and_gradient, x, labels), array, np.arange(64, dtype=np.int32), rtol=2e-5)


def test_large_results_go_past_the_caches():
    def text(fn, *shapes):
        return native(trace(fn, *map(TensorSpec, shapes))).stages["kernels"]

    large = [2048, 4096]
    assert "streaming" in text(lambda x: x + 1.0, large)
    assert "streaming" in text(lambda x: softmax(x), large)
    assert "streaming" not in text(lambda x: x + 1.0, [1024, 1024])
    assert "streaming" not in text(lambda x: td.reduce_sum(x, 1), large)
    array = np.random.default_rng(0).standard_normal(large).astype(np.float32)
    both(trace_like(lambda x: x * 2.0 + 1.0, array), array)


def recurrence(a, n):
    return while_loop(lambda a, i: i < n, lambda a, i: (a * 0.5 + 1.0, i + 1), (a, td.constant(0)))


LOOPS = {
    "scalar": (recurrence, [np.float32(3.0), np.int32(20)]),
    "no iterations": (recurrence, [np.float32(3.0), np.int32(0)]),
    "array": (
        lambda a, n: while_loop(
            lambda a, i: i < n, lambda a, i: (td.tanh(a) + 1.0, i + 1), (a, td.constant(0))
        ),
        [inputs((7,))[0], np.int32(5)],
    ),
    "not in place": (
        lambda a, n: while_loop(
            lambda a, i: i < n, lambda a, i: (a + td.reverse(a, [0]), i + 1), (a, td.constant(0))
        ),
        [inputs((7,))[0], np.int32(5)],
    ),
    "exchange": (
        lambda a, b: while_loop(
            lambda i, a, b: i < 5, lambda i, a, b: (i + 1, b, a + b), (td.constant(0), a, b)
        ),
        inputs((4,), (4,)),
    ),
    "invariant": (
        lambda a, b: while_loop(
            lambda i, a, b: td.reduce_sum(a) < 10.0,
            lambda i, a, b: (i + 1, a + b * b + 1.0, b),
            (td.constant(0), a, b),
        ),
        inputs((4,), (4,)),
    ),
    "nested": (
        lambda x: while_loop(
            lambda i, x: i < 4,
            lambda i, x: (
                i + 1,
                while_loop(
                    lambda j, x: j < i, lambda j, x: (j + 1, x * 1.5 + 1.0), (td.constant(0), x)
                )[1],
            ),
            (td.constant(0), x),
        ),
        inputs((3, 2)),
    ),
    "cond inside": (
        lambda x: while_loop(
            lambda i, x: i < 6,
            lambda i, x: (i + 1, cond(i % 2 == 0, lambda: x * 2.0, lambda: x - 1.0)),
            (td.constant(0), x),
        ),
        inputs((3, 2)),
    ),
    "result used in place and outside": (
        lambda x: (lambda r: (r[1] + x, r[1]))(
            while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y), (td.constant(0), x))
        ),
        inputs((5,)),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name):
    fn, arrays = LOOPS[name]
    both(trace_like(fn, *arrays), *arrays)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond(sign):
    x = np.full((4, 5), sign, np.float32)

    def f(x):
        total = td.reduce_sum(x)
        return cond(total > 0, lambda: (x * total, total, x), lambda: (td.exp(x), -total, x + 1.0))

    both(trace_like(f, x), x)


def test_a_branch_that_needs_python():
    x = inputs((4, 5))[0]
    y = both(
        trace_like(lambda x: cond(x[0, 0] > 0, lambda: td.linalg.trace(x), lambda: x[0, 1]), x), x
    )
    assert y.mode == "native"


# -- variables ---------------------------------------------------------------------------------


def test_an_optimizer_step_is_one_kernel_in_place():
    p, m = (td.Variable(a) for a in inputs((30, 20), (30, 20)))
    t = td.Variable(np.int64(0))

    def step(g):
        t.assign_add(1)
        m.assign(m * 0.9 + g * 0.1)
        p.assign_sub(m / (1.0 - td.pow(0.9, td.cast(t, td.float32))))

    gradient = inputs((30, 20), seed=1)[0]
    executable = both(_step_graph(step), gradient)
    assert executable.counters["kernels"] == 1
    assert executable.counters["workspace_bytes"] == 0
    before = p._buffer
    executable.run([gradient, *executable.graph.captures])
    assert p._buffer is before


def _step_graph(step):
    def fn(g):
        step(g)
        return ()

    return trace(fn, TensorSpec((30, 20)))


def old_and_new(v, x):
    old = v.value()
    v.assign(old + x)
    return old * 2.0, v.value()


def twice(v, x):
    first = v.value()
    v.assign(first + x)
    second = v.value()
    v.assign(td.reverse(second, [0]))
    return first, second, v.value()


def assigned_argument(v, x):
    v.assign(x)
    return v.value() + 1.0


def returned(v, x):
    result = v.value()
    v.assign(result * 0.0)
    return result


def in_a_loop(v, x):
    def body(i):
        v.assign(v * 0.5 + x)
        return i + 1

    before = v.value()
    while_loop(lambda i: i < 3, lambda i: (body(i),), (td.constant(0),))
    return before, v.value()


def in_a_branch(v, x):
    cond(x[0] > 0, lambda: (v.assign(v + x), td.constant(0))[1], lambda: td.constant(0))
    return v.value()


def swapped(v, x):
    w = v.value()
    v.assign(td.reverse(w, [0]) + w)
    return w


@pytest.mark.parametrize(
    "use", [old_and_new, twice, assigned_argument, returned, in_a_loop, in_a_branch, swapped]
)
def test_reads_and_writes_keep_program_order(use):
    start, x = inputs((6,), (6,))
    v = td.Variable(start)
    both(trace_like(lambda x: use(v, x), x), x)


def test_tensors_do_not_change_when_their_variable_does():
    v = td.Variable([1.0, 2.0])
    graph = trace(lambda x: (v.assign(v + x), ())[1], TensorSpec((2,)))
    executable = native(graph)
    held = v.value()
    executable.run([np.ones(2, np.float32), v])
    np.testing.assert_array_equal(held.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(v.numpy(), [2.0, 3.0])


def test_an_argument_is_not_overwritten():
    x = inputs((6,))[0]
    before = x.copy()
    graph = trace_like(
        lambda x: while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (td.constant(0), x)
        )[1],
        x,
    )
    native(graph).run([x])
    np.testing.assert_array_equal(x, before)


# -- errors and effects ------------------------------------------------------------------------


def test_integer_division_by_zero():
    graph = trace(lambda x, y: x // y, TensorSpec((3,), "int32"), TensorSpec((3,), "int32"))
    executable = native(graph)
    ones = np.ones(3, np.int32)
    np.testing.assert_array_equal(executable.run([ones * 7, ones * 2])[0], [3, 3, 3])
    with pytest.raises(errors.InvalidArgumentError, match="zero"):
        executable.run([ones, np.array([1, 0, 2], np.int32)])
    np.testing.assert_array_equal(executable.run([ones * 7, ones * 2])[0], [3, 3, 3])


def test_index_out_of_range():
    graph = trace(lambda x, i: td.gather(x, i), TensorSpec((5, 2)), TensorSpec((3,), "int32"))
    executable = native(graph)
    x = inputs((5, 2))[0]
    np.testing.assert_array_equal(
        executable.run([x, np.array([4, 0, 2], np.int32)])[0], x[[4, 0, 2]]
    )
    with pytest.raises(errors.InvalidArgumentError, match="5"):
        executable.run([x, np.array([4, 5, 2], np.int32)])


def test_assert_raises_only_when_it_fails():
    def f(x):
        td.Assert(td.reduce_all(x > 0), [x])
        return x * 2.0

    executable = native(trace(f, TensorSpec((3,))))
    np.testing.assert_array_equal(executable.run([np.ones(3, np.float32)])[0], [2, 2, 2])
    with pytest.raises(errors.InvalidArgumentError, match="assertion failed"):
        executable.run([np.zeros(3, np.float32)])


def test_prints_come_in_order(capfd):
    def f(x):
        td.print("first", x)
        td.print("second", x * 2.0)
        return x

    native(trace(f, TensorSpec(()))).run([np.asarray(np.float32(3))])
    assert capfd.readouterr().err == "first 3\nsecond 6\n"


def test_a_dim_of_one_where_the_graph_took_sizes_for_equal():
    graph = trace(lambda x, y: x + y, TensorSpec((None,)), TensorSpec((5,)))
    executable = native(graph)
    five = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(executable.run([five, five])[0], five * 2)
    np.testing.assert_array_equal(executable.run([five[1:2].copy(), five])[0], five + 1)
    with pytest.raises(errors.InvalidArgumentError):
        executable.run([five[:3].copy(), five])


def test_what_cannot_be_compiled_is_interpreted_and_says_why():
    graph = trace(
        lambda x, m: td.boolean_mask(x, m) * 2.0, TensorSpec((4,)), TensorSpec((4,), "bool")
    )
    executable = compile(graph)
    x, m = np.arange(4, dtype=np.float32), np.array([True, False, True, True])
    np.testing.assert_array_equal(executable.run([x, m])[0], [0, 4, 6])
    if executable.mode == "interpreted":
        assert "size" in executable.reason


def test_stages_are_text():
    executable = native(trace(softmax, TensorSpec((6, 19))))
    stages = executable.stages
    assert {"graph", "schedule", "kernels", "llvm"} <= set(stages)
    assert "kernel" in stages["schedule"]
    assert "define i64 @run" in stages["llvm"]


@pytest.mark.parametrize("sizes", [((3,), (70, 50), (20_000,)), ((7,), (5,))])
def test_updates_of_many_variables_are_one_launch(sizes):
    variables = [td.Variable(a) for a in inputs(*sizes)]

    def f(*gradients):
        for variable, gradient in zip(variables, gradients, strict=True):
            variable.assign_sub(td.tanh(gradient) * 0.1)
        return ()

    arrays = inputs(*sizes, seed=1)
    executable = both(trace_like(f, *arrays), *arrays)
    assert executable.counters["kernels"] == 1


def test_dependent_updates_are_not_merged():
    v = td.Variable(np.ones(9, np.float32))

    def f(x):
        v.assign(x * 2.0)
        y = td.reverse(v.value(), [0])
        v.assign(y * 2.0)
        return y * 2.0

    x = inputs((9,))[0]
    both(trace_like(f, x), x)


VIEWS = {
    "transposed": lambda x: td.transpose(x, [3, 0, 2, 1]),
    "reversed": lambda x: td.reverse(x, [1, 2]),
    "sliced": lambda x: x[:, ::2, 1:],
    "reshaped": lambda x: td.reshape(x, (3, 4, 10, 1)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("what", ["pool", "pool gradient", "pad", "pad of a sum"])
def test_what_lies_beyond_the_sides_of_a_view(view, what):
    """Loads through views give what their reader wants there, not zeros."""

    def program(x):
        y = VIEWS[view](x)
        if what.startswith("pool"):
            with td.GradientTape() as tape:
                tape.watch(y)
                pooled = td.nn.max_pool2d(y, [2, 3], 1, "SAME")
            return tape.gradient(pooled, y) if what == "pool gradient" else pooled
        y = y if what == "pad" else y + 1.0
        return td.pad(y, [[0, 1], [1, 0], [2, 1], [0, 0]], constant_values=-7.0)

    x = -np.abs(inputs((3, 4, 5, 2))[0]) - 1.0
    both(trace_like(program, x), x)
