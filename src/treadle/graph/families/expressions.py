"""Finds expressions over symbols for the ints in which sample graphs differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from treadle.core.shapes import Dim, SymbolicDim, compound, substitute

# The values of one dim or attribute, one for each sample graph.
Sample: TypeAlias = tuple[Dim, ...]

MOST_BASES = 24  # dims that an expression may be made of
_DIVISORS = range(2, 17)


class Different(Exception):
    """Dims or attributes of sample graphs that have nothing in common."""


class Expressions:
    """Symbols and expressions, with their values in every sample graph.

    Attributes:
        scopes: for each sample graph the values of the pattern's symbols; shared with the
            `Correspondence` of that graph, which learns symbols of inner values.
    """

    def __init__(self, scopes: Sequence[dict[str, Dim]], taken: Iterable[str]) -> None:
        self.scopes = scopes
        self._symbols: dict[Sample, SymbolicDim] = {}
        self._known: dict[Sample, Dim] = {}  # dims that occur, by their values
        self._names = (n for n in symbol_names() if n not in set(taken))

    def symbol(self, sample: Sample) -> Dim:
        """A dim of an argument: itself where it is the same everywhere, else a symbol, the same
        one for the same values.

        Raises:
            Different: it is an int in one graph and open in another.
        """
        if _constant(sample):
            return sample[0]
        if len({type(size) for size in sample}) != 1:
            raise Different("a dim is open in one graph only")
        found = self._symbols.get(sample)
        if found is None:
            name = next(self._names)
            found = self._symbols[sample] = self._known[sample] = SymbolicDim.symbol(name)
            for scope, size in zip(self.scopes, sample, strict=True):
                scope[name] = size
        return found

    def symbols(self) -> list[SymbolicDim]:
        """The symbols made so far."""
        return list(self._symbols.values())

    def note(self, dims: Iterable[Dim]) -> None:
        """Remember the dims of a value: later ones are often the same."""
        for dim in dims:
            if isinstance(dim, SymbolicDim):
                self._known.setdefault(self.values(dim), dim)

    def values(self, dim: Dim) -> Sample:
        """The values of a dim of the pattern, one for each sample graph."""
        return tuple(substitute(dim, scope) for scope in self.scopes)

    def find(self, sample: Sample, near: Sequence[Dim] = ()) -> Dim | None:
        """An expression with these values, or None.

        Args:
            near: dims that the expression is likely made of, such as those of a node's inputs.
        """
        if _constant(sample):
            return sample[0]
        near = [d for d in near if isinstance(d, SymbolicDim)]
        exact = next((d for d in near if self.values(d) == sample), None)
        exact = self._known.get(sample) if exact is None else exact
        if exact is not None:
            return exact
        if not all(isinstance(v, int) for v in sample):
            return self._find_polynomial(sample)
        bases = list(dict.fromkeys([*near, *self._symbols.values()]))[:MOST_BASES]
        return next((d for d in self._candidates(sample, bases) if self.values(d) == sample), None)

    def _candidates(self, sample: Sample, bases: Sequence[Dim]) -> Iterator[Dim]:
        """Expressions that may have the values, the likeliest first; not all have."""
        values = [v for v in sample if isinstance(v, int)]
        pairs = [a * b for a, b in itertools.combinations_with_replacement(bases, 2)]
        for base in (*bases, *pairs):
            yield from self._multiple(values, base)
        for base in bases:
            yield base + (values[0] - _int(self.values(base)[0]))
        for base in bases:
            for divisor in _DIVISORS:
                yield base // divisor
                yield (base + (divisor - 1)) // divisor
        for base in bases:
            yield from self._clamped(values, base)
            yield from self._line(values, base)
        for a, b in itertools.combinations(bases, 2):
            yield from (a + b, a - b, b - a, compound("max", a, b), compound("min", a, b))

    def _multiple(self, values: Sequence[int], base: Dim) -> Iterator[Dim]:
        """``c * base``, the factor taken from a sample in which `base` is not 0."""
        for value, size in zip(values, self.values(base), strict=True):
            if isinstance(size, int) and size:
                if value % size == 0:
                    yield value // size * base
                return

    def _clamped(self, values: Sequence[int], base: Dim) -> Iterator[Dim]:
        """``min(base - k, most)`` and ``max(base - k, least)``: sizes of slices."""
        points = sorted((_int(s), v) for s, v in zip(self.values(base), values, strict=True))
        (small, first), (large, last) = points[0], points[-1]
        yield compound("min", base - (small - first), max(values))
        yield compound("max", base - (large - last), min(values))

    def _line(self, values: Sequence[int], base: Dim) -> Iterator[Dim]:
        """``a * base + b`` through two samples."""
        points = {(_int(s), v) for s, v in zip(self.values(base), values, strict=True)}
        (x0, y0), *rest = sorted(points)
        for x, y in rest:
            if x != x0 and (y - y0) % (x - x0) == 0:
                slope = (y - y0) // (x - x0)
                yield slope * base + (y0 - slope * x0)
                return

    def _find_polynomial(self, sample: Sample) -> Dim | None:
        """Dims with inner symbols: the same terms in every graph, with coefficients to find."""
        terms = [self._renamed(dim, scope) for dim, scope in zip(sample, self.scopes, strict=True)]
        monomials = {tuple(t) for t in terms}
        if len(monomials) != 1 or None in terms[0]:
            return None
        total: Dim = 0
        for atoms in terms[0]:
            coefficient = self.find(tuple(t[atoms] for t in terms))
            if coefficient is None:
                return None
            for name in atoms:  # type: ignore[union-attr]
                coefficient = coefficient * SymbolicDim.symbol(name)
            total = total + coefficient
        return total

    @staticmethod
    def _renamed(dim: Dim, scope: dict[str, Dim]) -> dict[tuple[str, ...] | None, int]:
        """The terms of a dim of a sample graph, in the pattern's symbols."""
        if isinstance(dim, int):
            return {(): dim}
        names = {repr(own): name for name, own in scope.items() if isinstance(own, SymbolicDim)}
        terms: dict[tuple[str, ...] | None, int] = {}
        for monomial, coefficient in dim.terms:
            atoms = [names.get(a) if isinstance(a, str) else None for a in monomial]
            known = tuple(sorted(a for a in atoms if a is not None))
            terms[known if len(known) == len(atoms) else None] = coefficient
        return terms


def symbol_names() -> Iterator[str]:
    """B, C, D, ... Z, then BB, BC, ...: names that no fresh symbol has."""
    letters = [chr(code) for code in range(ord("B"), ord("Z") + 1)]
    for count in itertools.count(1):
        yield from map("".join, itertools.product(letters, repeat=count))


def _constant(sample: Sample) -> bool:
    return all(value == sample[0] for value in sample)


def _int(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 0
