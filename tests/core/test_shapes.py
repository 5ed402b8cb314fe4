import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.core import shapes
from treadle.core.errors import InvalidArgumentError
from treadle.core.shapes import ANY, SymbolicDim, TensorShape, broadcast, compound, substitute

B, N = SymbolicDim.symbol("B"), SymbolicDim.symbol("N")


def test_expressions_have_a_normal_form():
    assert B * 10 + 1 == 1 + 10 * B
    assert (B + N) * (B - N) == B * B - N * N
    assert B - B == 0
    assert (B * 10) // 5 == B * 2
    assert (B * N) // N == B
    assert (B * 4) % 2 == 0
    assert B // B == 1
    assert hash(B * N) == hash(N * B)
    assert repr(B * 10 + 1) == "B*10 + 1"


@st.composite
def expressions(draw, depth=3):
    if depth == 0:
        return draw(st.one_of(st.sampled_from([B, N]), st.integers(-5, 9)))
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    operation = draw(st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "max", "min"]))
    return (operation, a, b)


def build(tree, leaf):
    if not isinstance(tree, tuple):
        return leaf(tree)
    operation, a, b = tree[0], build(tree[1], leaf), build(tree[2], leaf)
    if operation in ("floordiv", "mod"):
        if isinstance(b, int) and b <= 0:
            b = 3
        return a // b if operation == "floordiv" else a % b
    if operation in ("max", "min"):
        return compound(operation, a, b)
    return {"add": a + b, "sub": a - b, "mul": a * b}[operation]


@given(expressions(), st.integers(0, 9), st.integers(0, 9))
def test_evaluation_agrees_with_integer_arithmetic(tree, b, n):
    env = {"B": b, "N": n}
    value = build(tree, lambda leaf: leaf)
    try:
        expected = build(tree, lambda leaf: substitute(leaf, env))
        actual = substitute(value, env)
    except ZeroDivisionError:
        return
    if _divides_by_symbol(tree):
        return  # a divisor that is only positive as a symbol was replaced above
    assert actual == expected


def _divides_by_symbol(tree):
    if not isinstance(tree, tuple):
        return False
    if tree[0] in ("floordiv", "mod") and not isinstance(tree[2], int):
        return True
    return _divides_by_symbol(tree[1]) or _divides_by_symbol(tree[2])


def test_evaluate_names_a_missing_symbol():
    assert (B * 2 + N).evaluate({"B": 3, "N": 1}) == 7
    with pytest.raises(KeyError, match="N"):
        (B + N).evaluate({"B": 1})


def test_symbols_of_compound_expressions():
    assert ((B + 1) // 2 * N).symbols() == {"B", "N"}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((2, 3), (3,), (2, 3)),
        ((2, 1), (1, 5), (2, 5)),
        ((), (4,), (4,)),
        ((B, 3), (3,), (B, 3)),
        ((B, 1), (1, N), (B, N)),
        ((B,), (7,), (7,)),
        ((1,), (B,), (B,)),
        ((0,), (1,), (0,)),
    ],
)
def test_broadcast(left, right, expected):
    assert broadcast(left, right) == expected
    assert broadcast(right, left) == expected


def test_broadcast_error_names_the_shapes():
    with pytest.raises(InvalidArgumentError, match=r"\(2,\) and \(3,\)"):
        broadcast((2,), (3,))


def test_tensor_shape_reads_like_tensorflow():
    shape = TensorShape([None, 128])
    assert shape.as_list() == [None, 128]
    assert shape.exact == (ANY, 128)
    assert [d.value for d in shape.dims] == [None, 128] and TensorShape(None).dims is None
    assert shape.rank == len(shape) == 2
    assert not shape.is_fully_defined()
    assert shape == [None, 128] and shape == (None, 128)
    assert shape[1] == 128 and shape[0] is None and list(shape[1:]) == [128]
    assert str(shape) == "(None, 128)" and repr(shape) == "TensorShape([None, 128])"
    assert TensorShape([2, 3]).num_elements() == 6 and shape.num_elements() is None
    assert TensorShape([2]).concatenate([3]) == [2, 3] == TensorShape([2]) + [3]
    assert shape.is_compatible_with([5, 128]) and not shape.is_compatible_with([5, 127])


@pytest.mark.parametrize(
    ("bad", "error"), [([-1], ValueError), (["x"], TypeError), ([True], TypeError)]
)
def test_bad_dims_are_refused(bad, error):
    with pytest.raises(error):
        TensorShape(bad)


def test_fresh_symbols_differ():
    assert shapes.fresh_symbol() != shapes.fresh_symbol()
