"""Algorithms of random numbers, by name."""

from __future__ import annotations

from enum import Enum
from typing import Any

from treadle.core.errors import InvalidArgumentError
from treadle.core.origin import at, user_origin


class Algorithm(Enum):
    """Ways of making random numbers; there are those of Philox only."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_NAMES = {
    "philox": Algorithm.PHILOX, "threefry": Algorithm.THREEFRY,
    "autoselect": Algorithm.AUTO_SELECT,
}  # fmt: skip


def check_algorithm(alg: Any) -> None:
    """Accept what stands for Philox: None, an `Algorithm`, its number or its name.

    Raises:
        InvalidArgumentError: another algorithm.
        ValueError: an unknown name or number.
        TypeError: anything else.
    """
    if isinstance(alg, str):
        found = _NAMES.get(alg.strip().lower().replace("-", "").replace("_", ""))
    elif isinstance(alg, int):
        found = next((a for a in Algorithm if a.value == alg), None)
    elif alg is None or isinstance(alg, Algorithm):
        found = alg or Algorithm.PHILOX
    else:
        raise TypeError(f"alg must be an Algorithm, its name or number, not {alg!r}{_here()}")
    if found is None:
        raise ValueError(f"alg {alg!r} is unknown; it may be 'philox' or 'auto_select'{_here()}")
    if found is Algorithm.THREEFRY:
        raise InvalidArgumentError(
            None, None, f"ThreeFry is not supported: use alg='philox'{_here()}"
        )


def _here() -> str:
    return at(user_origin())
