"""The loop-nest IR: axes, buffers, scalar expressions, reductions and stores. Pure data.

A `Kernel` computes each of its stores for every point of the axes that the store's index
names. Nodes are immutable and hash-consed: structurally equal nodes are one object, so
expressions form a DAG and are compared and memoised by identity.

A reduction is an expression: ``Reduce("sum", (j,), v)`` is v summed over axis j, and may be used
again under the same axis: softmax over j is ``e / Reduce("sum", (j,), e)``. A scan varies along
its own axis: ``Scan("add", j, v)`` is at each j the sum of v up to there.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, field, fields
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from treadle.core import dtypes, locks
from treadle.core.dtypes import DType
from treadle.core.records import record
from treadle.core.shapes import Dim, SymbolicDim, dim_symbols
from treadle.kernel.functions import result_dtype

_nodes: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_lock = locks.lock()


class _Interned(type):
    """Building a node that already exists gives the existing one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        defaults = _defaults.get(cls)
        if defaults is not None and not kwargs:  # most nodes exist: they are not built again
            known = _nodes.get((cls, args + defaults[len(args) :]))
            if known is not None:
                return known
        node = super().__call__(*args, **kwargs)
        if defaults is None:
            _defaults[cls] = _defaults_of(cls)
        key = (cls, _key_of(cls)(node))
        with _lock:
            return _nodes.setdefault(key, node)


@functools.cache
def _key_of(cls: Any) -> Callable[[Any], Any]:
    """A function that gives the values of the fields that tell nodes of a class apart."""
    return attrgetter(*(f.name for f in fields(cls) if f.compare))


# The arguments of a class where they are left out, known from its first node on. They begin with
# a `MISSING` that no key has where the arguments as they are do not tell the nodes apart.
_defaults: dict[type, tuple[Any, ...]] = {}


def _defaults_of(cls: Any) -> tuple[Any, ...]:
    arguments = [f for f in fields(cls) if f.init]
    if len(arguments) < 2 or not all(f.compare for f in arguments):
        return (MISSING,) * (len(arguments) + 2)
    return tuple(f.default for f in arguments)


@record(frozen=True, eq=False, repr=False)
class Node(metaclass=_Interned):
    """Base of the hash-consed nodes; equality is identity."""

    text: ClassVar[Callable[[Node], str]]  # set by `printer`

    def __repr__(self) -> str:
        return Node.text(self)


@record(frozen=True, eq=False, repr=False)
class Axis(Node):
    """A loop: takes the values 0 .. extent-1."""

    name: str
    extent: Dim


