"""Proofs that a dim cannot be negative, given what is known of others.

Symbols stand for non-negative ints. A proof splits ``max`` and ``min`` into their cases, names
quotients and remainders, and then adds multiples of known inequalities until nothing negative is
left. It is sound and gives up early: False means "not proved".
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treadle.core.interrupts import during, is_mode
from treadle.core.shapes import (
    Dim,
    Monomial,
    SymbolicDim,
    is_non_negative,
    substitute_atoms,
)  # fmt: skip

MOST_STEPS = 200  # of one proof
MOST_FACTS = 24  # added to a dim along one path of a proof


class _Patience(threading.local):
    steps = MOST_STEPS


_patience = is_mode(_Patience())


def is_at_least(dim: Dim, least: Dim, facts: Iterable[Dim] = ()) -> bool:
    """Whether ``dim >= least`` wherever all of `facts` are at least 0."""
    return _is_at_least(dim - least, tuple(dict.fromkeys(facts)), _patience.steps)


def patience(steps: int) -> during:
    """Proofs may take so many steps inside the block."""
    return during(_patience, "steps", steps)


@functools.lru_cache(4096)
def _is_at_least(difference: Dim, facts: tuple[Dim, ...], steps: int) -> bool:
    if is_non_negative(difference) or _follows(difference, facts, 2):
        return True
    if isinstance(difference, int):
        # Facts that contradict each other prove anything; they are not looked for.
        return False
    return _Proof(steps).holds(difference, tuple(f for f in facts if not is_non_negative(f)), 0)


def _follows(dim: Dim, facts: tuple[Dim, ...], most: int) -> bool:
    """Whether ``dim >= 0`` is the sum of at most so many facts and something not negative: two of
    them tell that a position is in a range. However many facts there are, all are tried that take
    a negative term away."""
    negative = next((m for m, c in _terms(dim) if c < 0), None)
    for fact in facts if negative is not None else ():
        if any(m == negative and c < 0 for m, c in _terms(fact)):
            rest = dim - fact
            if is_non_negative(rest) or (most > 1 and _follows(rest, facts, most - 1)):
                return True
    return False


def implied_facts(pairs: Iterable[tuple[Dim, Dim]], some: Sequence[Dim] = ()) -> list[Dim]:
    """Dims that are at least 0 where both dims of every pair are equal.

    Args:
        some: dims that are known to be at least 1.
    """
    found: list[Dim] = []
    for a, b in pairs:
        found += _of_pair(a, b, some)
    return found


def _of_pair(a: Dim, b: Dim, some: Sequence[Dim]) -> Iterator[Dim]:
    atom = _only_atom(a)
    if atom is not None and atom[0] == "max" and b in atom[1:]:  # max(s, b) == b: s <= b
        yield b - (atom[2] if atom[1] == b else atom[1])
        return
    if b == 0 and isinstance(a, SymbolicDim) and len(a.terms) == 1:
        # max(x, 0) * min(s, 1) == 0: x <= 0 where s is at least 1
        factors = list(a.terms[0][0])
        excess = [f for f in factors if not isinstance(f, str) and f[0] == "max" and 0 in f[1:]]
        rest = [f for f in factors if f not in excess]
        if len(excess) == 1 and all(_is_one(f, some) for f in rest):
            yield -(excess[0][2] if excess[0][1] == 0 else excess[0][1])
        return
    yield a - b
    yield b - a


def _only_atom(dim: Dim) -> Any:
    if isinstance(dim, SymbolicDim) and len(dim.terms) == 1:
        mono, coefficient = dim.terms[0]
        if coefficient == 1 and len(mono) == 1 and not isinstance(mono[0], str):
            return mono[0]
    return None


def _is_one(atom: Any, some: Sequence[Dim]) -> bool:
    """Whether an atom ``min(s, 1)`` is 1."""
    if isinstance(atom, str) or atom[0] != "min" or 1 not in atom[1:]:
        return False
    size = atom[2] if atom[1] == 1 else atom[1]
    return is_at_least(size, 1, [s - 1 for s in some])


class _Proof:
    """One attempt, with a bounded number of steps."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.steps = 0
        self.names = 0

    def holds(self, dim: Dim, facts: tuple[Dim, ...], depth: int) -> bool:
        """Whether ``dim >= 0``."""
        self.steps += 1
        if is_non_negative(dim):
            return True
        if self.steps > self.most or depth > MOST_FACTS:
            return False
        atom = next(_compounds(dim), None)
        if atom is None:
            atom = next((a for f in facts if _shares(f, dim) for a in _compounds(f)), None)
        if atom is not None:
            return self._split(atom, dim, facts, depth + 1)
        return self._combine(dim, facts, depth)

    def _split(self, atom: Any, dim: Dim, facts: tuple[Dim, ...], depth: int) -> bool:
        """Every case of ``max`` or ``min``; a name for a quotient or a remainder."""
        operation, a, b = atom
        if operation in ("max", "min"):
            sign = 1 if operation == "max" else -1
            return all(
                self.holds(*_replaced(atom, value, dim, (*facts, (value - other) * sign)), depth)
                for value, other in ((a, b), (b, a))
            )
        return self.holds(*self._named(atom, dim, facts, depth), depth)

    def _named(
        self, atom: Any, dim: Dim, facts: tuple[Dim, ...], depth: int
    ) -> tuple[Dim, tuple[Dim, ...]]:
        """A quotient or remainder as a symbol, with the inequalities that hold for it.

        Symbols are not negative: a quotient that may be is the difference of two of them.
        """
        operation, a, b = atom
        self.names += 1
        quotient: Dim = SymbolicDim.symbol(f"\0q{self.names}")
        rest: Dim = SymbolicDim.symbol(f"\0r{self.names}")
        others = tuple(f for f in facts if atom not in _compounds(f))
        known: tuple[Dim, ...] = ()
        positive = self.holds(b - 1, others, depth + 4)
        if not (positive and self.holds(a, others, depth + 4)):
            quotient = quotient - SymbolicDim.symbol(f"\0p{self.names}")
        if positive:
            known = (a - b * quotient - rest, b * quotient + rest - a, b - 1 - rest)
        else:
            rest = quotient
        return _replaced(atom, quotient if operation == "floordiv" else rest, dim, facts, known)

    def _combine(self, dim: Dim, facts: tuple[Dim, ...], depth: int) -> bool:
        """Subtract a multiple of a fact that takes a negative term away, and go on."""
        negative = [(m, c) for m, c in _terms(dim) if c < 0]
        if not negative:
            return False
        mono, coefficient = negative[-1]  # every one must go: the longest first, the number last
        for fact in facts:
            for scaled in _facts_with(fact, mono):
                factor = dict(_terms(scaled))[mono]
                rest = dim * -factor + scaled * coefficient
                if self.holds(_reduced(rest), _without(facts, fact), depth + 1):
                    return True
        return False


