"""The forms among which one may choose for a convolution, and about what they cost.

Each differs from that of the rule in one respect: the tile, the rows of a strip, how far ahead rows
are asked for, whether filters are copied. The order in which sums are added up is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.edges import CALL_CYCLES
from treadle.runtime.cpu.convolution.tiling import (
    Form,
    Geometry,
    columns_of,
    edges_of,
    rule,
    takes_dots,
)
from treadle.runtime.cpu.convolution.winograd_candidates import winograd_cost, winograd_forms
from treadle.runtime.cpu.convolution.winograd_tiling import takes_winograd, winograd_rule
from treadle.runtime.cpu.matmul.tiles import lanes, most_rows
from treadle.runtime.cpu.target import Target

WIDTHS = (1, 2, 3, 4)  # of tiles, in vectors: wider ones are so low that rows come too slowly
_STALL = 8  # one in so many of the cycles that a line needs is not hidden by prefetching


def all_forms(name: str, g: Geometry, target: Target) -> set[Form]:
    """Everything that may be chosen for an op of known sizes, but for the number of images; nothing
    where that is dot products."""
    if takes_winograd(name, g):
        return {winograd_rule(name, g, target), *winograd_forms(name, g, target)}
    first = rule(name, g, target)
    if takes_dots(name, g, target):
        return set()
    return {first, *_others(name, g, first, target)}


def _others(name: str, g: Geometry, first: Form, target: Target) -> Iterator[Form]:
    panels = -(-columns_of(name, g) // lanes(target, g.element))
    edges = edges_of(name, g, target)
    for vectors in WIDTHS:
        if vectors <= max(panels, first.vectors):
            tall = most_rows(target, vectors)
            # Beside edges the heights of tiles are part of the order of sums.
            if edges is None or tall >= first.tall:
                tall = tall if edges is None else first.tall
                yield replace(first, vectors=vectors, tall=tall)
    for ahead in (0, first.ahead // 2, 2 * first.ahead):
        if first.vectors <= 2:  # wider tiles ask for nothing
            yield replace(first, ahead=ahead)
    if name != TO_FILTER:  # its strips are part of the order of sums
        rows: Any = g.y[1] if name == FORWARD else g.x[1]
        strip: Any = first.strip
        for length in (1, strip // 4, strip // 2, 2 * strip, rows):
            yield replace(first, strip=max(1, min(length, rows)))
    if name == FORWARD and g.groups == 1 and panels > first.vectors:
        yield replace(first, pack=1 - first.pack)


def cost(name: str, g: Geometry, form: Form, target: Target) -> float:
    """About how many cycles of one thread an image takes: an order among forms, not a prediction.

    The steps of all tiles, whose multiply-adds, loads, or rows of the right operand from the
    second-level cache take the time; calls of tiles; the right operand, where it is read again for
    each strip from farther away; rows of frames that two strips copy; and lines that arrive too
    late.
    """
    if takes_winograd(name, g):
        return winograd_cost(name, g, form, target)
    t, size, width = target.tuning, g.size, lanes(target, g.element)
    numbers: Any = (g.y[1], g.y[2], g.x[1], g.x[2], g.x[3], form.strip)
    oh, ow, h, w, channels, strip = numbers
    kh, kw, c, o = g.filters
    # Runs of pixels, or of cells of a window, that tiles divide; their length; steps of a tile's
    # sum; bytes of the right operand; rows that strips divide; bytes of a row of a frame.
    if name == FORWARD:
        runs, length, steps = oh, ow, kh * kw * c
        right, rows, row = prod(g.filters) * size, oh, w * channels * size
    elif name == TO_INPUT:
        down, across = g.rows.stride, g.columns.stride
        runs, length, steps = h * across, -(-w // across), -(-kh * kw * o // (down * across))
        right, rows, row = prod(g.filters) * size, h, ow * o * size
    else:
        length, several = g.runs
        runs, steps = kh * several * -(-oh // strip), ow * min(strip, oh)
        right, rows, row = oh * ow * o * size, oh, w * channels * size
    n, columns = columns_of(name, g), form.vectors * width
    panels = -(-n // columns)
    used = -(-n // width) / panels  # vectors across a panel: the last one may be narrower
    tiles = -(-length // form.tall)
    height = length / max(tiles, 1)
    step = max(height * used / t.fma, (height + used) / t.loads, t.latency)
    if steps * columns * size > t.l1.size // 2:
        step = max(step, used * width * size / t.copy)
    cycles = g.groups * runs * tiles * panels * (steps * step + CALL_CYCLES)
    strips = -(-rows // strip)
    lines = strips * right / t.line
    if right > t.near:
        cycles += lines * t.far / _STALL
    elif right > t.l1.size and form.vectors <= 2:
        late = t.far / _STALL if form.ahead or form.pack else t.far / 2
        cycles += lines * late / _STALL
    cycles += strips * (kh - 1) * g.rows.dilation * row / t.copy
    return float(cycles + form.pack * 2 * right / t.copy)