@record(frozen=True, eq=False, repr=False)
class Buffer(Node):
    """A parameter: a contiguous row-major array. Views are index maps, not layouts."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...]


@record(frozen=True, eq=False, repr=False)
class Affine(Node):
    """The index ``sum(coefficient * axis) + offset``."""

    terms: tuple[tuple[Axis, Dim], ...]
    offset: Dim = 0

    def coefficient(self, axis: Axis) -> Dim:
        return next((c for a, c in self.terms if a is axis), 0)


@record(frozen=True, eq=False, repr=False)
class Expr(Node):
    """A scalar value at each point of its free axes."""

    dtype: DType = field(init=False, compare=False)
    axes: frozenset[Axis] = field(init=False, compare=False)  # the free axes

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    def _set(self, dtype: DType, axes: frozenset[Axis]) -> None:
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "axes", axes)


Index: TypeAlias = Affine | Expr


@record(frozen=True, eq=False, repr=False)
class Const(Expr):
    """A constant; build it with `const`. `bits` tells -0.0 from 0.0 and 1 from True."""

    value: float | int | bool = field(compare=False)  # NaN != NaN: `bits` is compared
    of: DType
    bits: bytes

    def __post_init__(self) -> None:
        self._set(self.of, frozenset())


def const(value: Any, dtype: DType) -> Const:
    """The constant `value` rounded or wrapped to `dtype`."""
    exact = np.asarray(value).astype(dtype.np_dtype)
    item = exact.item() if dtype.kind != "f" else float(exact.astype(np.float64))
    return Const(item, dtype, exact.tobytes())


@record(frozen=True, eq=False, repr=False)
class Iota(Expr):
    """The position along an axis, as an integer."""

    axis: Axis
    of: DType = dtypes.int64

    def __post_init__(self) -> None:
        self._set(self.of, frozenset({self.axis}))


@record(frozen=True, eq=False, repr=False)
class Extent(Expr):
    """The run-time value of a dim."""

    dim: Dim
    of: DType = dtypes.int64

    def __post_init__(self) -> None:
        self._set(self.of, frozenset())


@record(frozen=True, eq=False, repr=False)
class Load(Expr):
    """An element of a buffer; build it with `load`.

    Each index is affine in the axes or an integer expression (a gather; clamped to the buffer).
    Where `valid` is false the value is `fill` and memory is not touched.
    """

    buffer: Buffer
    index: tuple[Index, ...]
    valid: Expr | None = None
    fill: Const | None = None

    def __post_init__(self) -> None:
        axes = [index_axes(i) for i in self.index]
        if self.valid is not None:
            axes.append(self.valid.axes)
        self._set(self.buffer.dtype, frozenset().union(*axes))

    @locks.cached_property
    def children(self) -> tuple[Expr, ...]:
        found = tuple(i for i in self.index if isinstance(i, Expr))
        return found if self.valid is None else (*found, self.valid)


@record(frozen=True, eq=False, repr=False)
class Apply(Expr):
    """A function of the table in `functions`; build it with `apply` or `cast`."""

    fn: str
    args: tuple[Expr, ...]
    of: DType | None = None  # the target of a cast

    def __post_init__(self) -> None:
        operands = tuple(a.dtype for a in self.args)
        dtype = result_dtype(self.fn, operands)
        self._set(self.of or dtype, frozenset().union(*(a.axes for a in self.args)))

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.args


REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


@record(frozen=True, eq=False, repr=False)
class Reduce(Expr):
    """`value` reduced over `axes_reduced`, in an order that is fixed for given extents.

    sum and prod keep the dtype (float16 and bfloat16 accumulate in float32); max and min
    propagate NaN; argmax and argmin give the first position along their single axis. An empty
    reduction gives the neutral element (argmax and argmin: 0).
    """

    op: str
    over: tuple[Axis, ...]
    value: Expr
    of: DType | None = None  # the integer dtype of argmax and argmin, default int64

    def __post_init__(self) -> None:
        default = dtypes.int64 if self.op in ("argmax", "argmin") else self.value.dtype
        if self.of is default:  # one form of one meaning
            object.__setattr__(self, "of", None)
        self._set(self.of or default, self.value.axes - frozenset(self.over))

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.value,)


SCANS = ("add", "mul", "max", "min", "logaddexp")


@record(frozen=True, eq=False, repr=False)
class Scan(Expr):
    """`value` combined with all values before it along `axis`; it has the axis, whether or not
    `value` varies along it.

    The values are taken one after the other from the first position to the last, so the result has
    the same bits everywhere. `reverse` begins at the last position. An `exclusive` scan leaves the
    value at each position itself out, and begins with the neutral element (0 for sums). `op` is a
    function of the table; float16 and bfloat16 accumulate in float32.
    """

    op: str
    axis: Axis
    value: Expr
    exclusive: bool = False
    reverse: bool = False

    def __post_init__(self) -> None:
        self._set(self.value.dtype, self.value.axes | {self.axis})

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.value,)


COMBINES = ("set", "add", "mul", "div", "max", "min")


@record(frozen=True, eq=False, repr=False)
class Store(Node):
    """Writes `value` to ``buffer[index]`` for every point of the index's axes.

    Each index is affine in the axes or an integer expression (a scatter); where one of these lies
    outside the buffer nothing is written. `combine` is "set", or the function of the element that
    is there and the value whose result is written.

    Where several points name one element they are taken one after the other, in row-major order of
    the kernel's axes: of those that are set the last stays, and sums have one order (16-bit floats
    are rounded after each). `unique` promises that no two points name the same element.
    """

    buffer: Buffer
    index: tuple[Index, ...]
    value: Expr
    combine: str = "set"
    unique: bool = False

    @property
    def axes(self) -> frozenset[Axis]:
        return frozenset().union(*(index_axes(i) for i in self.index))

    @property
    def computed(self) -> tuple[Expr, ...]:
        """The indices that are expressions."""
        return tuple(i for i in self.index if isinstance(i, Expr))

    @property
    def roots(self) -> tuple[Expr, ...]:
        """The expressions that the store needs: the computed indices and the value."""
        return (*self.computed, self.value)


@record(frozen=True, eq=False, repr=False)
class Kernel(Node):
    """Loops `axes`, parameters `buffers` in call order, and the stores.

    A buffer that is both loaded and stored is updated in place: its loads must read the
    element being stored. One that is stored into at computed places, or with a combination, is used
    nowhere else in the kernel. A *segmented* kernel has one axis and runs its body over many groups
    of buffers of different lengths in one launch (an optimizer step over all parameters): its
    buffers have the axis's extent or are scalars. A kernel of *few* points is one thread's work for
    all values of its symbols. A *streaming* kernel moves more than caches hold: its stores may go
    past them. A *blocked* kernel is run on blocks of a matrix: a call does a range of positions of
    the last axis at a range of the others, taken as one row-major axis.
    """

    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    stores: tuple[Store, ...]
    segmented: bool = False
    streaming: bool = False
    few: bool = False
    blocked: bool = False

    @locks.cached_property
    def roots(self) -> list[Expr]:
        """The expressions that the stores need."""
        return [e for s in self.stores for e in s.roots]

    @locks.cached_property
    def exprs(self) -> tuple[Expr, ...]:
        """Every expression of the kernel, children first, each once."""
        return tuple(postorder(self.roots))

    @locks.cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that the kernel's `dims` argument must give, in order."""
        found: dict[str, None] = {}
        for dim in self._dims():
            found.update(dict.fromkeys(sorted(dim_symbols(dim))))
        return tuple(found)

    def _dims(self) -> Iterator[Dim]:
        yield from (a.extent for a in self.axes)
        for buffer in self.buffers:
            yield from buffer.shape
        indices: list[Index] = [i for s in self.stores for i in s.index]
        for expr in self.exprs:
            if isinstance(expr, Extent):
                yield expr.dim
            elif isinstance(expr, Load):
                indices += expr.index
        for index in indices:
            if isinstance(index, Affine):
                yield index.offset
                yield from (c for _, c in index.terms)

    @locks.cached_property
    def inputs(self) -> tuple[Buffer, ...]:
        loaded = {e.buffer for e in self.exprs if isinstance(e, Load)}
        loaded |= {s.buffer for s in self.stores if s.combine != "set"}
        return tuple(b for b in self.buffers if b in loaded)

    @locks.cached_property
    def outputs(self) -> tuple[Buffer, ...]:
        stored = {s.buffer for s in self.stores}
        return tuple(b for b in self.buffers if b in stored)