def _without(facts: tuple[Dim, ...], fact: Dim) -> tuple[Dim, ...]:
    return tuple(f for f in facts if f is not fact)


def _facts_with(fact: Dim, mono: Monomial) -> Iterator[Dim]:
    """Products of a fact and symbols in which a monomial has a negative coefficient."""
    for own, coefficient in _terms(fact):
        if coefficient >= 0:
            continue
        rest = list(mono)
        for atom in own:
            if atom not in rest:
                break
            rest.remove(atom)
        else:
            extra: Dim = SymbolicDim({tuple(rest): 1}) if rest else 1
            yield fact * extra


def _reduced(dim: Dim) -> Dim:
    """A dim divided by the greatest common divisor of its coefficients."""
    terms = dict(_terms(dim))
    common = math.gcd(*terms.values()) if terms else 1
    return dim if common <= 1 else sum((_times(m, c // common) for m, c in terms.items()), 0)


def _times(mono: Monomial, coefficient: int) -> Dim:
    return SymbolicDim({mono: coefficient}) if mono else coefficient


def _terms(dim: Dim) -> Sequence[tuple[Monomial, int]]:
    return dim.terms if isinstance(dim, SymbolicDim) else (((), dim),)


def _compounds(dim: Dim) -> Iterator[Any]:
    """Atoms that are no symbols; those inside them come up when they are replaced."""
    for mono, _ in _terms(dim):
        for atom in mono:
            if not isinstance(atom, str):
                yield atom


def _shares(fact: Dim, dim: Dim) -> bool:
    return isinstance(fact, SymbolicDim) and isinstance(dim, SymbolicDim)


def _replaced(
    atom: Any, value: Dim, dim: Dim, facts: tuple[Dim, ...], more: tuple[Dim, ...] = ()
) -> tuple[Dim, tuple[Dim, ...]]:
    """`dim` and the facts with a value for an atom; facts that say nothing are left out."""
    found = (substitute_atoms(f, {atom: value}) for f in facts)
    kept = tuple(dict.fromkeys((*(f for f in found if not is_non_negative(f)), *more)))
    return substitute_atoms(dim, {atom: value}), kept
