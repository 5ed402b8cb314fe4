"""How much memory a run of a program needs, and which operations need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from treadle.core.origin import Origin
from treadle.core.records import record
from treadle.core.shapes import Dim, substitute

PARTS = ("arguments", "variables", "constants", "outputs", "workspace")


@record(frozen=True)
class Maker:
    """The operation that makes an array.

    Attributes:
        op: its name.
        origin: the user's line; in programs on disk the number of a node of the traced graph that
            comes from there.
    """

    op: str
    origin: Origin | int | None = None

    def located(self, place: Callable[[Origin | int | None], Origin | int | None]) -> Maker:
        """The same with another form of the user's line."""
        return replace(self, origin=place(self.origin))


@record(frozen=True)
class Array:
    """An array that a program makes room for: bytes, dtype and dims as text, and its operation."""

    bytes: Dim
    text: str
    maker: Maker | None = None


@record(frozen=True)
class MemoryUse:
    """Bytes in use during a run; expressions where dims are symbolic.

    Attributes:
        arguments: the arrays passed in.
        variables: those that the program reads or writes.
        constants: captured tensors and literal arrays.
        outputs: the results.
        workspace: the planned memory of all temporaries.
        temporaries: the memory that all temporaries would take if they shared none.
        grows: whether lists and arrays of sizes found out by the program come on top.
        large: the largest temporaries.
    """

    arguments: Dim = 0
    variables: Dim = 0
    constants: Dim = 0
    outputs: Dim = 0
    workspace: Dim = 0
    temporaries: Dim = 0
    grows: bool = False
    large: tuple[Array, ...] = ()

    @property
    def peak(self) -> Dim:
        """Everything that exists at once when the program runs."""
        total: Dim = 0
        for name in PARTS:
            total = total + getattr(self, name)
        return total

    def at(self, sizes: Mapping[str, Dim]) -> MemoryUse:
        """The same with values for symbols."""
        known: dict[str, Any] = {
            name: substitute(getattr(self, name), dict(sizes)) for name in (*PARTS, "temporaries")
        }
        large = [replace(a, bytes=substitute(a.bytes, dict(sizes))) for a in self.large]
        return replace(self, **known, large=tuple(large))

    def located(self, place: Callable[[Origin | int | None], Origin | int | None]) -> MemoryUse:
        """The same with another form of the user's lines."""
        large = [
            a if a.maker is None else replace(a, maker=a.maker.located(place)) for a in self.large
        ]
        return replace(self, large=tuple(large))

    @property
    def largest(self) -> Array | None:
        """The largest temporary, as far as sizes are known."""
        return largest(self.large)

    def __str__(self) -> str:
        rows = [f"peak: {size_text(self.peak)} bytes"]
        for name in PARTS[:-1]:
            rows.append(f"  {name}: {size_text(getattr(self, name))}")
        saved = (
            f", shared by {size_text(self.temporaries)} of temporaries" if self.temporaries else ""
        )
        rows.append(f"  workspace: {size_text(self.workspace)}{saved}")
        for array in self.large:
            rows.append(f"    {size_text(array.bytes)}: {array_text(array)}")
        if self.grows:
            rows.append("  and lists and arrays whose sizes are found out while it runs")
        return "\n".join(rows)


def largest(arrays: Iterable[Array]) -> Array | None:
    """The largest of the arrays whose size is known."""
    known = [a for a in arrays if isinstance(a.bytes, int)]
    return max(known, key=lambda a: int(a.bytes), default=None)  # type: ignore[arg-type]


def size_text(size: Dim) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


def array_text(array: Array) -> str:
    """``f32[1000, 1000] of matmul (model.py:12)``."""
    if array.maker is None:
        return array.text
    place = array.maker.origin
    return f"{array.text} of {array.maker.op}" + (
        f" ({place})" if isinstance(place, Origin) else ""
    )
