"""Eager operations that are programs from small arrays on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from treadle.ops.registry import large
from treadle.runtime.cpu import compiled_ahead
from treadle.runtime.cpu.backend import Cpu
from treadle.tracing import composed_calls, large_operations, settings


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arrays of any size are large. When a test begins nothing is known of operations, nothing is
    compiled for an earlier one, and no program of an earlier one is shared. NumPy computes until
    the program is there, whatever the environment says."""
    monkeypatch.setattr(Cpu, "eager_elements", property(lambda self: 0))
    monkeypatch.setattr(large, "elements", (0, 0, 0))
    monkeypatch.setattr(settings, "wait_for_eager_programs", False)
    _forget()
    yield
    _forget()


def _forget() -> None:
    compiled_ahead._graphs.drain()
    large_operations._forget()
    composed_calls._forget()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations wait for their programs."""
    monkeypatch.setattr(settings, "wait_for_eager_programs", True)
