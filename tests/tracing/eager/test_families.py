"""Eager operations as programs, against NumPy's forms and against functions, by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import treadle as td
from tests.ops.samples import all_ops, calls
from treadle.core.tensor import from_array
from treadle.ops.registry import _AS_PROGRAM, run
from treadle.passes import disabled
from treadle.tracing.large_operations import _entries

RANDOM = np.random.default_rng(5)
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5}


class Family(NamedTuple):
    """Operations of one kind on arrays of some shapes and dtypes."""

    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, ...], ...], ...]
    dtypes: tuple[str, ...] = ("float32", "float64")

    def __str__(self) -> str:
        return self.name


FAMILIES = [
    Family("add", td.add, (((3, 4), (4,)), ((2, 1, 3), (5, 1)), ((0, 3), (1, 3)), ((), (7,))),
           ("float32", "float16", "bfloat16", "int8", "uint64", "complex64")),
    Family("divide", td.divide, (((3, 4), (3, 1)),), ("float32", "float64", "complex64")),
    Family("floordiv", td.math.floordiv, (((5,), (5,)),), ("float32", "int32")),
    Family("less", td.less, (((3, 4), (4,)),), ("float32", "int16")),
    Family("exp", td.exp, (((7,),), ((0,),), ((3, 17),)), ("float32", "float64", "float16")),
    Family("where", lambda a, b: td.where(a > b, a, b), (((3, 4), (4,)),), ("float32", "int64")),
    Family("cast", lambda x: td.cast(x, td.int32), (((9,),),), ("float32", "uint8", "float16")),
    Family("matmul", td.matmul,
           (((3, 4), (4, 5)), ((2, 3, 4), (4, 2)), ((0, 4), (4, 5)), ((3, 0), (0, 5))),
           ("float32", "float64", "float16", "int32", "complex64")),
    Family("matmul_t", lambda a, b: td.matmul(a, b, transpose_a=True, transpose_b=True),
           (((4, 3), (5, 4)),)),
    Family("sum", lambda x: td.reduce_sum(x, 0), (((17, 3),), ((0, 3),)),
           ("float32", "int32", "float16", "complex64")),
    Family("mean", td.reduce_mean, (((17, 3),),), ("float32", "int32")),
    Family("max", lambda x: td.reduce_max(x, -1), (((3, 17),),), ("float32", "int8")),
    Family("argmax", lambda x: td.argmax(x, 1), (((3, 17),),)),
    Family("cumsum", lambda x: td.cumsum(x, 0), (((17, 3),),), ("float32", "int32")),
    Family("softmax", td.nn.softmax, (((3, 17),), ((1, 1),), ((0, 4),)), ("float32", "float16")),
    Family("transpose", td.transpose, (((3, 4),), ((2, 3, 4),)), ("float32", "bool", "complex64")),
    Family("concat", lambda a, b: td.concat([a, b], 0), (((3, 4), (2, 4)),), ("float32", "int8")),
    Family("pad", lambda x: td.pad(x, [[1, 2], [0, 1]]), (((3, 4),),), ("float32", "int32")),
    Family("gather", lambda x: td.gather(x, [2, 0, 2]), (((3, 4),),), ("float32", "bool")),
    Family("conv2d", lambda x, w: td.nn.conv2d(x, w, 1, "SAME"), (((2, 7, 6, 3), (3, 3, 3, 4)),),
           ("float32", "float64")),
    Family("depthwise", lambda x, w: td.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
           (((2, 7, 6, 3), (3, 3, 3, 2)),), ("float32",)),
    Family("max_pool", lambda x: td.nn.max_pool2d(x, 2, 2, "VALID"), (((2, 6, 8, 3),),),
           ("float32", "float64")),
    Family("avg_pool", lambda x: td.nn.avg_pool2d(x, 2, 2, "SAME"), (((2, 5, 7, 3),),),
           ("float32",)),
]  # fmt: skip


def arrays_of(shapes: tuple[tuple[int, ...], ...], dtype: str) -> list[Any]:
    wide = [RANDOM.uniform(1.0, 5.0, shape) for shape in shapes]
    return [td.cast(td.constant(a), dtype)._buffer for a in wide]


def close(found: Any, wanted: Any) -> None:
    """Equal dtypes and shapes, and elements up to rounding."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    tolerance = TOLERANCE.get(found.dtype.name, 1e-12)
    np.testing.assert_allclose(
        found.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance
    )


def by_numpy(fn: Callable[..., Any], *tensors: Any) -> Any:
    with disabled("eager_programs"):
        return fn(*tensors)._buffer


