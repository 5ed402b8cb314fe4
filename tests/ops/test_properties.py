"""What the records say of ops beside their rules is what the NumPy implementations do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle  # noqa: F401  (registers the ops)
from treadle.core import dtypes, errors
from treadle.core.spec import TensorSpec
from treadle.kernel.functions import FUNCTIONS
from treadle.ops.control import checks  # noqa: F401
from treadle.ops.indexing import additions  # noqa: F401
from treadle.ops.properties import Part, PartKind, PartUse, Refusal, Relation
from treadle.ops.registry import OPS, Op, op_on_part

VALUES = np.array([-3.5, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf, -np.inf, np.nan], np.float32)
INTEGERS = np.array([-7, -1, 0, 1, 2, 100], np.int32)
BOOLS = np.array([False, True])


def operands(op: Op) -> list[np.ndarray[Any, Any]]:
    """Arrays of the kinds that an elementwise op takes."""
    found = []
    for array in (VALUES, INTEGERS, BOOLS, VALUES.astype(np.complex64)):
        assert op.eager is not None
        try:
            with np.errstate(all="ignore"):
                op.eager(*[array] * (1 if _is_unary(op) else 2))
        except (TypeError, errors.InvalidArgumentError):  # integers to negative powers
            continue
        found.append(array)
    assert found
    return found


def _is_unary(op: Op) -> bool:
    return "involution" in op.tags


def having(field: str) -> list[Any]:
    return [pytest.param(op, id=op.name) for op in OPS.values() if getattr(op, field)]


def tagged(tag: str) -> list[Any]:
    return [pytest.param(op, id=op.name) for op in OPS.values() if tag in op.tags]


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """NaNs are all one: what a processor makes of one is another on the next."""
    plain = [np.where(x != x, x.dtype.type(0), x) for x in (a, b)]
    alike = (np.isnan(a) == np.isnan(b)).all() if a.dtype.kind in "fc" else True
    return bool(a.dtype == b.dtype and alike and plain[0].tobytes() == plain[1].tobytes())


@pytest.mark.parametrize("op", having("neutral"))
def test_neutral_numbers_change_no_bit(op: Op) -> None:
    assert op.neutral is not None
    for x in operands(op):
        if x.dtype.kind not in "fi":  # the rule leaves constants of other kinds alone
            continue
        for position, number in enumerate(op.neutral):
            if number is None:
                continue
            other = np.full_like(x, number)
            with np.errstate(all="ignore"):
                given = (other, x) if position == 0 else (x, other)
                assert op.eager is not None
                assert same_bits(np.asarray(op.eager(*given)), x)


@pytest.mark.parametrize("op", tagged("involution"))
def test_an_involution_done_twice_is_nothing(op: Op) -> None:
    assert op.eager is not None
    for x in operands(op):
        assert same_bits(np.asarray(op.eager(np.asarray(op.eager(x)))), x)


@pytest.mark.parametrize("op", tagged("idempotent"))
def test_an_idempotent_op_of_one_value_is_that(op: Op) -> None:
    assert op.eager is not None
    for x in operands(op):
        assert same_bits(np.asarray(op.eager(x, x)), x)


@pytest.mark.parametrize("op", tagged("as_is"))
def test_what_is_given_as_it_is(op: Op) -> None:
    assert op.eager is not None
    for x in (VALUES, INTEGERS, BOOLS):
        assert same_bits(np.asarray(op.eager(x)), x)


@pytest.mark.parametrize("op", having("relation"))
def test_comparisons_ask_for_their_relation(op: Op) -> None:
    python = {
        Relation.LESS: lambda a, b: a < b,
        Relation.LESS_EQUAL: lambda a, b: a <= b,
        Relation.GREATER: lambda a, b: a > b,
        Relation.GREATER_EQUAL: lambda a, b: a >= b,
        Relation.EQUAL: lambda a, b: a == b,
        Relation.NOT_EQUAL: lambda a, b: a != b,
    }
    assert op.relation is not None and op.eager is not None
    a, b = np.meshgrid(INTEGERS, INTEGERS)
    asked = op.eager(a, b)
    assert (asked == python[op.relation](a, b)).all()
    assert (asked == python[op.relation.mirrored](b, a)).all()
    assert op.relation.holds_of_equals == bool(op.eager(INTEGERS[:1], INTEGERS[:1])[0])
    assert op.relation.is_less == (op.relation.is_order and bool(op.eager(*INTEGERS[:2])))


@pytest.mark.parametrize("op", having("on_dims"))
def test_sizes_are_computed_as_the_op_does(op: Op) -> None:
    assert op.on_dims is not None and op.eager is not None
    for a in INTEGERS.tolist():
        for b in INTEGERS.tolist():
            assert op.on_dims(a, b) == int(op.eager(np.int64(a), np.int64(b)))


SHAPES = [(1, 3), (3, 1), (2, 3), (1, 1)]
ATTRS: dict[str, list[dict[str, Any]]] = {
    "broadcast_to": [{"shape": s} for s in SHAPES],
    "reshape": [{"shape": s} for s in (*SHAPES, (3,), (1,))],
    "strided_slice": [
        {"begin": (0, b), "size": s, "strides": (1, 1)} for s in SHAPES for b in (0, 1)
    ],
}
REDUCTIONS = [{"axis": a, "keepdims": k} for a in ((), (0,), (1,), (0, 1)) for k in (False, True)]


@pytest.mark.parametrize("op", having("same_elements"))
def test_where_a_result_has_the_elements_of_the_input(op: Op) -> None:
    assert op.same_elements is not None and op.eager is not None
    found = 0
    for shape in SHAPES:
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for attrs in REDUCTIONS if "reduces" in op.tags else ATTRS[op.name]:
            dims = op.same_elements(shape, attrs)
            if dims is None:
                continue
            found += 1
            result = np.asarray(op.eager(x, **attrs))
            assert result.shape == dims
            assert (result.ravel() == x.ravel()).all()
    assert found


@pytest.mark.parametrize("op", having("of_nothing"))
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
def test_reductions_of_the_neutral_number(op: Op, dtype: type) -> None:
    assert op.of_nothing is not None and op.eager is not None
    x = np.array([1, 0, 1], dtype)
    extended = np.append(x, op.of_nothing(x.dtype)).astype(dtype)
    attrs = {"axis": (0,), "keepdims": False}
    spec = TensorSpec((3,), dtypes.from_numpy(np.dtype(dtype)))
    try:
        op.infer(spec, **attrs)
    except TypeError:  # eager code must refuse it as well
        with pytest.raises(TypeError):
            op.eager(x, **attrs)
        return
    plain = op.eager(x, **attrs)
    scale = 4 / 3 if op.name == "reduce_mean" else 1  # whose count is another one
    if dtype is not np.int32 or scale == 1:
        assert np.allclose(op.eager(extended, **attrs) * scale, plain)


# How each kind of part is read from an array of these dims: (other inputs, attributes, dims).
X = np.arange(12, dtype=np.float32).reshape(4, 3)
PARTS: dict[PartKind, tuple[list[Any], dict[str, Any], Any]] = {
    PartKind.ELEMENT: ([np.int64(2), np.int64(-1)], {}, lambda x: x[2, -1]),
    PartKind.INDEX: ([np.int64(-3)], {"axis": 0}, lambda x: x[-3]),
    PartKind.SLICE: ([], {"begin": (1, 0), "strides": (2, 1)}, lambda x: x[1:4:2, 0:2]),
    PartKind.DYNAMIC_SLICE: (
        [np.int64(1), np.int64(3)], {"axis": 0, "given": (True, True, False)}, lambda x: x[1:3],
    ),
    PartKind.ROWS: ([np.array([[3], [0]])], {}, lambda x: x[[3, 0]]),
    PartKind.SEGMENTS: ([np.array([2, 0])], {}, lambda x: x[[2, 0]]),
}  # fmt: skip


@pytest.mark.parametrize("op", having("part"))
def test_ops_do_what_their_records_say_with_parts(op: Op) -> None:
    part = op.part
    assert isinstance(part, Part) and op.eager is not None
    assert op_on_part(part.kind, part.use) is op
    positions, attrs, taken = PARTS[part.kind]
    data = np.asarray(taken(X + 100))
    if part.use is PartUse.READ:
        assert part.data is None
        if part.kind is PartKind.SLICE:
            attrs = {**attrs, "size": data.shape}
        assert (op.eager(X, *positions, **attrs) == taken(X)).all()
        return
    if part.use is PartUse.PLACE:
        inputs, base = [*positions], np.zeros_like(X)
        sizes = {
            PartKind.INDEX: {"size": 4}, PartKind.SLICE: {"shape": X.shape},
            PartKind.DYNAMIC_SLICE: {"size": 4}, PartKind.ROWS: {"shape": X.shape},
            PartKind.SEGMENTS: {"num_segments": 4},
        }  # fmt: skip
        attrs = {**attrs, **sizes[part.kind]}
    else:
        inputs, base = [X, *positions], X
    assert part.data is not None
    inputs.insert(len(inputs) if part.data == -1 else part.data, data)
    wanted = base.copy()
    numbers = np.asarray(taken(np.arange(12).reshape(4, 3))).ravel()
    if part.use is PartUse.SET:
        wanted.ravel()[numbers] = data.ravel()
    else:
        combine = FUNCTIONS[part.use.combine].reference
        wanted.ravel()[numbers] = combine(wanted.ravel()[numbers], data.ravel())
    assert (op.eager(*inputs, **attrs) == wanted).all()


@pytest.mark.parametrize("op", having("refuses"))
def test_what_is_refused_raises_in_eager_execution(op: Op) -> None:
    if op.refuses in (Refusal.INTERVAL, Refusal.OWN_POSITION) or op.name == "index_add":
        return  # random numbers have tests of their own; passes write the others behind checks
    assert op.eager is not None and op.refuses is not None
    one = np.int64(1)
    bad: dict[Refusal, tuple[list[Any], dict[str, Any]]] = {
        Refusal.DIVISOR: ([one, np.int64(0)], {}),
        Refusal.EXPONENT: ([one, np.int64(-1)], {}),
        Refusal.WRAPPING_POSITION: ([X, np.int64(4)], {"axis": 0}),
        Refusal.ELEMENT_POSITIONS: ([X, np.int64(0), np.int64(-4)], {}),
        Refusal.ROW_OF_POSITIONS: ([X, np.array([[4]])], {}),
    }
    if op.refuses is Refusal.POSITION:
        return  # `gather` and the losses: their cases are in test_refusals.py
    inputs, attrs = bad[op.refuses]
    if op.part is not None and op.part.use is PartUse.SET:
        inputs = [*inputs, np.float32(0)]
    with pytest.raises(Exception, match=r".+"):
        op.eager(*inputs, **attrs)
