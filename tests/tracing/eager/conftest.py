"""Eager operations that are programs from small arrays on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from treadle.ops.registry import large
from treadle.runtime.cpu.backend import Cpu
from treadle.tracing import large_operations, settings


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arrays of any size are large; nothing is known of operations when a test begins."""
    monkeypatch.setattr(Cpu, "eager_elements", property(lambda self: 0))
    monkeypatch.setattr(large, "elements", (0, 0))
    large_operations._forget()
    yield
    large_operations._forget()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations wait for their programs."""
    monkeypatch.setattr(settings, "wait_for_eager_programs", True)
