"""Python's `print`, when the program runs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.tensor import NDArray, Tensor
from treadle.ops.registry import Op, register, run

Arguments = Callable[[Sequence[NDArray]], tuple[Sequence[Any], dict[str, Any]]]


def python_print(tensors: Sequence[Tensor], arguments: Arguments) -> None:
    """Call `print` when the program runs.

    Args:
        tensors: what only the run knows.
        arguments: gives the arguments of `print`, of the elements of the tensors.
    """
    run(PYTHON_PRINT, *tensors, arguments=arguments)


def _print_now(*arrays: NDArray, arguments: Arguments) -> tuple[()]:
    args, options = arguments([np.asarray(a) for a in arrays])
    builtins.print(*args, **options)
    return ()


PYTHON_PRINT = register(
    Op(
        "python_print", lambda *specs, **attrs: (), eager=_print_now, effect="io",
        tags=frozenset({"quiet"}), callback="Python writes values as texts, and prints them",
    )
)  # fmt: skip
