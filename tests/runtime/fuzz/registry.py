"""The table of the operations that random programs are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.runtime.fuzz.chooser import FLOATS, Chooser

Choice = tuple[list[int], dict[str, Any]]


@dataclass(frozen=True)
class Operation:
    """How an operation runs on tensors, and how its operands and attributes are chosen.

    Attributes:
        exact: on small whole numbers it gives small whole numbers, however it is computed.
    """

    run: Callable[..., Any]
    choose: Callable[[Chooser], Choice]
    weight: float = 1.0
    exact: bool = True


OPERATIONS: dict[str, Operation] = {}


def add(
    name: str,
    run: Callable[..., Any],
    choose: Callable[[Chooser], Choice],
    weight: float = 1.0,
    exact: bool = True,
) -> None:
    assert name not in OPERATIONS, name
    OPERATIONS[name] = Operation(run, choose, weight, exact)


def one_of(dtypes: Any = FLOATS, low: int = 0) -> Callable[[Chooser], Choice]:
    """One value, no attributes."""
    return lambda g: ([g.value(dtypes, low)], {})
