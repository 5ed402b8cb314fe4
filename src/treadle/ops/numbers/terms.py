"""Sums of multiples: the normal form of symbolic Python ints."""

from __future__ import annotations

from typing import Any, NamedTuple


def is_symbolic(value: Any) -> bool:
    """Whether a value is a symbolic number, whatever it tells `isinstance`."""
    return hasattr(type(value), "operands")


class Term(NamedTuple):
    """``factor * atom`` in the normal form of an int; the atom is a symbolic number."""

    atom: Any
    factor: int


def _terms(number: Any) -> tuple[tuple[Term, ...], int]:
    if not is_symbolic(number):
        return (), int(number)
    return number.terms, number.offset


def add_terms(a: Any, b: Any, factor: int = 1) -> tuple[list[Term], int]:
    """The normal form of ``a + factor * b``."""
    (left, offset), (right, other) = _terms(a), _terms(b)
    total: dict[Any, Term] = {t.atom.key: t for t in left}
    for atom, count in right:
        before = total[atom.key].factor if atom.key in total else 0
        total[atom.key] = Term(atom, before + factor * count)
    return [t for t in total.values() if t.factor], offset + factor * other


def multiply_terms(a: Any, b: Any) -> tuple[list[Term], int] | None:
    """The normal form of ``a * b`` where one of them is a Python int."""
    if not is_symbolic(a):
        a, b = b, a
    if is_symbolic(b):
        return None
    terms, offset = _terms(a)
    factor = int(b)
    return [Term(atom, count * factor) for atom, count in terms if factor], offset * factor
