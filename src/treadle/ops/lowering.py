"""How ops become loop nests: a rule gives one output element as an expression of input elements.

    Compute(rule, kind)   rule(call, index) -> kernel.ir.Expr for the output element at `index`
    Library(name)         a routine of the runtime's library (matmul, conv2d, ...)
    Rows(routine, plan)   a routine of the library that does rows one by one (argsort, solve, ...)
    Compaction(...)       a row for every true element of a mask
    SLICE                 a part whose bounds are data
    ProgramLoops(...)     plain loops that the runtime writes out in the program
    ListForm(...)         code of the runtime for lists
    Structure.X           a part of the program itself: a constant, a branch, a loop, a variable
    None                  no lowering: compiled programs call the op's NumPy implementation

A rule reads inputs through ``call.inputs[k](index)``. The runtime decides whether that is a load
from memory or, when the producer is fused into the same kernel, the producer's own expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import ANY, Dim
from treadle.core.spec import Spec, TensorSpec
from treadle.kernel.ir import Affine, Axis, Expr, Extent, Index, Iota, affine, apply, cast, const


class Access(Protocol):
    """Reads an element of an input."""

    def __call__(self, index: Sequence[Index], valid: Expr | None = None, fill: Any = 0) -> Expr:
        """The element at `index`; where `valid` is false `fill`, and memory is not touched."""


class LowerCall(Protocol):
    """What a rule sees of the node being lowered."""

    inputs: Sequence[Access]
    specs: Sequence[Spec]  # of the inputs
    out: Spec  # of the output being computed
    which: int  # its number, for ops with several outputs
    attrs: Mapping[str, Any]

    def axis(self, extent: Dim) -> Axis:
        """A new axis, to reduce over."""


Rule: TypeAlias = "Callable[[LowerCall, Sequence[Index]], Expr]"
Kind: TypeAlias = Literal["elementwise", "view", "gather", "draw", "reduce", "scan"]


@record(frozen=True)
class Compute:
    """A rule and its cost class, which fusion goes by.

    elementwise: reads each input once per output element, at the same (broadcast) position.
    view: only moves elements (transpose, slice, pad, concat): free to fold into its consumer.
    gather: reads at positions that depend on data.
    draw: computed from its position, and from a state that is read elsewhere.
    reduce: contains reductions; fused only with consumers over the same rows.
    scan: each element depends on those before it along an axis; read only where it is computed.
    """

    rule: Rule
    kind: Kind


@record(frozen=True)
class Library:
    """A routine of the runtime, by name; it receives the node's specs and attrs."""

    name: str


@record(frozen=True)
class RowCall:
    """How a routine that works on rows one by one computes a node.

    Attributes:
        rows: how many rows there are; threads share them.
        work: element operations in all, about.
        numbers: the routine's integers, by name.
        names: what names in the routine stand for: dtypes and constants.
        space: bytes of workspace that a thread needs.
        equal: pairs of dims that the routine takes to be equal; ``max(a, b), b`` for ``a <= b``.
        parts: into how many parts the rows may be shared out at most.
    """

    rows: Dim
    work: Dim
    numbers: Mapping[str, Dim]
    names: Mapping[str, DType | int]
    space: Dim = 0
    equal: Sequence[tuple[Dim, Dim]] = ()
    parts: int = 1 << 20


RowPlan: TypeAlias = (
    "Callable[[Sequence[TensorSpec], Sequence[TensorSpec], Mapping[str, Any]], RowCall | None]"
)


@record(frozen=True)
class _Routine:
    """A routine of the runtime (`module.function`).

    Attributes:
        plan: ``plan(input specs, output specs, attrs)``; None where NumPy is called instead.
    """

    routine: str
    plan: RowPlan

    def call(
        self, inputs: Sequence[Spec], outputs: Sequence[Spec], attrs: Mapping[str, Any]
    ) -> RowCall | None:
        """How the routine computes a node; None for what no routine takes."""
        specs = [s for s in (*inputs, *outputs) if isinstance(s, TensorSpec)]
        if any(ANY in s.dims or s.dtype.is_complex for s in specs):
            return None
        return self.plan(specs[: len(inputs)], specs[len(inputs) :], attrs)


@record(frozen=True)
class Rows(_Routine):
    """A routine that does each row, or matrix, of a batch.

    Attributes:
        fails: the routine has one more output, an int32 for each row, which is not 0 where the
            op refuses its input: its NumPy implementation then raises the error.
        eagerly: eager execution uses the routine, too, where there is one: its NumPy form is slow,
            or gives another of several right results.
    """

    fails: bool = False
    eagerly: bool = False


@record(frozen=True)
class Compaction:
    """A row for every true element of a mask, by kernels that count and store.

    Attributes:
        mask: the number of the input that is the mask, which is bool where there are kernels.
        rows: the number of the input whose rows they are; None: they are the positions of the
            elements, a number for each axis of the mask.
    """

    mask: int
    rows: int | None = None


class LoopRoutine(Enum):
    """Loops that the runtime knows to write out."""

    SCATTER = "scatter"  # zeros, to which rows are added
    SUM_SEGMENTS = "sum segments"  # zeros, to whose rows those of the data are added
    CHECK_DIM = "check dim"  # a number becomes the size of an axis


