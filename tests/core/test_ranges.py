"""What ranges of symbols prove."""

import itertools

from treadle.core.ranges import Ranges, simplified
from treadle.core.shapes import SymbolicDim, compound

N, I, J = map(SymbolicDim.symbol, "nij")


def ranges() -> Ranges:
    """0 <= i < n and i < j <= n."""
    found = Ranges()
    found.add("i", 0, N - 1)
    found.add("j", I + 1, N)
    return found


def test_bounds_of_counters() -> None:
    known = ranges()
    assert known.is_less_equal(I + 1, N)
    assert known.is_less_equal(I, J)
    assert known.is_non_negative(N - I - 1)
    assert not known.is_less_equal(J, I)
    assert not known.is_less_equal(I + 2, N)
    assert not known.is_non_negative(I - 1)


def test_max_and_min_are_decided() -> None:
    known = ranges()
    assert simplified(compound("min", I, N), known) == I
    assert simplified(compound("max", J - I, 0), known) == J - I
    assert simplified(compound("max", I - 3, 0), known) == compound("max", I - 3, 0)
    assert known.are_equal(compound("max", J, N), N)
    assert known.is_non_negative(N - compound("max", I, J))


def test_bounds_over_other_symbols() -> None:
    known = ranges()
    assert known.most(I, {"n"}) == N - 1
    assert known.most(N - I, {"n"}) == N
    assert known.most(J - I, {"n"}) == N
    assert known.most(I, frozenset()) is None
    assert known.most(compound("min", I, 7), frozenset()) == 7


def test_what_is_proved_holds() -> None:
    known = ranges()
    dims = [a * I + b * J + c * N + d for a, b, c, d in itertools.product((-2, -1, 0, 1), repeat=4)]
    dims += [compound("max", d, I) - J for d in dims[::17]]
    values = [{"n": n, "i": i, "j": j} for n in range(1, 5) for i in range(n)
              for j in range(i + 1, n + 1)]  # fmt: skip
    for dim in dims:
        if isinstance(dim, SymbolicDim) and known.is_non_negative(dim):
            assert all(dim.evaluate(v) >= 0 for v in values), dim