def index_axes(index: Index) -> frozenset[Axis]:
    return index.axes if isinstance(index, Expr) else frozenset(a for a, _ in index.terms)


def as_index(value: Any) -> Index:
    """An index from an Axis, a dim, an Affine or an integer Expr."""
    if isinstance(value, Affine | Expr):
        return value
    if isinstance(value, Axis):
        return Affine(((value, 1),))
    if isinstance(value, int | SymbolicDim):
        return Affine((), value)
    raise TypeError(f"{value!r} is not an index")


def affine(terms: Sequence[tuple[Axis, Dim]], offset: Dim = 0) -> Affine:
    """``sum(coefficient * axis) + offset`` in normal form: one term an axis, none zero."""
    total: dict[Axis, Dim] = {}
    for axis, coefficient in terms:
        total[axis] = total.get(axis, 0) + coefficient
    kept = sorted(((a, c) for a, c in total.items() if c != 0), key=lambda t: t[0].name)
    return Affine(tuple(kept), offset)


def load(buffer: Buffer, *index: Any, valid: Expr | None = None, fill: Any = 0) -> Load:
    """``buffer[index]``, or `fill` where `valid` is false."""
    indices = tuple(as_index(i) for i in index)
    return Load(buffer, indices, valid, None if valid is None else const(fill, buffer.dtype))


def apply(fn: str, *args: Expr) -> Apply:
    """``fn(*args)``; TypeError when the operands do not fit the function."""
    return Apply(fn, args)


def cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype is dtype else Apply("cast", (value,), dtype)


def store(
    buffer: Buffer, *index: Any, value: Expr, combine: str = "set", unique: bool = False
) -> Store:
    return Store(buffer, tuple(as_index(i) for i in index), value, combine, unique)


def postorder(
    roots: Sequence[Expr],
    known: Callable[[Expr], bool] | None = None,
    leaf: Callable[[Expr], bool] | None = None,
) -> list[Expr]:
    """Every expression below `roots`, children first, each once; safe for deep DAGs.

    Args:
        known: whether an expression is left out, with what only it needs.
        leaf: whether the children of an expression are left out.
    """
    done: dict[Expr, None] = {}
    above: set[Expr] = set()  # their children are done when they come up again
    stack = list(reversed(roots))
    while stack:
        expr = stack.pop()
        if expr in done:
            continue
        if expr in above:
            done[expr] = None
        elif known is None or not known(expr):
            children = () if leaf is not None and leaf(expr) else expr.children
            if not children:
                done[expr] = None
                continue
            above.add(expr)
            stack.append(expr)
            stack += [c for c in reversed(children) if c not in done]
    return list(done)
