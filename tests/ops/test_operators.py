"""Python's operators on tensors and variables, under TensorFlow's dtype rules."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.traced import run_traced, trace
from treadle.core.context import recording
from treadle.graph.builder import GraphBuilder

X = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]], np.float32)
I = np.array([7, -3, 2], np.int32)

FLOAT = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
INT = [*FLOAT[:3], *FLOAT[4:], operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("op", FLOAT, ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [2.5, 2, np.float32(1.5), X[1], X], ids=str)
def test_floats(op: Any, other: Any) -> None:
    """With a number, an array, a tensor or a variable on either side, eager and traced."""
    t = td.constant(X)
    expected = op(X, np.asarray(other, np.float32))
    reflected = op(np.asarray(other, np.float32), X)
    for value in (other, td.constant(other, td.float32), td.Variable(np.float32(other))):
        for left, right, wanted in ((t, value, expected), (value, t, reflected)):
            result = op(left, right)
            assert type(result) is td.Tensor
            assert result.dtype.np_dtype == wanted.dtype
            np.testing.assert_array_equal(result.numpy(), wanted)
    np.testing.assert_array_equal(run_traced(lambda x: op(x, other), [X])[0], expected)
    np.testing.assert_array_equal(run_traced(lambda x: op(other, x), [X])[0], reflected)


@pytest.mark.parametrize("op", INT, ids=lambda f: f.__name__)
def test_integers(op: Any) -> None:
    t = td.constant(I)
    assert t.dtype is td.int32
    np.testing.assert_array_equal(op(t, 3).numpy(), op(I, np.int32(3)))
    np.testing.assert_array_equal(op(3, t).numpy(), op(np.int32(3), I))
    assert op(t, 3).dtype in (td.int32, td.bool)


def test_integer_division_is_float64() -> None:
    assert (td.constant(7) / 2).dtype is td.float64
    assert (td.constant(7, td.int16) / td.constant(2, td.int16)).dtype is td.float32
    assert float(td.constant(7) / 2) == 3.5


def test_powers() -> None:
    t = td.constant(I)
    np.testing.assert_array_equal((t**2).numpy(), I**2)
    np.testing.assert_array_equal((t**3).numpy(), I**3)
    np.testing.assert_allclose((td.constant(X) ** 2.0).numpy(), X**2)
    np.testing.assert_allclose((2.0 ** td.constant(X)).numpy(), 2.0**X, rtol=1e-6)
    with pytest.raises(td.errors.InvalidArgumentError, match="negative integer powers"):
        t**-1


def test_unary_and_matmul() -> None:
    t = td.constant(X)
    np.testing.assert_array_equal((-t).numpy(), -X)
    np.testing.assert_array_equal((+t).numpy(), X)
    np.testing.assert_array_equal(abs(t).numpy(), abs(X))
    np.testing.assert_array_equal(round(t).numpy(), np.round(X))
    np.testing.assert_array_equal((~td.constant(I)).numpy(), ~I)
    np.testing.assert_array_equal((~(t > 0)).numpy(), ~(X > 0))
    np.testing.assert_allclose((t @ X.T).numpy(), X @ X.T)
    np.testing.assert_allclose((X.T @ t).numpy(), X.T @ X)


def test_bools_combine_logically() -> None:
    a, b = td.constant([True, True, False]), td.constant([True, False, False])
    assert (a & b).numpy().tolist() == [True, False, False]
    assert (a | b).numpy().tolist() == [True, True, False]
    assert (a ^ True).numpy().tolist() == [False, False, True]
    with pytest.raises(TypeError, match="bool"):
        a + b


def test_overflow_warns_of_nothing(recwarn: Any) -> None:
    big = td.constant(np.float32(3e38))
    assert np.isinf((big * big).numpy())
    assert np.isnan((big * big - big * big).numpy())
    assert np.isinf((big * 1e30).numpy())
    assert np.isneginf(td.math.log(td.constant(0.0)).numpy())
    assert not recwarn.list


def test_mixed_dtypes_are_refused_with_op_dtypes_and_line() -> None:
    a, b = td.constant(1), td.constant(1.0)
    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        a + b
    for word in ("add", "int32", "float32", "td.cast", "test_operators.py", "a + b"):
        assert word in str(caught.value)
    with pytest.raises(TypeError, match="multiply.*int32.*float32"):
        trace(lambda x: x * b, [np.int32([1])])


@pytest.mark.parametrize(
    "value", [1.5, "a", 1j, [0.5], np.float64(1.5), None, object()],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_values_that_do_not_fit_the_dtype(value: Any) -> None:
    for run in (lambda: td.constant(I) + value, lambda: value - td.constant(I)):
        with pytest.raises(TypeError):
            run()


def test_too_large_a_number() -> None:
    with pytest.raises(ValueError, match="add.*uint8.*300 is out of the range"):
        td.constant([1], td.uint8) + 300
    assert (td.constant([1], td.int32) + (2**31 - 2)).numpy() == 2**31 - 1
    with pytest.raises(ValueError, match="out of the range of int32"):
        td.constant([1]) + 2**40


def test_foreign_types_may_take_over() -> None:
    class Foreign:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert td.constant(1) + Foreign() == "mine"
    with pytest.raises(TypeError):
        td.constant(1.0) + Fraction(1, 2)


def test_equality_is_elementwise() -> None:
    t = td.constant([1, 2])
    assert (t == [1, 5]).numpy().tolist() == [True, False]
    assert (t != 2).numpy().tolist() == [True, False]
    assert (t == None) is False  # noqa: E711
    assert (t != "x") is True
    assert not bool(t == [1, 2, 3])
    assert bool(t != td.constant([1, 2, 3]))
    with pytest.raises(TypeError, match=r"unhashable.*ref\(\)"):
        hash(t)


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(td.errors.InvalidArgumentError, match=r"add.*f32\[2, 3\], f32\[4\]") as e:
        td.constant(X) + td.zeros([4])
    assert "test_operators.py" in str(e.value)


def test_division_by_zero() -> None:
    with pytest.raises(td.errors.InvalidArgumentError, match="floordiv.*division by zero"):
        td.constant(I) // 0
    with pytest.raises(td.errors.InvalidArgumentError, match="mod.*division by zero"):
        td.constant(I) % td.constant([1, 0, 2])
    assert np.isinf((td.constant(1.0) / 0.0).numpy())


# -- conversions ---------------------------------------------------------------------------------


def test_scalars_convert_to_python() -> None:
    assert (int(td.constant(3.7)), float(td.constant(3)), bool(td.constant([2]))) == (3, 3.0, True)
    assert complex(td.constant(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][td.constant(1)] == 20
    assert td.constant(5).item() == 5
    assert td.constant([[1, 2]]).tolist() == [[1, 2]]
    assert f"{td.constant(0.5):.2f}" == "0.50"


def test_what_needs_one_element() -> None:
    t = td.constant([1.0, 2.0])
    with pytest.raises(ValueError, match=r"ambiguous.*reduce_any"):
        bool(t)
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match=r"\(2,\)"):
            convert(t)
    with pytest.raises(TypeError, match="integer"):
        operator.index(td.constant(1.0))


def test_sequences() -> None:
    t = td.constant([[1, 2], [3, 4]])
    assert len(t) == 2
    assert [row.numpy().tolist() for row in t] == [[1, 2], [3, 4]]
    a, b = td.constant([5, 6])
    assert (int(a), int(b)) == (5, 6)
    assert 3 in t
    assert 9 not in t
    for use in (len, iter):
        with pytest.raises(TypeError, match="scalar"):
            use(td.constant(1))


def test_items_cannot_be_assigned() -> None:
    with pytest.raises(TypeError):
        td.constant([1, 2])[0] = 5  # type: ignore[index]


USES = {
    "bool": bool, "int": int, "float": float, "iter": lambda t: next(iter(t)),
    "if": lambda t: 1 if t > 0 else 2,
}  # fmt: skip


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_symbolic_values_have_no_python_value(use: Any) -> None:
    builder = GraphBuilder("step")
    x = builder.parameter(td.TensorSpec([], td.float32), "x")
    with recording(builder):
        y = x * 2.0
        with pytest.raises(TypeError) as caught:
            use(y)
    text = str(caught.value)
    assert "step" in text
    assert text.count("test_operators.py") == 2  # where it was made, and where it is used
    assert "td.function" in text or "td.cond" in text
    if use is not USES["iter"]:
        assert type(caught.value) is td.errors.OperatorNotAllowedInGraphError


def test_symbolic_length() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([None, 3]).with_fresh_symbols(), "x")
    with recording(builder):
        assert len(x[0]) == 3
        with pytest.raises(TypeError, match=r"td.shape\(x\)\[0\]"):
            len(x)


def test_operators_that_stand_ins_forward():
    names = td.Tensor.OVERLOADABLE_OPERATORS
    assert {"__add__", "__rsub__", "__getitem__", "__neg__", "__eq__", "__rmatmul__"} <= names
    assert all(callable(getattr(td.Tensor, name)) for name in names)
