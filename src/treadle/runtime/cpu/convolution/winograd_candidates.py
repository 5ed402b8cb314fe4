"""The forms among which one may choose for short convolutions, and about what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from treadle.runtime.cpu.convolution import TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.edges import CALL_CYCLES
from treadle.runtime.cpu.convolution.points import PLANES
from treadle.runtime.cpu.convolution.tiling import Form, Geometry
from treadle.runtime.cpu.convolution.winograd_tiling import (
    blocks_of,
    row_bytes,
    tiles_of,
    winograd_rule,
)
from treadle.runtime.cpu.matmul.tiles import lanes, most_rows
from treadle.runtime.cpu.target import Target

WIDTHS = (1, 2, 3, 4)  # of tiles, in vectors: wider ones are so low that rows come too slowly


def winograd_forms(name: str, g: Geometry, target: Target) -> Iterator[Form]:
    """Forms beside that of the rule. The strips of filter gradients are part of the order of
    sums."""
    first = winograd_rule(name, g, target)
    c, o = g.filters[2:]
    columns = {TO_INPUT: c, TO_FILTER: max(blocks_of(o))}.get(name, o)
    panels = -(-columns // lanes(target, g.element))
    for vectors in WIDTHS:
        if vectors <= panels:
            yield replace(first, vectors=vectors, tall=most_rows(target, vectors))
    if name != TO_FILTER:
        strip: Any = first.strip
        for length in (1, strip // 4, strip // 2, 2 * strip):
            yield replace(first, strip=max(1, length))


def winograd_cost(name: str, g: Geometry, form: Form, target: Target) -> float:
    """About how many cycles of one thread an image takes, but for the transforms, which all forms
    have alike: an order among forms, not a prediction.

    The steps of all register tiles; the right operands, which come from the second-level cache
    for each strip, and what lies behind it where a strip's rows do not stay there.
    """
    t, (c, o) = target.tuning, g.filters[2:]
    strip: Any = form.strip
    th, tw = tiles_of(name, g)
    rows, columns, steps = strip * tw, c if name == TO_INPUT else o, o if name == TO_INPUT else c
    if name == TO_FILTER:
        rows, columns, steps = c, o, rows
    strips = th / strip
    used = min(form.vectors, columns / lanes(target, g.element))
    panels = -(-columns // (form.vectors * lanes(target, g.element)))
    tiles = -(-rows // form.tall)
    height = rows / tiles
    step = max(height * used / t.fma, (height + used) / t.loads, t.latency)
    cycles = strips * PLANES * panels * tiles * (steps * step + CALL_CYCLES)
    cycles += strips * PLANES * c * o * g.size / t.copy
    outside = max(0, strip * row_bytes(name, g) - t.l2.size // 2)
    return float(cycles + strips * outside / t.line * t.far)
