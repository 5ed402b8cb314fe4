"""The table that ``model.summary()`` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _count(variables: Any) -> int:
    return sum(v.shape.num_elements() for v in variables)


def _bytes(variables: Any) -> str:
    size: float = sum(v.shape.num_elements() * v.dtype.size for v in variables)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GB"


def print_summary(
    model: Any, line_length: int | None = None, print_fn: Callable[[str], Any] | None = None
) -> None:
    """Print the layers of `model`, their output shapes and numbers of weights."""
    emit = print_fn or print
    rows = [
        (
            f"{layer.name} ({type(layer).__name__})",
            "?" if layer.output_shape is None else str(layer.output_shape),
            f"{layer.count_params():,}" if layer.built else "0 (unbuilt)",
        )
        for layer in model.layers
    ]
    head = ("Layer (type)", "Output Shape", "Param #")
    widths = [max(len(r[i]) for r in [head, *rows]) + 2 for i in range(3)]
    if line_length is not None and line_length > sum(widths):
        widths[0] += line_length - sum(widths)
    rule = "─" * sum(widths)
    emit(f'Model: "{model.name}"')
    emit(rule)
    for n, row in enumerate([head, *rows]):
        emit("".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        if n == 0:
            emit(rule)
    emit(rule)
    for title, variables in (
        ("Total", model.weights),
        ("Trainable", model.trainable_weights),
        ("Non-trainable", model.non_trainable_weights),
    ):
        emit(f"{title} params: {_count(variables):,} ({_bytes(variables)})")