@record(frozen=True)
class ProgramLoops:
    """Loops of the runtime, by name.

    Attributes:
        numbers: whether they serve operands and results of rank 0.
        bools: whether they serve bools.
        halves: whether they serve floats of 16 bits; sums that NumPy adds up in float32 do not.
    """

    routine: LoopRoutine
    numbers: bool = False
    bools: bool = True
    halves: bool = True


class ListAction(Enum):
    """What an op does with a list; the runtime's code is found by it."""

    NEW = "new"
    PUSH = "push"
    GET = "get"
    SET = "set"
    LENGTH = "length"
    TRUNCATE = "truncate"
    EXTEND = "extend"
    STACK = "stack"
    UNSTACK = "unstack"
    PACK = "pack"
    UNPACK = "unpack"
    CONCAT = "concat"
    SPLIT = "split"
    JOIN = "join"
    SCATTER = "scatter"
    ADD = "add"


@record(frozen=True)
class ListForm:
    """An op on lists.

    Attributes:
        action: what it does.
        result: "made" for a new list, "changed" for the first input, changed, or "read" for what
            was read from lists.
        reads_elements: whether its result depends on elements of a list among its inputs.
        puts: whether it stores its last input as one element of the list.
        ragged: its lists are kept such that elements may differ in shape.
        native: whether compiled programs have code for it; all lists of a graph with another op
            are Python objects.
    """

    action: ListAction
    result: Literal["made", "changed", "read"]
    reads_elements: bool = True
    puts: bool = False
    ragged: bool = False
    native: bool = True


class Structure(Enum):
    """What a node is to a program that neither a kernel nor a routine computes it for."""

    CONSTANT = "constant"  # a literal
    SIZE = "size"  # gives a symbol its value
    READ = "read"  # reads a variable
    ASSIGN = "assign"  # writes one
    COND = "cond"  # runs one of its regions
    WHILE = "while"  # runs its regions in turn


class Slice(Enum):
    """A part of an array whose bounds are data, which `Op.part` describes: kernels know them as
    dims."""

    SLICE = "slice"


SLICE = Slice.SLICE


Lowering: TypeAlias = (
    Compute | Library | Rows | Compaction | Slice | ProgramLoops | ListForm | Structure
)


def elementwise(fn: str) -> Compute:
    """Lowering of an op that is one function of the kernel table, with broadcasting."""

    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        return apply(fn, *broadcast_inputs(call, index))

    return Compute(rule, "elementwise")


def elementwise_rule(build: Callable[..., Expr]) -> Compute:
    """Lowering of an elementwise op from ``build(call, *elements)``."""

    def rule(call: LowerCall, index: Sequence[Index]) -> Expr:
        return build(call, *broadcast_inputs(call, index))

    return Compute(rule, "elementwise")


def broadcast_inputs(call: LowerCall, index: Sequence[Index]) -> list[Expr]:
    """The element of every input that belongs to an output position, under broadcasting."""
    return [
        access(broadcast_index(spec.dims, call.out.dims, index))
        for access, spec in zip(call.inputs, call.specs, strict=True)
    ]


def broadcast_index(
    dims: Sequence[Dim], out_dims: Sequence[Dim], index: Sequence[Index]
) -> list[Index]:
    """The index into an array of `dims` broadcast to `out_dims`."""
    tail = list(index)[len(index) - len(dims) :]
    outer = list(out_dims)[len(out_dims) - len(dims) :]
    # A dim of 1 that stays 1 keeps its index: it is 0 anyway.
    return [
        Affine((), 0) if dim == 1 and out != 1 else i
        for dim, out, i in zip(dims, outer, tail, strict=True)
    ]


def index_expr(index: Index) -> Expr:
    """An index as an int64 expression."""
    if isinstance(index, Expr):
        return cast(index, dtypes.int64)
    total: Expr | None = None
    for axis, coefficient in index.terms:
        term: Expr = Iota(axis)
        if coefficient != 1:
            term = apply("mul", term, dim_expr(coefficient))
        total = term if total is None else apply("add", total, term)
    if total is None:
        return dim_expr(index.offset)
    return total if index.offset == 0 else apply("add", total, dim_expr(index.offset))


def dim_expr(dim: Dim) -> Expr:
    """A dim as an int64 expression."""
    return const(dim, dtypes.int64) if isinstance(dim, int) else Extent(dim)


def add_index(index: Index, offset: Dim) -> Index:
    """``index + offset``."""
    if isinstance(index, Affine):
        return affine(index.terms, index.offset + offset)
    return apply("add", index_expr(index), dim_expr(offset))


def scale_index(index: Index, factor: Dim) -> Index:
    """``index * factor``."""
    if isinstance(index, Affine):
        return affine([(a, c * factor) for a, c in index.terms], index.offset * factor)
    return apply("mul", index_expr(index), dim_expr(factor))


def sum_index(a: Index, b: Index) -> Index:
    """``a + b``."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        return affine((*a.terms, *b.terms), a.offset + b.offset)
    return apply("add", index_expr(a), index_expr(b))


def divide_index(index: Index, divisor: Dim) -> tuple[Index, Index]:
    """``(index // divisor, index % divisor)`` of a non-negative index."""
    if divisor == 1:
        return index, Affine((), 0)
    if (
        isinstance(index, Affine)
        and not index.terms
        and isinstance(index.offset, int)
        and isinstance(divisor, int)
    ):
        return Affine((), index.offset // divisor), Affine((), index.offset % divisor)
    value, by = index_expr(index), dim_expr(divisor)
    return apply("floordiv", value, by), apply("mod", value, by)
