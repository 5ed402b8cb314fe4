"""Python numbers whose value is only known when the program runs.

A `SymbolicNumber` takes the place of a Python bool, int, float or complex (or NumPy scalar) while a
function is traced, and computes as that type does: ``/`` of ints gives a float, ``//`` and ``%``
round down, comparisons give a symbolic bool. Between tensors it is what a Python number is: it is
computed in int64 or double precision, then takes the dtype of the tensor that it meets. What needs
the value itself (a list index, a dict key, text, a Python ``if``) raises a `ValueNeededError`.

    n = symbolic_number(tensor)          # a rank-0 int64, float64, bool or complex128 tensor
    x * (n / 2)                          # as with the Python number
    convert_to_tensor(n, td.float32)     # the tensor behind it
    apply(math.sin, n)                   # a function of the `math` module

Ints know the interval that they lie in, as far as their source does: a comparison that the interval
decides, or a difference that is the same for all values, is a Python value.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.context import context
from treadle.core.dtypes import DType
from treadle.core.interrupts import is_mode
from treadle.core.origin import at, user_origin
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.control.marks import mark
from treadle.ops.conversion import convert_to_tensor, register_weak, to_array
from treadle.ops.elementwise.casting import cast
from treadle.ops.numbers.number_tables import (
    CONJUGATE,
    IMAG,
    REAL,
    SELECT,
    SUM,
    Interval,
    Operation,
    operation_of,
)
from treadle.ops.numbers.terms import Term

INT64 = (-(2**63), 2**63 - 1)
_INT32 = (-(2**31), 2**31 - 1)
_WIDE: dict[str, DType] = {
    "b": dtypes.bool, "i": dtypes.int64, "u": dtypes.int64, "f": dtypes.float64,
    "c": dtypes.complex128,
}  # fmt: skip
_MOST_VALUES = 1 << 20  # of one number, that are computed while tracing


class ValueNeededError(TypeError):
    """The value of a number was asked for that only the running program knows."""


class Domain:
    """Positions that numbers have values at, such as the iterations of a loop.

    Attributes:
        size: how many there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size

    def number(self) -> Any:
        """Which one it is, a Python int that may be symbolic."""
        raise NotImplementedError

    def position(self) -> Tensor:
        """Which one it is when the program runs, an int64."""
        return convert_to_tensor(self.number(), dtypes.int64)


class Source:
    """Where a number comes from that is not computed from others.

    Attributes:
        values: the value at each position of `domain`, where they are known while tracing.
        exact: expressions must have the bits that Python gives them; where the program could
            differ (``math.sin``) and the values are not known, a `ValueNeededError` is raised.
        tentative: what is computed from it is not used, so nothing needs to be exact.
        name: tells it from others; names sort in the order in which numbers were made of sources,
            whatever numbers a process has made before. The operands of sums stand in this order.
    """

    name = ""
    values: Sequence[Any] | None = None
    domain: Domain | None = None
    exact = False
    tentative = False

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def left_open(self) -> None:
        """Called where the result of an operation depends on the value in another way."""

    def tensor(self) -> Tensor:
        """The number when the program runs, of rank 0."""
        return self._tensor

    def converted(self, dtype: DType) -> Tensor | None:
        """The number where it takes the dtype of a tensor; None: `tensor` in that dtype."""
        return None


