"""Classes of convolutions: what is found out for one of a class holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from treadle.core.records import record
from treadle.runtime.cpu.alike import Alike
from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.candidates import all_forms, cost
from treadle.runtime.cpu.convolution.forms import rule
from treadle.runtime.cpu.convolution.tiling import Form, Geometry
from treadle.runtime.cpu.library_text import ELEMENT_BYTES
from treadle.runtime.cpu.target import Target

# A trial reads and computes no more images than this, but one at least: a matter of time.
MOST_BYTES = 8 << 20  # of images and outputs
MOST_PRODUCTS = 1 << 28
_OPS = (FORWARD, TO_INPUT, TO_FILTER)
_LENGTH = 16  # numbers of a name


def class_of(name: str, g: Geometry) -> Convolutions | None:
    """The class of an op's call; None where sizes other than the number of images are not known."""
    known = (*g.x[1:], *g.y[1:])
    if not all(type(d) is int for d in known):
        return None
    inputs, outputs = (prod(map(int, dims[1:])) for dims in (g.x, g.y))  # type: ignore[arg-type]
    bytes_, products = (inputs + outputs) * g.size, outputs * prod(g.filters[:3])
    most = max(1, min(MOST_BYTES // max(bytes_, 1), MOST_PRODUCTS // max(products, 1)))
    n = g.x[0]
    images = min(n, most) if isinstance(n, int) else most
    if images == 0:
        return None
    return Convolutions(name, replace(g, x=(images, *g.x[1:]), y=(images, *g.y[1:])))


@record(frozen=True)
class Convolutions(Alike):
    """Convolutions, or gradients of them, that differ in the number of images. One of so few that
    a trial is short stands for them; calls are counted by images."""

    op: str
    geometry: Geometry

    @property
    def element(self) -> str:
        return self.geometry.element

    @property
    def name(self) -> str:
        g = self.geometry
        sides = [(s.stride, s.dilation, s.before, s.after) for s in (g.rows, g.columns)]
        numbers = (*g.x, *g.filters, *(n for side in sides for n in side))
        return " ".join([self.op, g.element, *map(str, numbers)])

    @staticmethod
    def named(name: str) -> Convolutions:
        """The class of a `name`.

        Raises:
            ValueError: there is none.
        """
        op, element, *shown = name.split() or [""]
        if op not in _OPS or element not in ELEMENT_BYTES or len(shown) != _LENGTH:
            raise ValueError(f"{name!r} names no class of convolutions")
        numbers = [int(n) for n in shown]
        x, filters, rows, columns = (tuple(numbers[i : i + 4]) for i in range(0, _LENGTH, 4))
        counts = [
            (size + before + after - (window - 1) * dilation - 1) // stride + 1
            for size, window, (stride, dilation, before, after) in zip(
                x[1:3], filters, (rows, columns), strict=False
            )
        ]
        attrs = {
            "strides": (rows[0], columns[0]), "dilations": (rows[1], columns[1]),
            "padding": (rows[2:], columns[2:]),
        }  # fmt: skip
        found = Geometry.of(element, x, filters, (x[0], *counts, filters[3]), attrs)
        if found is None:
            raise ValueError(f"{name!r} names no convolution that the library computes")
        return Convolutions(op, found)

    @property
    def title(self) -> str:
        g = self.geometry
        what = {FORWARD: "forward", TO_INPUT: "input gradient", TO_FILTER: "filter gradient"}
        names = {"float": "float32", "double": "float64"}
        kh, kw, _, o = g.filters
        size = "x".join(map(str, g.x[1:]))
        strides = f" stride {g.rows.stride}" if g.rows.stride > 1 or g.columns.stride > 1 else ""
        kind = names.get(g.element, g.element)
        return f"{kh}x{kw} on {size} to {o}{strides} {kind}, {what[self.op]}"

    @property
    def sizes(self) -> tuple[int, int, int]:
        g = self.geometry
        x, f, y = (prod(map(int, dims)) * g.size for dims in (g.x, g.filters, g.y))  # type: ignore[arg-type]
        return {FORWARD: (x, f, y), TO_INPUT: (f, y, x), TO_FILTER: (x, y, f)}[self.op]

    def rule(self, target: Target) -> Form:
        return rule(self.op, self.geometry, target)

    def forms(self, target: Target, threads: int) -> set[Form]:
        return all_forms(self.op, self.geometry, target)

    def form(self, numbers: Sequence[int]) -> Form:
        return Form(*numbers)

    def cost(self, form: Form, target: Target, threads: int) -> float:
        return cost(self.op, self.geometry, form, target)
