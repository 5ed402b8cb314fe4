"""Derivatives of the corpus's functions from plain Python: which have them, and what they are."""

from __future__ import annotations

import copy
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

STEPS = (1e-5, 1e-6)
SECONDS = 0.3  # of the processor; some functions of integers never end for floats


def as_floats(args: Sequence[Any]) -> list[Any] | None:
    """The arguments as floats beside round numbers, where functions bend; None for others."""
    found: list[Any] = []
    for i, a in enumerate(args):
        if _is_number(a):
            found.append(float(a) + 0.0137 * (i + 1))
        elif isinstance(a, list) and a and all(map(_is_number, a)):
            found.append([float(x) + 0.0137 * (i + j + 1) for j, x in enumerate(a)])
        else:
            return None
    return found


def _is_number(a: Any) -> bool:
    return isinstance(a, int | float) and not isinstance(a, bool)


def slopes(fn: Callable[..., Any], args: Sequence[Any]) -> list[float] | None:
    """The central differences for every number, or None where `fn` is not differentiable there."""
    try:
        with _limit():
            return [_slope(fn, args, i, j) for i, a in enumerate(args) for j in _places(a)]
    except Exception:  # it is no function of floats
        return None


@contextmanager
def _limit() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _places(a: Any) -> range:
    return range(len(a) if isinstance(a, list) else 1)


def _slope(fn: Callable[..., Any], args: Sequence[Any], i: int, j: int) -> float:
    coarse, fine = ((_at(fn, args, i, j, h) - _at(fn, args, i, j, -h)) / (2 * h) for h in STEPS)
    if abs(coarse - fine) > 1e-4 * max(1.0, abs(coarse)):
        raise ValueError("a kink")
    return coarse


def _at(fn: Callable[..., Any], args: Sequence[Any], i: int, j: int, shift: float) -> float:
    moved: list[Any] = copy.deepcopy(list(args))
    if isinstance(moved[i], list):
        moved[i][j] += shift
    else:
        moved[i] += shift
    result = fn(*moved)
    if not isinstance(result, float) or not math.isfinite(result):
        raise TypeError
    return result