def programs() -> int:
    return sum(entry.executable is not None for entry in _entries.values())


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_programs_give_what_numpy_gives_and_the_bits_of_functions(family, waiting):
    graph = td.function(family.fn, autograph=False)
    for shapes in family.shapes:
        for dtype in family.dtypes:
            tensors = [from_array(a) for a in arrays_of(shapes, dtype)]
            found = family.fn(*tensors)._buffer
            close(found, by_numpy(family.fn, *tensors))
            assert found.tobytes() == graph(*tensors)._buffer.tobytes()
            assert found.flags.c_contiguous and found.flags.writeable
    assert programs() > 0 and not [e.failure for e in _entries.values() if e.failure]


def test_every_op_that_may_be_a_program_is_one_in_its_dtype(waiting):
    with disabled("eager_programs"):
        known = calls()  # of all samples, most of which are of no interest here
    found = 0
    ours = {op: name for name, op in all_ops().items() if op in _AS_PROGRAM}
    for op, name in sorted(ours.items(), key=lambda item: item[1])[::4]:
        if name not in known:
            continue
        inputs, attrs = known[name]
        if not all(type(x) is td.Tensor for x in inputs):
            continue
        with disabled("eager_programs"):
            wanted = run(op, *inputs, **attrs)
        made = run(op, *inputs, **attrs)
        pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (made, wanted)), strict=True)
        for a, b in pairs:
            close(a._buffer, b._buffer)
        found += 1
    assert found > 20 and programs() > 15


@pytest.mark.parametrize("fn", [td.exp, td.sqrt, td.nn.relu, td.nn.softmax, td.math.log, td.tanh])
def test_nan_and_infinity_pass_through(fn, waiting):
    x = td.constant([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]])
    np.testing.assert_allclose(fn(x)._buffer, by_numpy(fn, x), rtol=1e-6)


def test_matrices_with_nan_and_infinity(waiting):
    x = np.ones((5, 6), np.float32)
    x[1, 2], x[3, 3] = np.nan, np.inf
    y = td.constant(np.ones((6, 4), np.float32))
    np.testing.assert_array_equal((td.constant(x) @ y)._buffer, x @ y.numpy())


def test_parts_of_arrays_and_the_same_tensor_twice(waiting):
    whole = np.arange(60, dtype=np.float32).reshape(6, 10)
    for part in (whole[::2], whole[:, ::-3], whole.T, whole[1:, 3:7]):
        x = td.constant(part)
        np.testing.assert_array_equal(td.square(x)._buffer, part * part)
        np.testing.assert_array_equal(td.multiply(x, x)._buffer, part * part)
        assert not np.shares_memory(td.maximum(x, x)._buffer, x._buffer)


def test_operations_that_differ_in_dims_share_a_program(waiting):
    for n in (5, 8, 11, 23):  # the first two are what the program of the others is made from
        x = td.constant(RANDOM.random((n, 3)).astype(np.float32))
        close(td.nn.softmax(x)._buffer, by_numpy(td.nn.softmax, x))
    made = [e.executable for e in _entries.values() if e.executable is not None]
    assert len(made) == 4
    assert made[-1].counters is made[-2].counters  # of one program


def test_attributes_of_several_types_are_told_apart(waiting):
    x = td.constant(RANDOM.random((4, 5)).astype(np.float32))
    a = td.matmul(x, x, transpose_a=True)
    b = td.matmul(x, x, transpose_b=True)
    assert a.shape == (5, 5) and b.shape == (4, 4)


def test_errors_are_those_of_numpy(waiting):
    x, labels = td.ones([3, 4]), td.constant([0, 4, 1])

    def losses():
        return td.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)

    for fails in (
        lambda: td.matmul(x, td.ones([3, 4])),
        lambda: x + td.ones([3, 5]),
        lambda: td.gather(x, [7]),
        losses,
    ):
        with pytest.raises(Exception) as found:
            fails()
        with disabled("eager_programs"), pytest.raises(Exception) as wanted:
            fails()
        assert type(found.value) is type(wanted.value)
        assert str(found.value).split("\n")[0] == str(wanted.value).split("\n")[0]


def test_gradients_of_eager_operations_are_programs(waiting):
    x = td.constant(RANDOM.random((5, 6)).astype(np.float32))
    w = td.Variable(RANDOM.random((6, 4)).astype(np.float32))

    def gradients():
        with td.GradientTape() as tape:
            tape.watch(x)
            loss = td.reduce_sum(td.nn.softmax(td.nn.relu(x @ w) + 1.0) ** 2)
        return tape.gradient(loss, [x, w])

    found = gradients()
    with disabled("eager_programs"):
        wanted = gradients()
    for a, b in zip(found, wanted, strict=True):
        close(a._buffer, b._buffer)
    assert programs() > 8
