"""Shapes: tuples of dims, where a dim is an int or a symbolic integer expression."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias

from treadle.core import errors
from treadle.core.dimension import Dimension

# A monomial is a sorted tuple of atoms; an atom is a symbol's name or a compound
# ("floordiv" | "mod" | "max" | "min", dim, dim) that has no polynomial form.
Atom: TypeAlias = "str | tuple[str, Dim, Dim]"
Monomial: TypeAlias = tuple[Atom, ...]


class SymbolicDim:
    """An integer polynomial over symbols, such as ``B*10 + 1``, in normal form.

    Equal expressions are equal objects under ``==``. Symbols stand for non-negative ints.
    """

    __slots__ = ("_hash", "_symbols", "_text", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        found = [(m, c) for m, c in terms.items() if c]
        if len(found) > 1:
            found.sort(key=_term_key)
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(found)
        self._hash = hash(self.terms)
        self._symbols: frozenset[str] | None = None  # found when somebody asks
        self._text = ""

    @staticmethod
    def symbol(name: str) -> SymbolicDim:
        return SymbolicDim({(name,): 1})

    def symbols(self) -> frozenset[str]:
        """The names of all symbols in the expression."""
        known = self._symbols
        if known is None:
            found: set[str] = set()
            for atom in itertools.chain.from_iterable(m for m, _ in self.terms):
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    for part in atom[1:]:
                        found |= dim_symbols(part)
            known = self._symbols = frozenset(found)
        return known

    @property
    def has_compounds(self) -> bool:
        """Whether an atom is no symbol."""
        return any(type(atom) is not str for mono, _ in self.terms for atom in mono)

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value for the given symbols; KeyError where one is missing."""
        value = substitute(self, env)
        if isinstance(value, SymbolicDim):
            raise KeyError(sorted(value.symbols())[0])
        return value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDim) and self.terms == other.terms

    def __add__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other == 0:
            return self
        total = dict(self.terms)
        for mono, coeff in _terms(other):
            total[mono] = total.get(mono, 0) + coeff
        return _simplify(total)

    __radd__ = __add__

    def __neg__(self) -> Dim:
        return _simplify({m: -c for m, c in self.terms})

    def __sub__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other == 0:
            return self
        total = dict(self.terms)
        for mono, coeff in _terms(other):
            total[mono] = total.get(mono, 0) - coeff
        return _simplify(total)

    def __rsub__(self, other: Dim) -> Dim:
        return (-self) + other

    def __mul__(self, other: Dim) -> Dim:
        if isinstance(other, int):
            return self if other == 1 else _simplify({m: c * other for m, c in self.terms})
        total: dict[Monomial, int] = {}
        for (m1, c1), (m2, c2) in itertools.product(self.terms, _terms(other)):
            mono = tuple(sorted(m1 + m2, key=_atom_key)) if m1 and m2 else m1 or m2
            total[mono] = total.get(mono, 0) + c1 * c2
        return _simplify(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        exact = _exact_quotient(self, other)
        return compound("floordiv", self, other) if exact is None else exact

    def __rfloordiv__(self, other: Dim) -> Dim:
        return compound("floordiv", other, self)

    def __mod__(self, other: Dim) -> Dim:
        return 0 if _exact_quotient(self, other) is not None else compound("mod", self, other)

    def __rmod__(self, other: Dim) -> Dim:
        return compound("mod", other, self)

    def __repr__(self) -> str:
        if not self._text:
            texts = (_term_text(m, c) for m, c in reversed(self.terms))
            self._text = " + ".join(texts).replace("+ -", "- ")
        return self._text


Dim: TypeAlias = int | SymbolicDim


# Terms are in the order in which their symbols were made, so that the code of a program does not
# depend on how many symbols the process has made before.


@functools.lru_cache(1 << 12)
def made_in_order(name: str) -> tuple[str, int]:
    """A key that sorts names of symbols in the order in which they were made: n9 before n10."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or -1)


@functools.lru_cache(1 << 12)
def _atom_key(atom: Atom) -> tuple[Any, ...]:
    if isinstance(atom, str):
        return (0, *made_in_order(atom))
    operation, left, right = atom
    return 1, operation, _dim_key(left), _dim_key(right)


@functools.lru_cache(1 << 12)
def _monomial_key(monomial: Monomial) -> tuple[Any, ...]:
    return (len(monomial), *map(_atom_key, monomial))


def _term_key(term: tuple[Monomial, int]) -> tuple[Any, ...]:
    return _monomial_key(term[0])


def _dim_key(dim: Dim) -> tuple[Any, ...]:
    return tuple((_monomial_key(m), c) for m, c in _terms(dim))


def _terms(dim: Dim) -> Iterable[tuple[Monomial, int]]:
    return dim.terms if isinstance(dim, SymbolicDim) else (((), dim),)


def _simplify(terms: Mapping[Monomial, int]) -> Dim:
    if len(terms) == 1:
        ((mono, coeff),) = terms.items()
        return SymbolicDim(terms) if mono and coeff else coeff
    if not any(c and m for m, c in terms.items()):
        return terms.get((), 0)
    return SymbolicDim(terms)


def _exact_quotient(a: SymbolicDim, b: Dim) -> Dim | None:
    """a / b where every term divides, else None."""
    divisor = list(_terms(b))
    if len(divisor) != 1 or not divisor[0][1]:
        return 1 if a == b else None
    (mono, coeff), quotient = divisor[0], {}
    for m, c in a.terms:
        rest = list(m)
        for atom in mono:
            if atom not in rest:
                return 1 if a == b else None
            rest.remove(atom)
        if c % coeff:
            return None
        quotient[tuple(rest)] = c // coeff
    return _simplify(quotient)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    # As in compiled programs a divisor of 0 gives 0: sizes are computed before they are checked.
    "floordiv": lambda a, b: a // b if b != 0 else 0,
    "mod": lambda a, b: a % b if b != 0 else 0,
    "max": max,
    "min": min,
}


def compound(op: str, a: Dim, b: Dim) -> Dim:
    """``a op b`` for an operation outside polynomials: floordiv, mod, max, min."""
    if isinstance(a, int) and isinstance(b, int):
        return int(_OPERATIONS[op](a, b))
    if op in ("max", "min") and a == b:
        return a
    return SymbolicDim({((op, a, b),): 1})


def _term_text(mono: Monomial, coeff: int) -> str:
    atoms = [a if isinstance(a, str) else f"{a[0]}({a[1]}, {a[2]})" for a in mono]
    if coeff == -1 and atoms:
        return "-" + "*".join(atoms)
    return "*".join(atoms if coeff == 1 and atoms else [*atoms, str(coeff)])


def dim_symbols(dim: Dim) -> frozenset[str]:
    return dim.symbols() if isinstance(dim, SymbolicDim) else frozenset()


def _is_late(dim: SymbolicDim) -> bool:
    """Whether a run finds the size out: arguments do not tell it."""
    return any(made_in_order(name)[0] != _AT_ENTRY for name in dim.symbols())


# The symbol of a size -> the sizes that it is made of, and the way back. What is forgotten here is
# made anew.
_MOST_STRETCHED = 4096
_parts: dict[SymbolicDim, frozenset[Dim]] = {}
_stretched: dict[frozenset[Dim], SymbolicDim] = {}


def stretched(a: Dim, b: Dim) -> SymbolicDim:
    """The size of what has been broadcast together along an axis of sizes that may differ: a
    symbol, which the result tells."""
    parts = stretched_of(a) | stretched_of(b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, SymbolicDim) and stretched_of(other) <= _parts.get(one, frozenset()):
            return one
    found = _stretched.get(parts)
    if found is None:
        if len(_stretched) >= _MOST_STRETCHED:
            _stretched.clear()
            _parts.clear()
        found = _stretched.setdefault(parts, fresh_symbol("stretched"))  # threads find one
        _parts[found] = parts
    return found


def stretched_of(dim: Dim) -> frozenset[Dim]:
    """The sizes that one is broadcast of: itself where it is none of `stretched`."""
    found = _parts.get(dim) if isinstance(dim, SymbolicDim) else None
    return found or frozenset((dim,))


def is_non_negative(dim: Dim) -> bool:
    """Whether a dim cannot be negative for any sizes of its symbols; False if unknown."""
    if isinstance(dim, int):
        return dim >= 0
    return all(c >= 0 and all(_is_non_negative_atom(a) for a in m) for m, c in dim.terms)


def _is_non_negative_atom(atom: Any) -> bool:
    if isinstance(atom, str):
        return True
    operation, left, right = atom
    if operation == "max":
        return is_non_negative(left) or is_non_negative(right)
    if operation == "mod":
        return is_non_negative(right)
    return is_non_negative(left) and is_non_negative(right)


def symbol_name(dim: Dim) -> str | None:
    """The name of a dim that is a symbol alone; None for ints, expressions and unnamed dims."""
    if isinstance(dim, int) or len(dim.terms) != 1:
        return None
    mono, coefficient = dim.terms[0]
    if coefficient == 1 and len(mono) == 1 and isinstance(mono[0], str):
        return None if mono[0] in OPEN_SYMBOLS else mono[0]
    return None


def row_major(dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """The elements between neighbours along each axis of an array that has no gaps."""
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(dims):
        strides.insert(0, step)
        step = step * dim
    return tuple(strides)


def with_atoms(dim: Dim, value: Callable[[Atom], Dim]) -> Dim:
    """`dim` with each of its atoms replaced by the value that a function gives."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for mono, coeff in dim.terms:
        term: Dim = coeff
        for atom in mono:
            term = value(atom) if isinstance(term, int) and term == 1 else term * value(atom)
        total = total + term
    return total


def substitute(dim: Dim, env: Mapping[str, Any]) -> Dim:
    """`dim` with symbols replaced by the ints or dims that `env` gives."""
    if isinstance(dim, int):
        return dim
    if not dim.has_compounds and not any(name in env for name in dim.symbols()):
        return dim

    def value(atom: Atom) -> Any:
        if isinstance(atom, str):
            return env[atom] if atom in env else SymbolicDim.symbol(atom)
        op, a, b = atom
        a, b = substitute(a, env), substitute(b, env)
        return _OPERATIONS[op](a, b) if op in ("floordiv", "mod") else compound(op, a, b)

    return with_atoms(dim, value)


def substitute_atoms(dim: Dim, values: Mapping[Atom, Dim]) -> Dim:
    """`dim` with atoms, compound ones as a whole, replaced by dims."""
    return with_atoms(dim, lambda atom: _substituted(atom, values))


def _substituted(atom: Atom, values: Mapping[Atom, Dim]) -> Dim:
    if atom in values:
        return values[atom]
    if isinstance(atom, str):
        return SymbolicDim.symbol(atom)
    op, a, b = atom
    left, right = substitute_atoms(a, values), substitute_atoms(b, values)
    if left is a and right is b:
        return SymbolicDim({(atom,): 1})
    if op in ("floordiv", "mod"):
        return _OPERATIONS[op](left, right)  # type: ignore[no-any-return]
    return compound(op, left, right)


_fresh = itertools.count()


_AT_ENTRY = "d"  # what the names of symbols begin with whose sizes arguments tell


def fresh_symbol(hint: str = _AT_ENTRY) -> SymbolicDim:
    """A new symbol, for an unknown dim of a signature; one with another hint is for a size that a
    run finds out later."""
    return SymbolicDim.symbol(f"{hint}{next(_fresh)}")


# An unknown dim that a user wrote as None; a trace puts a fresh symbol in its place.
ANY = SymbolicDim.symbol("?")
# The dims of a shape whose rank is not known. Both are also the dims of a list in which nothing was
# stored yet and that got no element shape: the first element decides the shape, or the rank alone.
UNKNOWN_RANK: tuple[Dim, ...] = (SymbolicDim.symbol("**"),)
UNKNOWN_SHAPE: tuple[Dim, ...] = (SymbolicDim.symbol("*"),)
# The names of dims that stand for no one size.
OPEN_SYMBOLS = frozenset({"?", "*", "**"})


class TensorShape:
    """A shape as users see it: an immutable sequence, unknown dims read as None.

    ``TensorShape(None)`` is a shape of unknown rank: its `rank` is None, its length and its list of
    dims are a ValueError, and every shape is compatible with it.

    ``exact`` holds what shape rules compute with, symbolic dims included; `UNKNOWN_RANK` where the
    rank is unknown. ``dims`` is TensorFlow's list of `Dimension`s.
    """

    __slots__ = ("exact",)

    def __init__(self, dims: Iterable[Any] | TensorShape | int | None) -> None:
        if dims is None:
            self.exact: tuple[Dim, ...] = UNKNOWN_RANK
        elif isinstance(dims, TensorShape):
            self.exact = dims.exact
        elif isinstance(dims, int | Dimension) or not getattr(dims, "ndim", 1):  # NumPy's, too
            self.exact = (as_dim(dims),)
        else:
            self.exact = tuple(ANY if d is None else as_dim(d) for d in dims)

    @property
    def rank(self) -> int | None:
        """The number of dims; None where it is not known."""
        return None if self.exact == UNKNOWN_RANK else len(self.exact)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as `Dimension`s, whose value is an int or None; None for an unknown rank."""
        if self.rank is None:
            return None
        return [Dimension(d if isinstance(d, int) else None) for d in self.exact]

    def as_list(self) -> list[int | None]:
        """The dims; ValueError where their number is not known."""
        if self.exact == UNKNOWN_RANK:
            raise ValueError("as_list() is not defined for a shape of unknown rank")
        return [d if isinstance(d, int) else None for d in self.exact]

    def is_fully_defined(self) -> bool:
        return all(isinstance(d, int) for d in self.exact)

    def num_elements(self) -> int | None:
        size = product(self.exact)
        return size if isinstance(size, int) else None

    def concatenate(self, other: Any) -> TensorShape:
        """The dims of both; of unknown rank where one of them is."""
        theirs = TensorShape(other)
        unknown = self.rank is None or theirs.rank is None
        return TensorShape(None if unknown else self.exact + theirs.exact)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some shape fits both."""
        theirs = TensorShape(other)
        if self.rank is None or theirs.rank is None:
            return True
        pairs = zip(self.exact, theirs.exact, strict=False)
        return self.rank == theirs.rank and all(
            a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """ValueError unless some shape fits both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The dims that are known from either shape; ValueError where they contradict."""
        self.assert_is_compatible_with(other)
        theirs = TensorShape(other)
        if self.rank is None or theirs.rank is None:
            return theirs if self.rank is None else self
        pairs = zip(self.exact, theirs.exact, strict=True)
        return TensorShape(b if isinstance(b, int) or a == ANY else a for a, b in pairs)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The dims that both have, None for the others; of unknown rank where the ranks differ."""
        theirs = TensorShape(other)
        if theirs.rank != self.rank or self.rank is None:
            return TensorShape(None)
        pairs = zip(self.exact, theirs.exact, strict=True)
        return TensorShape(a if a == b else None for a, b in pairs)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every shape that this one may be is one that `other` may be."""
        if not isinstance(other, TensorShape):
            return False
        if self.rank is None or other.rank is None:
            return other.rank is None
        pairs = zip(self.exact, other.exact, strict=False)
        return self.rank == other.rank and all(a == b or not isinstance(b, int) for a, b in pairs)

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorShape | None:
        """The narrowest shape of which this one and all others are subtypes."""
        found = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            found = found.most_specific_compatible_shape(other)
        return found

    def with_rank(self, rank: int) -> TensorShape:
        """The shape with this rank, which it must have unless its rank is unknown."""
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Itself; ValueError where it is known to have fewer dims."""
        return self._with_rank(self.rank is None or self.rank >= rank, f"at least {rank}")

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Itself; ValueError where it is known to have more dims."""
        return self._with_rank(self.rank is None or self.rank <= rank, f"at most {rank}")

    def _with_rank(self, fits: bool, wanted: str) -> TensorShape:
        if not fits:
            raise ValueError(f"Shape {self} must have rank {wanted}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """ValueError where the rank is known to be another one."""
        self._with_rank(self.rank in (None, rank), str(rank))

    def assert_same_rank(self, other: Any) -> None:
        """ValueError where both ranks are known and differ."""
        theirs = TensorShape(other)
        if self.rank is not None and theirs.rank is not None and self.rank != theirs.rank:
            raise ValueError(f"Shapes {self} and {theirs} must have the same rank")

    def assert_is_fully_defined(self) -> None:
        """ValueError where the rank or a dim is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __bool__(self) -> bool:
        """Whether the rank is known, as in TensorFlow: also that of a scalar."""
        return self.rank is not None

    def __len__(self) -> int:
        if self.rank is None:
            raise ValueError("Cannot take the length of a shape of unknown rank")
        return len(self.exact)

    def __iter__(self) -> Iterator[int | None]:
        if self.rank is None:
            raise ValueError("Cannot iterate over a shape of unknown rank")
        return iter(self.as_list())

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        if self.rank is None:
            return self._unknown_part(key)
        if isinstance(key, slice):
            return TensorShape(self.exact[key])
        return self.as_list()[key]

    def _unknown_part(self, key: SupportsIndex | slice) -> TensorShape | None:
        if not isinstance(key, slice):
            return None
        if key.step is not None:
            raise ValueError("A shape of unknown rank cannot be sliced with a step")
        start, stop = key.start or 0, key.stop
        if stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return TensorShape([None] * (stop - start))

    def __eq__(self, other: object) -> bool:
        """Whether users see the same dims: two that are not known are equal."""
        if isinstance(other, TensorShape):
            return self._seen == other._seen
        if other is None or isinstance(other, int):
            return self == TensorShape(other) if other is None or other >= 0 else False
        if not isinstance(other, list | tuple) or self.rank is None:
            return False
        return self._seen == tuple(other)

    def __hash__(self) -> int:
        return hash(self._seen)

    @property
    def _seen(self) -> tuple[int | None, ...] | None:
        """The dims as users see them; None for an unknown rank."""
        return None if self.rank is None else tuple(self.as_list())

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __reduce__(self) -> tuple[Any, ...]:
        dims = [None if d == ANY else d for d in self.exact]
        return TensorShape, (None if self.rank is None else dims,)

    def __repr__(self) -> str:
        return f"TensorShape({None if self.rank is None else self.as_list()})"

    def __str__(self) -> str:
        return shape_text(self.exact)


def as_dim(value: Any) -> Dim:
    """An int or SymbolicDim from anything that is a non-negative integer."""
    if isinstance(value, SymbolicDim):
        return value
    if isinstance(value, Dimension) and value.value is None:
        return ANY
    dim = int(value.__index__()) if hasattr(value, "__index__") else None
    if dim is None or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a dimension: expected a non-negative int or None")
    if dim < 0:
        raise ValueError(f"Dimension {dim} must be >= 0")
    return dim


def shape_text(dims: Iterable[Dim]) -> str:
    """``(2, None)`` as users see shapes; a one-element tuple keeps its comma. ``<unknown>`` where
    the rank is not known."""
    dims = tuple(dims)
    if dims == UNKNOWN_RANK:
        return "<unknown>"
    return str(tuple(d if isinstance(d, int) else None for d in dims))


def product(dims: Iterable[Dim]) -> Dim:
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total


def broadcast(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The common shape under NumPy's rules; ValueError names the shapes.

    A symbolic dim against a known dim > 1 takes the known one, as TensorFlow's static
    inference does, and of two symbolic dims it is the first one; the running program checks it.
    """
    return _broadcast(shapes, _known_or_first)


def _known_or_first(a: Dim, b: Dim) -> Dim:
    return b if isinstance(b, int) else a


def broadcast_and_told(*shapes: tuple[Dim, ...], every: bool = False) -> tuple[Dim, ...]:
    """The same for an op whose result tells sizes: of two symbolic dims that may differ it is a
    size of its own (`stretched`).

    Args:
        every: of any two dims that may differ: also where one is known, or where arguments tell
            both, which a call compares before anything runs.
    """

    def size(a: Dim, b: Dim) -> Dim:
        dims = [d for d in (a, b) if isinstance(d, SymbolicDim)]
        late = len(dims) == 2 and any(map(_is_late, dims))
        return stretched(a, b) if late or every else _known_or_first(a, b)

    return _broadcast(shapes, size)


def surely_broadcast(x: Sequence[Dim], y: Sequence[Dim]) -> bool:
    """Whether shapes broadcast whatever their symbols are."""
    pairs = zip(reversed(x), reversed(y), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _broadcast(
    shapes: tuple[tuple[Dim, ...], ...], size: Callable[[Dim, Dim], Dim]
) -> tuple[Dim, ...]:
    """The common shape, with the `size` of two dims that may differ."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        dim: Dim = 1
        for shape in shapes:
            position = axis - rank + len(shape)
            if position >= 0:
                dim = _broadcast_dim(dim, shape[position], shapes, size)
        result.append(dim)
    return tuple(result)


def _broadcast_dim(
    a: Dim, b: Dim, shapes: tuple[tuple[Dim, ...], ...], size: Callable[[Dim, Dim], Dim]
) -> Dim:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, SymbolicDim) or isinstance(b, SymbolicDim):
        return size(a, b)
    listed = " and ".join(shape_text(s) for s in shapes)
    raise errors.InvalidArgumentError(None, None, f"Incompatible shapes: {listed} do not broadcast")