class SymbolicNumber:
    """A number of a Python type, known only when the program runs. See the module.

    Attributes:
        kind: the type: bool, int, float, complex or that of a NumPy scalar.
        interval: the least and largest value of a bool or int; None where they are not known.
        source: where it comes from; None where an operation computes it.
        operation, operands: what computes it.
        terms, offset: an int as a sum of multiples of atoms and a constant.
    """

    __slots__ = (
        "_made", "_values", "interval", "key", "kind", "offset", "operands", "operation", "source",
        "terms",
    )  # fmt: skip

    def __init__(
        self,
        kind: type,
        interval: Interval | None,
        source: Source | None,
        operation: Operation | None = None,
        operands: tuple[Any, ...] = (),
        key: Any = None,
    ) -> None:
        self.kind = kind
        self.interval = interval
        self.source = source
        self.operation, self.operands = operation, operands
        self.key = key
        self.terms: tuple[Term, ...] = (Term(self, 1),)
        self.offset = 0
        self._made: dict[DType, tuple[Any, Tensor]] = {}
        self._values: list[Any] | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance` takes it for a number of its kind."""
        return self.kind

    def __repr__(self) -> str:
        return f"<symbolic {self.kind.__name__}>"

    def sources(self) -> dict[int, Source]:
        """What it is computed from, by id."""
        found: dict[int, Source] = {}
        for number in _in_order([self]):
            if number.source is not None:
                found[id(number.source)] = number.source
        return found

    # -- values known while tracing --------------------------------------------------------------

    def values(self) -> list[Any] | None:
        """All values that it takes, for all positions of its domains (the last one fastest); None
        where a source does not know its own, or where they are too many.

        Raises:
            Exception: what Python raises for one of them.
        """
        if self._values is None:
            sources = list(self.sources().values())
            if any(s.values is None for s in sources):
                return None
            domains = self.domains()
            if math.prod(d.size for d in domains) > _MOST_VALUES:
                return None
            self._values = evaluate(self, sources, domains)
        return self._values

    def domains(self) -> list[Domain]:
        """The domains of what it is computed from."""
        found = {id(s.domain): s.domain for s in self.sources().values() if s.domain is not None}
        return list(found.values())

    # -- the tensor behind it --------------------------------------------------------------------

    def tensor(self, dtype: DType | None = None) -> Tensor:
        """The number when the program runs, of rank 0.

        Args:
            dtype: int64, float64, bool or complex128 by the kind where it is not given.

        Raises:
            ValueError: a value that the dtype does not hold.
            ValueNeededError: the program could not give it the bits that Python does.
        """
        wide = _WIDE[np.dtype(self.kind).kind]
        wanted = wide if dtype is None else dtype
        recorder, made = self._made.get(wanted, (None, None))
        if made is None or not _is_around(recorder):
            made = self._tabulated(wanted) if self._is_better_known(wanted) else None
            if made is None and self.source is not None and dtype is not None:
                made = self.source.converted(dtype)
            if made is None:
                made = self._converted(wanted, wide)
            self._made[wanted] = context.recorder, made
        return made

    def _converted(self, wanted: DType, wide: DType) -> Tensor:
        if wanted is not wide:
            self._check_range(wanted)
            return cast(self.tensor(wide), wanted)
        if self.source is not None:
            return cast(self.source.tensor(), wide)
        if self._is_sum():
            return self._sum()
        assert self.operation is not None
        if not self.operation.is_exact(self) and self._must_be_exact():
            raise self.needed(f"computed as Python does ({self.operation.name})")
        return cast(self.operation.build(*self.operands), wide)

    def _is_sum(self) -> bool:
        return self.operation is SUM and self.kind is int

    def _sum(self) -> Tensor:
        """The normal form: every program that counts in steps of one adds a constant."""
        is_wide = self.interval is not None and not _inside(self.interval, INT64)
        if is_wide and self._must_be_exact():
            raise self.needed("held by an int64")
        total: Any = None
        for atom, factor in self.terms:
            part = atom.tensor() if atom.kind is int else convert_to_tensor(atom, dtypes.int64)
            if factor != 1:
                part = part * factor
            total = part if total is None else total + part
        if not self.offset:
            return total  # type: ignore[no-any-return]
        return total + self.offset if self.offset > 0 else total - -self.offset  # type: ignore[no-any-return]

    def _must_be_exact(self) -> bool:
        sources = self.sources().values()
        return any(s.exact for s in sources) and not any(s.tentative for s in sources)

    def _is_better_known(self, wanted: DType) -> bool:
        """Whether a table of the values is safer than computing them: they must have Python's bits
        and are not plain integers."""
        if self.source is not None and self.source.values is None:
            return False
        if not self._must_be_exact():
            return False
        narrow = wanted.is_floating and wanted.size < 4
        return narrow or not all(
            n.source is not None or n._is_sum() or (n.operation and n.operation.is_exact(n, True))
            for n in _in_order([self])
        )

    def _tabulated(self, wanted: DType) -> Tensor | None:
        """The number as an element of a table of its values; None where these are not known."""
        values = self.values()
        if values is None:
            return None
        self._check_kinds(values)
        table = convert_to_tensor(np.stack([to_array(v, wanted) for v in values]))
        place: Any = None
        for domain in self.domains():
            here = domain.position()
            place = here if place is None else place * domain.size + here
        return table[place]

    def _check_kinds(self, values: Sequence[Any]) -> None:
        if any(type(v) is not self.kind for v in values):
            raise self.needed("of one type")

    def _check_range(self, dtype: DType) -> None:
        if not dtype.is_integer or np.dtype(self.kind).kind not in "iu":
            return
        if self.interval is not None and not _inside(self.interval, (dtype.min, dtype.max)):
            raise ValueError(
                f"A number between {self.interval[0]} and {self.interval[1]} is out of the range "
                f"of {dtype.name}{at(user_origin())}"
            )

    def needed(self, use: str) -> ValueNeededError:
        """The error for a use that needs the value."""
        return ValueNeededError(
            f"A Python {self.kind.__name__} that is only known when the program runs cannot be "
            f"{use}{at(user_origin())}"
        )

    def leave_open(self, use: str) -> None:
        """Go on without the value, unless the bits of the result depend on it.

        Raises:
            ValueNeededError: they do.
        """
        for source in self.sources().values():
            source.left_open()
        if self._must_be_exact():
            raise self.needed(use)

    # -- what needs the value --------------------------------------------------------------------

    def __index__(self) -> int:
        raise self.needed("used as a Python index or size")

    def __bool__(self) -> bool:
        raise self.needed("used as a Python condition")

    def __int__(self) -> int:
        raise self.needed("converted by Python's int()")

    def __float__(self) -> float:
        raise self.needed("converted by Python's float()")

    def __complex__(self) -> complex:
        raise self.needed("converted by Python's complex()")

    def __hash__(self) -> int:
        raise self.needed("used as a key")

    def __str__(self) -> str:
        told = mark(self)
        if told is not None:
            return told
        raise self.needed("written as text")

    def __format__(self, spec: str) -> str:
        told = mark(self, spec)
        if told is not None:
            return told
        raise self.needed("written as text")

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray:
        raise self.needed("made a NumPy array")

    def __reduce__(self) -> Any:
        raise self.needed("copied or pickled")

    # -- what numbers have -----------------------------------------------------------------------

    @property
    def real(self) -> Any:
        return computed(REAL, (self,)) if self.kind is complex else self

    @property
    def imag(self) -> Any:
        return computed(IMAG, (self,)) if self.kind is complex else self.kind(0)

    def conjugate(self) -> Any:
        return computed(CONJUGATE, (self,)) if self.kind is complex else self

    def is_integer(self) -> Any:
        return True if np.dtype(self.kind).kind in "biu" else apply(math.fmod, self, 1.0) == 0

    def bit_length(self) -> int:
        raise self.needed("asked for its bits")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            return apply(round, self, digits)
        _check(round, (self,))
        return apply(round, self)


def symbolic_number(tensor: Tensor, interval: Interval | None = None) -> SymbolicNumber:
    """The Python number that a rank-0 tensor holds when the program runs.

    Args:
        tensor: of dtype bool, int64, float64 or complex128.
        interval: the least and largest value of an int, where they are known.

    Raises:
        TypeError: another dtype or rank.
    """
    kind = _KINDS.get(tensor.dtype)
    if kind is None or tensor.ndim:
        raise TypeError(
            f"A Python number is a scalar of bool, int64, float64 or complex128, not {tensor!r}"
        )
    return number_from(Source(tensor), kind, interval)


_KINDS: dict[Any, type] = {
    dtypes.bool: bool, dtypes.int64: int, dtypes.float64: float, dtypes.complex128: complex,
}  # fmt: skip


_made_of_sources = itertools.count(1)


def number_from(source: Source, kind: type, interval: Interval | None = None) -> SymbolicNumber:
    """The number that a source gives."""
    if kind is bool:
        interval = (0, 1)
    source.name = source.name or f"{next(_made_of_sources):012}"
    return SymbolicNumber(kind, interval, source, key=("source", source.name))


def is_symbolic_number(value: Any) -> bool:
    return type(value) is SymbolicNumber


def apply(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``: a Python value where the arguments tell it, else a `SymbolicNumber`.

    Args:
        function: a function of `operator`, `math`, `cmath` or NumPy's ufuncs, `abs`, `round`,
            `divmod`, `min`, `max`, `pow`, `int`, `float`, `bool` or `complex`.

    Raises:
        TypeError: Python's function refuses numbers of these kinds.
        ValueNeededError: there is no such function of symbolic numbers.
    """
    if not any(type(a) is SymbolicNumber for a in args):
        return function(*args)
    found = operation_of(function)
    if found is None:
        name = getattr(function, "__name__", repr(function))
        first = next(a for a in args if type(a) is SymbolicNumber)
        raise first.needed(f"given to {name}")
    return computed(found, args)


def select(test: Any, a: Any, b: Any) -> Any:
    """``a if test else b`` of numbers of one type.

    Raises:
        ValueNeededError: they are of different types.
    """
    if type(test) is not SymbolicNumber:
        return a if test else b
    if kind_of(a) is not kind_of(b):
        raise test.needed("chosen between numbers of two types")
    return computed(SELECT, (test, a, b))


def kind_of(number: Any) -> type:
    """The Python type of a number."""
    return number.kind if type(number) is SymbolicNumber else type(number)


def interval_of(number: Any) -> Interval | None:
    """The least and largest value of an int; None where they are not known."""
    if type(number) is SymbolicNumber:
        return number.interval
    return (int(number), int(number)) if isinstance(number, int | np.integer) else None


def extreme(function: Callable[..., Any], *numbers: Any) -> Any:
    """``min(*numbers)`` or ``max(*numbers)``.

    Raises:
        ValueNeededError: they are of different types, and which one it is is not known.
    """
    found = numbers[0]
    for other in numbers[1:]:
        better = other < found if function is min else other > found
        if type(better) is not SymbolicNumber:
            found = other if better else found
        elif kind_of(found) is int and kind_of(other) is int:
            found = apply(function, found, other)
        else:
            found = select(better, other, found)
    return found


def computed(operation: Operation, args: tuple[Any, ...], kind: type | None = None) -> Any:
    """The result of an operation: a Python value where the arguments tell it, else a
    `SymbolicNumber`.

    Args:
        kind: its type, where the types of the arguments do not tell it.
    """
    kind = kind or operation.kind([kind_of(a) for a in args], args)
    linear = operation.linear
    if linear is not None and kind is int and all(kind_of(a) in (int, bool) for a in args):
        found = linear(*args)
        if found is not None:
            return _normal(*found)
    key = (operation.name, *(a.key if type(a) is SymbolicNumber else (type(a), repr(a))
                             for a in args))  # fmt: skip
    interval: Interval | None = None
    if np.dtype(kind).kind in "biu":
        interval = operation.interval(*map(interval_of, args)) if operation.interval else None
        if interval is not None and interval[0] == interval[1]:
            return kind(interval[0])
        if kind is bool and interval is None:
            interval = (0, 1)
    made = SymbolicNumber(kind, interval, None, operation, args, key)
    if interval is None and np.dtype(kind).kind in "iu" and made._must_be_exact():
        values = made.values()
        if values:
            made.interval = int(min(values)), int(max(values))
    return made


# -- sums of multiples ---------------------------------------------------------------------------


def _normal(terms: list[Term], offset: int) -> Any:
    """The int with a normal form; a Python int where it has no terms."""
    if not terms:
        return offset
    if len(terms) == 1 and terms[0].factor == 1 and not offset and terms[0].atom.kind is int:
        return terms[0].atom
    interval: Interval | None = (offset, offset)
    for atom, factor in terms:
        if atom.interval is None:
            interval = None
            break
        ends = atom.interval[0] * factor, atom.interval[1] * factor
        interval = interval[0] + min(ends), interval[1] + max(ends)  # type: ignore[index]
    order = tuple(sorted(terms, key=lambda t: repr(t.atom.key)))
    key = ("sum", tuple((t.atom.key, t.factor) for t in order), offset)
    made = SymbolicNumber(int, interval, None, SUM, tuple(t.atom for t in order), key)
    made.terms, made.offset = order, offset
    return made


# -- values --------------------------------------------------------------------------------------


def _in_order(numbers: Sequence[Any]) -> Iterator[SymbolicNumber]:
    """The numbers and all that they are computed from, operands first."""
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(n, False) for n in reversed(numbers)]
    while stack:
        number, ready = stack.pop()
        if type(number) is not SymbolicNumber or (id(number) in seen and not ready):
            continue
        if ready:
            yield number
            continue
        seen.add(id(number))
        stack.append((number, True))
        stack.extend((o, False) for o in number.operands)


def evaluator(numbers: Sequence[Any], sources: Sequence[Source]) -> Callable[..., list[Any]]:
    """A Python function from the values of the sources to those of the numbers."""
    order = list(_in_order(numbers))
    slots = {id(n): k for k, n in enumerate(order)}
    steps: list[tuple[int, Callable[..., Any], list[Any]]] = []
    given: list[tuple[int, int]] = []
    places = {id(s): k for k, s in enumerate(sources)}
    constants: list[Any] = [None] * len(order)

    def operand(value: Any) -> int:
        if type(value) is SymbolicNumber:
            return slots[id(value)]
        constants.append(value)
        return len(constants) - 1

    for number in order:
        slot = slots[id(number)]
        if number.source is not None:
            given.append((slot, places[id(number.source)]))
            continue
        assert number.operation is not None
        function = number.operation.python
        if number._is_sum():
            function = _sum_of([t.factor for t in number.terms], number.offset)
        steps.append((slot, function, [operand(o) for o in number.operands]))
    results = [operand(n) for n in numbers]

    def run(*values: Any) -> list[Any]:
        held = list(constants)
        for slot, place in given:
            held[slot] = values[place]
        for slot, function, operands in steps:
            held[slot] = function(*[held[o] for o in operands])
        return [held[r] for r in results]

    return run


def _sum_of(factors: list[int], offset: int) -> Callable[..., int]:
    def total(*atoms: Any) -> int:
        return offset + sum(f * int(a) for f, a in zip(factors, atoms, strict=True))

    return total


def evaluate(
    number: SymbolicNumber, sources: Sequence[Source], domains: Sequence[Domain]
) -> list[Any]:
    """The values for all positions of the domains, the last one fastest."""
    run = evaluator([number], sources)
    places = [domains.index(s.domain) for s in sources if s.domain is not None]
    values: list[Any] = [s.values for s in sources]
    found = []
    for position in itertools.product(*(range(d.size) for d in domains)):
        given = [v[position[k]] for v, k in zip(values, places, strict=True)]
        found.append(run(*given)[0])
    return found


def _inside(interval: Interval, limits: Interval) -> bool:
    return limits[0] <= interval[0] and interval[1] <= limits[1]


def _is_around(recorder: Any) -> bool:
    """Whether what was made for a region can be used in the present one."""
    current: Any = context.recorder
    while current is not None:
        if current is recorder:
            return True
        current = getattr(current, "parent", None)
    return False


# -- between tensors -----------------------------------------------------------------------------


def _as_tensor(number: SymbolicNumber, dtype: DType | None) -> Tensor:
    """What `convert_to_tensor` makes of it: of the dtype that a Python number of its type gets."""
    given = np.dtype(number.kind).kind
    if dtype is None:
        dtype = _default_dtype(number)
    refused = (given == "f" and not (dtype.is_floating or dtype.is_complex)) or (
        given == "c" and not dtype.is_complex
    )
    if refused or (dtype.is_bool and given != "b"):
        to_array(number.kind(1), dtype)  # raises what it does for a Python number
    return number.tensor(dtype)


def _default_dtype(number: SymbolicNumber) -> DType:
    if issubclass(number.kind, np.generic):
        return dtypes.from_numpy(np.dtype(number.kind))
    if number.kind is float:
        return dtypes.float32
    if number.kind is int:
        tentative = any(s.tentative for s in number.sources().values())
        if tentative or (number.interval is not None and _inside(number.interval, _INT32)):
            return dtypes.int32
        if number._must_be_exact():  # Python's would be int32 for some values, int64 for others
            raise number.needed("made a tensor of one dtype")
        return dtypes.int64
    return _WIDE[np.dtype(number.kind).kind]


register_weak(SymbolicNumber, _as_tensor)

# -- operators -----------------------------------------------------------------------------------


def _binary(function: Callable[[Any, Any], Any], reflected: bool) -> Callable[..., Any]:
    def method(self: SymbolicNumber, other: Any) -> Any:
        operands = (other, self) if reflected else (self, other)
        if numpy_rules.call is not None and isinstance(other, np.generic):
            if isinstance(other, float) and self.kind is complex and not reflected:
                return apply(function, self, other)  # Python's complex takes it as a float
            return numpy_rules.call(_UFUNCS[function], *operands)
        if not isinstance(other, bool | int | float | complex | np.generic):
            return NotImplemented
        if function in _REFUSING:
            _check(function, operands)
        return apply(function, *operands)

    return method


_UFUNCS: dict[Any, np.ufunc] = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.true_divide, operator.floordiv: np.floor_divide,
    operator.mod: np.remainder, operator.pow: np.power, operator.lshift: np.left_shift,
    operator.rshift: np.right_shift, operator.and_: np.bitwise_and, operator.or_: np.bitwise_or,
    operator.xor: np.bitwise_xor, operator.lt: np.less, operator.le: np.less_equal,
    operator.gt: np.greater, operator.ge: np.greater_equal, operator.eq: np.equal,
    operator.ne: np.not_equal,
}  # fmt: skip


_REFUSING = frozenset({
    operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow
})  # fmt: skip
_number_checks: list[Callable[[Any, tuple[Any, ...]], None]] = []


def set_number_check(check: Callable[[Any, tuple[Any, ...]], None]) -> None:
    """Call `check` with functions of Python's that refuse some numbers and their arguments, where
    NumPy's rules hold."""
    _number_checks[:] = [check]


def _check(function: Any, operands: tuple[Any, ...]) -> None:
    if numpy_rules.call is not None:
        for check in _number_checks:
            check(function, operands)


class _NumpyRules(threading.local):
    """How numbers and NumPy's scalars are computed with, where NumPy's rules hold: by `call`, which
    takes a ufunc and its operands. None where a scalar is taken as one of Python's numbers."""

    call: Callable[..., Any] | None = None


numpy_rules = is_mode(_NumpyRules())


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda self: apply(function, self)


def _install() -> None:
    pairs = (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or",
        "xor",
    )  # fmt: skip
    for name in pairs:
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        setattr(SymbolicNumber, f"__{name}__", _binary(function, False))
        setattr(SymbolicNumber, f"__r{name}__", _binary(function, True))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(SymbolicNumber, f"__{name}__", _binary(getattr(operator, name), False))
    for name in ("neg", "pos", "abs", "invert"):
        setattr(SymbolicNumber, f"__{name}__", _unary(getattr(operator, name)))
    for name in ("floor", "ceil", "trunc"):
        setattr(SymbolicNumber, f"__{name}__", _unary(getattr(math, name)))


_install()
