"""Ranges of symbols: proofs that one dim is never less than another."""

from __future__ import annotations

from treadle.core.shapes import (
    Atom,
    Dim,
    SymbolicDim,
    compound,
    dim_symbols,
    is_non_negative,
    with_atoms,
)

_MOST_STEPS = 64  # of one proof: sizes of programs need a few


class Ranges:
    """The least and the largest value of symbols, each a dim over symbols that were there before.

    A symbol without a range is any non-negative integer.
    """

    def __init__(self) -> None:
        self.of: dict[str, tuple[Dim, Dim | None]] = {}  # in the order in which they came
        self._age: dict[str, int] = {}

    def add(self, name: str, least: Dim, most: Dim | None) -> None:
        """Note that symbol `name` is at least `least` and, if given, at most `most`."""
        self.of[name] = least, most
        self._age[name] = len(self._age)

    def is_non_negative(self, dim: Dim) -> bool:
        """Whether a dim is proved not to be negative."""
        return self._proves(dim, _MOST_STEPS)

    def is_less_equal(self, a: Dim, b: Dim) -> bool:
        """Whether ``a <= b`` is proved."""
        return self.is_non_negative(b - a)

    def are_equal(self, a: Dim, b: Dim) -> bool:
        """Whether two dims are proved to be equal."""
        if a == b:
            return True
        a, b = simplified(a, self), simplified(b, self)
        return a == b or (self.is_less_equal(a, b) and self.is_less_equal(b, a))

    def most(self, dim: Dim, symbols: frozenset[str] | set[str]) -> Dim | None:
        """A bound of `dim` over the given symbols alone; None where no ranges give one."""
        for _ in range(_MOST_STEPS):
            inner = [s for s in dim_symbols(dim) if s not in symbols]
            if not inner:
                return dim
            name = max(inner, key=lambda s: self._age.get(s, -1))
            found = self._extreme(dim, name, upwards=True)
            if found is None:
                return None
            dim = found
        return None

    def _proves(self, dim: Dim, steps: int) -> bool:
        """The youngest symbol is replaced by its least favourable value, and so on."""
        if isinstance(dim, int):
            return dim >= 0
        if is_non_negative(dim):
            return True
        if steps <= 0:
            return False
        choice = _first_choice(dim)
        if choice is not None:
            either, both = choice
            how = all if both else any
            return how(self._proves(d, steps // 2) for d in either)
        known = [s for s in dim.symbols() if s in self.of]
        if not known:
            return False
        name = max(known, key=self._age.__getitem__)
        worst = self._extreme(dim, name, upwards=False)
        return worst is not None and worst != dim and self._proves(worst, steps - 1)

    def _extreme(self, dim: Dim, name: str, upwards: bool) -> Dim | None:
        """A bound of `dim`, from above or from below, without the symbol `name`."""
        if isinstance(dim, int):
            return dim
        total: Dim = 0
        linear: Dim = 0  # the coefficient of the symbol
        for mono, coefficient in dim.terms:
            term = SymbolicDim({mono: coefficient}) if mono else coefficient
            if mono.count(name) == 1 and name not in dim_symbols(_without(mono, coefficient, name)):
                linear = linear + _without(mono, coefficient, name)
            elif name in dim_symbols(term):
                bound = self._of_compound(mono, coefficient, name, upwards)
                if bound is None:
                    return None
                total = total + bound
            else:
                total = total + term
        if linear == 0:
            return total
        least, most = self.of.get(name, (0, None))
        rises = self._sign(linear)
        if rises is None:
            return None
        end = most if (rises > 0) == upwards else least
        return None if end is None else total + linear * end

    def _sign(self, dim: Dim) -> int | None:
        if self._proves(dim, 8):
            return 1
        return -1 if self._proves(-dim, 8) else None

    def _of_compound(
        self, mono: tuple[object, ...], coefficient: int, name: str, upwards: bool
    ) -> Dim | None:
        """A bound of a term that is ``min(a, b)`` or ``max(a, b)`` times a number."""
        if len(mono) != 1 or not isinstance(mono[0], tuple):
            return None
        operation, a, b = mono[0]
        if operation not in ("min", "max"):
            return None
        inner = upwards if coefficient > 0 else not upwards
        bounds = [self._extreme(x, name, inner) for x in (a, b)]
        known = [x for x in bounds if x is not None]
        alone = operation == ("min" if inner else "max")  # either bound holds
        if len(known) == 2:
            return compound(operation, known[0], known[1]) * coefficient
        return known[0] * coefficient if known and alone else None


def _without(mono: tuple[object, ...], coefficient: int, name: str) -> Dim:
    """A term divided by the symbol."""
    rest = list(mono)
    rest.remove(name)
    return SymbolicDim({tuple(rest): coefficient}) if rest else coefficient  # type: ignore[arg-type]


def _first_choice(dim: SymbolicDim) -> tuple[list[Dim], bool] | None:
    """A dim with a term ``max(a, b)`` or ``min(a, b)`` as two dims with a and with b, and whether
    both must be shown not to be negative rather than one."""
    for mono, coefficient in dim.terms:
        if len(mono) != 1 or isinstance(mono[0], str) or mono[0][0] not in ("max", "min"):
            continue
        operation, a, b = mono[0]
        rest = dim - SymbolicDim({mono: coefficient})
        both = (operation == "min") == (coefficient > 0)
        return [rest + a * coefficient, rest + b * coefficient], both
    return None


def simplified(dim: Dim, ranges: Ranges) -> Dim:
    """A dim without the ``max`` and ``min`` that ranges decide."""

    def value(atom: Atom) -> Dim:
        return SymbolicDim.symbol(atom) if isinstance(atom, str) else _decided(atom, ranges)

    return with_atoms(dim, value)


def _decided(atom: tuple[str, Dim, Dim], ranges: Ranges) -> Dim:
    operation, a, b = atom[0], simplified(atom[1], ranges), simplified(atom[2], ranges)
    if operation in ("max", "min"):
        for low, high in ((a, b), (b, a)):
            if ranges.is_less_equal(low, high):
                return high if operation == "max" else low
        return compound(operation, a, b)
    return a // b if operation == "floordiv" else a % b
