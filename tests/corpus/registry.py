"""The corpus: small functions over all constructs, with the arguments to call them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """One function with one set of arguments.

    Attributes:
        tensors: whether it also runs with tensors, eagerly and traced.
        gradients: whether its gradient is compared with finite differences.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    tensors: bool = False
    gradients: bool = False

    @property
    def construct(self) -> str:
        """The module it stands in: ``control flow``, ``functions``."""
        return self.fn.__module__.rpartition(".")[2].replace("_", " ")


CASES: list[Case] = []


def case(*arguments: Any) -> Callable[..., Any]:
    """Run the function below with each of `arguments` (a tuple for several), tensors too."""
    return _adder(arguments, tensors=True)


def python(*arguments: Any) -> Callable[..., Any]:
    """As `case`, for Python values only."""
    return _adder(arguments)


def smooth(*arguments: Any) -> Callable[..., Any]:
    """As `case`, for floats at which the function is differentiable."""
    return _adder(arguments, tensors=True, gradients=True)


def _adder(arguments: tuple[Any, ...], **kind: bool) -> Callable[..., Any]:
    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        for a in arguments:
            CASES.append(Case(fn, a if isinstance(a, tuple) else (a,), **kind))
        return fn

    return add
