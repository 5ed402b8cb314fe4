"""Keras 2's learning phase: whether layers train that nobody tells."""

from __future__ import annotations


class _Phase:
    """What `set_learning_phase` set; None where nobody has, and each kind of layer does as it does
    by itself."""

    trains: bool | None = None


_phase = _Phase()


def trains() -> bool | None:
    """Whether layers train that are called by no other layer and are not told; None: it depends on
    the kind of layer."""
    return _phase.trains


def set_learning_phase(value: int | None) -> None:
    """Let layers that are called without `training` train (1) or not (0); None: as at the start.

    A function takes note of it while it is traced.

    Raises:
        ValueError: another value.
    """
    if value not in (None, 0, 1):
        raise ValueError(f"Expected learning phase to be 0 or 1, not {value!r}")
    _phase.trains = None if value is None else bool(value)
