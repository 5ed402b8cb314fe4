"""Operations that move elements: shapes, slices, joins, gathers, scatters.

Sizes in attributes are relative to the operand where they can be, so that programs run for
several sizes of a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from tests.runtime.fuzz.chooser import FLOATS, INTS, WIDE, Chooser, NoChoice
from tests.runtime.fuzz.registry import Choice, add

NUMBERS = (*FLOATS, *INTS)
ALL = (*NUMBERS, "bool")


def _transpose(g: Chooser) -> Choice:
    x = g.value(ALL, 2)
    perm = [int(p) for p in g.rng.permutation(len(g.shape(x)))]
    return [x], {"perm": perm if g.chance(0.7) else None}


add("transpose", td.transpose, _transpose, 2.0)


def _merge(x: Any, axis: int) -> Any:
    dims = [td.shape(x)[i] for i in range(len(x.shape))]
    return td.reshape(x, [*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :]])


def _merged(g: Chooser) -> Choice:
    x = g.value(ALL, 2)
    return [x], {"axis": g.integer(0, len(g.shape(x)) - 2)}


add("merge", _merge, _merged, 1.0)
add("flatten", lambda x: td.reshape(x, [-1]), lambda g: ([g.value(ALL, 2)], {}), 0.5)


def _part(x: Any, axis: int, factor: int) -> Any:
    dims = [td.shape(x)[i] for i in range(len(x.shape))]
    return td.reshape(x, [*dims[:axis], dims[axis] // factor, factor, *dims[axis + 1 :]])


def _parted(g: Chooser) -> Choice:
    x = g.value(ALL, 1, 3)
    options = [
        (axis, f)
        for axis, d in enumerate(g.shape(x))
        for f in (1, 2, 3, 4, 5, 7, 8, 16, d)
        if d % f == 0
    ]
    axis, factor = g.pick(options)
    return [x], {"axis": axis, "factor": factor}


add("part", _part, _parted, 0.7)


def _expanded(g: Chooser) -> Choice:
    x = g.value(ALL, 0, 3)
    rank = len(g.shape(x))
    return [x], {"axis": g.integer(-rank - 1, rank)}


add("expand_dims", td.expand_dims, _expanded, 1.0)


def _squeezed(g: Chooser) -> Choice:
    x = g.value(ALL, 1, test=lambda a: 1 in a.shape)
    return [x], {"axis": g.pick([i for i, d in enumerate(g.shape(x)) if d == 1])}


add("squeeze", lambda x, axis: td.squeeze(x, [axis]), _squeezed, 0.7)


def _bound(g: Chooser, size: int) -> slice:
    """A slice that is not empty, in one of its many forms."""
    forms = [slice(None), slice(None, None, -1)]
    if size > 1:
        forms += [
            slice(1, None), slice(None, -1), slice(None, None, 2), slice(1, None, 2),
            slice(-1, 0, -1), slice(None, None, -2), slice(0, 1), slice(-1, None),
        ]  # fmt: skip
    if size > 3:
        start = g.integer(0, size - 2)
        forms += [slice(start, g.integer(start + 1, size)), slice(1, -1), slice(-2, 0, -3)]
    return g.pick(forms)


def _sliced(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    key: list[Any] = []
    for d in g.shape(x):
        key.append(_bound(g, d) if g.chance(0.6) else slice(None))
        if g.chance(0.15):
            key[-1] = g.pick([0, -1, d // 2])
    return [x], {"key": tuple(key)}


add("slice", lambda x, key: x[key], _sliced, 3.0)


def _along(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    return [x], {"axis": g.axis(x) % len(g.shape(x))}


add("reverse", lambda x, axis: td.reverse(x, [axis]), _along, 0.7)


def _rolled(g: Chooser) -> Choice:
    args, attrs = _along(g)
    return args, {**attrs, "shift": g.integer(-3, 3)}


add("roll", td.roll, _rolled, 0.5)


def _repeated(g: Chooser) -> Choice:
    args, attrs = _along(g)
    return args, {**attrs, "repeats": g.integer(1, 3)}


add("repeat", td.repeat, _repeated, 0.4)


def _joined(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    axis = g.integer(0, len(g.shape(x)) - 1)

    def fits(a: Any) -> bool:
        shapes = [list(s) for s in (a.shape, g.shape(x))]
        return len(shapes[0]) == len(shapes[1]) and all(
            d == e for i, (d, e) in enumerate(zip(*shapes, strict=True)) if i != axis
        )

    parts = [x, *(g.alike(x, fits) for _ in range(g.integer(1, 3)))]
    order = [int(p) for p in g.rng.permutation(len(parts))]
    return [parts[p] for p in order], {"axis": axis}


add("concat", lambda *parts, axis: td.concat(parts, axis), _joined, 1.5)


def _stacked(g: Chooser) -> Choice:
    x = g.value(ALL, 0, 3)
    shape = g.shape(x)
    parts = [x, *(g.alike(x, lambda a: a.shape == shape) for _ in range(g.integer(0, 2)))]
    return parts, {"axis": g.integer(-len(shape) - 1, len(shape))}


add("stack", lambda *parts, axis: td.stack(parts, axis), _stacked, 1.0)


def _splitted(g: Chooser) -> Choice:
    x = g.value(ALL, 1, test=lambda a: max(a.shape) > 1)
    axis = g.pick([i for i, d in enumerate(g.shape(x)) if d > 1])
    size = g.shape(x)[axis]
    equal = [k for k in (2, 3, 4) if size % k == 0]
    if equal and g.chance(0.5):
        return [x], {"sizes": g.pick(equal), "axis": axis}
    first = g.integer(1, size - 1)
    return [x], {"sizes": [first, size - first], "axis": axis}


add("split", lambda x, sizes, axis: td.split(x, sizes, axis), _splitted, 1.0)
add(
    "unstack",
    lambda x: td.unstack(x),
    lambda g: ([g.value(ALL, 1, test=lambda a: a.shape[0] <= 5)], {}),
    0.3,
)


def _padded(g: Chooser) -> Choice:
    x = g.value(NUMBERS, 1)
    mode = g.pick(["CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"])
    limits = {"CONSTANT": 3, "REFLECT": min(g.shape(x)) - 1, "SYMMETRIC": min(g.shape(x))}
    limit = min(3, limits[mode])
    paddings = [[g.integer(0, limit), g.integer(0, limit)] for _ in g.shape(x)]
    return [x], {"paddings": paddings, "mode": mode}


add("pad", td.pad, _padded, 1.0)


def _tiled(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    return [x], {"multiples": [g.integer(1, 2) for _ in g.shape(x)]}


add("tile", td.tile, _tiled, 0.6)


def _spread(g: Chooser) -> Choice:
    x = g.value(NUMBERS)
    shape = g.shape(x)
    like = g.value(ALL, len(shape), test=lambda a: _spreads(shape, a.shape))
    return [x, like], {}


def _spreads(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


add("broadcast_to", lambda x, like: td.broadcast_to(x, td.shape(like)), _spread, 0.7)


def _gathered(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    axis = g.integer(0, len(g.shape(x)) - 1)
    shape = [g.pick(g.dims) for _ in range(g.integer(0, 2 if len(g.shape(x)) < 3 else 1))]
    return [x, g.positions(shape, g.shape(x)[axis])], {"axis": axis}


add("gather", lambda x, i, axis: td.gather(x, i, axis=axis), _gathered, 1.0)


def _places(g: Chooser, x: int) -> tuple[int, tuple[int, ...]]:
    """Positions along the first axis, and the shape of what belongs there."""
    count = g.integer(1, 5)
    return g.positions((count, 1), g.shape(x)[0]), (count, *g.shape(x)[1:])


def _taken(g: Chooser) -> Choice:
    x = g.value(ALL, 1)
    return [x, _places(g, x)[0]], {}


add("gather_nd", td.gather_nd, _taken, 0.4)


def _updated(g: Chooser) -> Choice:
    x = g.value((*WIDE, *INTS), 1)
    places, shape = _places(g, x)
    try:
        updates = g.value((g.dtype(x),), test=lambda a: a.shape == shape)
    except NoChoice:
        updates = g.new(shape, g.dtype(x))
    return [x, places, updates], {}


def _update(x: Any, places: Any, updates: Any) -> Any:
    """Where positions coincide the same value is written."""
    return td.tensor_scatter_nd_update(x, places, td.zeros_like(updates) + updates[:1])


add("scatter_add", td.tensor_scatter_nd_add, _updated, 0.5)
add("scatter_update", _update, _updated, 0.5)


def _segments(g: Chooser) -> Choice:
    x = g.value((*WIDE, *INTS), 1)
    count = g.integer(1, 7)
    return [x, g.positions(g.shape(x)[:1], count)], {"count": count}


add(
    "segment_max", lambda x, s, count: td.math.unsorted_segment_max(x, s, count), _segments, 0.3
)
add("segment_sum", lambda x, s, count: td.math.unsorted_segment_sum(x, s, count), _segments, 0.5)


def _hot(g: Chooser) -> Choice:
    x = g.value(INTS, 0, 2)
    return [x], {"depth": g.pick(g.dims), "axis": g.pick([-1, 0]), "dtype": g.pick(WIDE)}


add("one_hot", lambda x, depth, axis, dtype: td.one_hot(x, depth, axis=axis, dtype=dtype), _hot)
add("diag", td.linalg.diag, lambda g: ([g.value((*WIDE, *INTS), 1, 2)], {}), 0.6)
add("diag_part", td.linalg.diag_part, lambda g: ([g.value((*WIDE, *INTS), 2)], {}), 0.6)
add("trace", td.linalg.trace, lambda g: ([g.value(WIDE, 2)], {}), 0.3)
add(
    "eye_like",
    lambda x: x * td.eye(td.shape(x)[-2], td.shape(x)[-1], dtype=x.dtype),
    lambda g: ([g.value(WIDE, 2)], {}),
    0.4,
)
add(
    "positions_of",
    lambda x: td.cast(td.range(td.shape(x)[-1]), x.dtype) + x,
    lambda g: ([g.value((*WIDE, *INTS), 1)], {}),
    0.3,
)


def _adapted(g: Chooser) -> Choice:
    like = g.value(WIDE)
    return [g.value(WIDE), like], {}


def adapt(x: Any, like: Any) -> Any:
    """Something of `x` in the form of `like`."""
    return like + td.cast(td.reduce_max(x), like.dtype)


add("adapt", adapt, _adapted, 0.3)


def _row_of_loop(g: Chooser) -> Choice:
    if g.counter is None or g.trips is None:
        raise NoChoice
    x = g.value(ALL, 1)
    return [x, g.counter], {"direct": g.trips <= g.shape(x)[0]}


def _row(x: Any, i: Any, direct: bool) -> Any:
    return x[i] if direct else x[i % td.shape(x)[0]]


add("row", _row, _row_of_loop, 12.0)


def _set_row(x: Any, i: Any, row: Any, direct: bool) -> Any:
    place = i if direct else i % td.shape(x)[0]
    return td.tensor_scatter_nd_update(x, [[place]], row[None])


def _row_set(g: Chooser) -> Choice:
    if g.counter is None or g.trips is None:
        raise NoChoice
    x = g.value((*WIDE, *INTS), 1)
    shape = g.shape(x)[1:]
    row = g.value((g.dtype(x),), test=lambda a: a.shape == shape)
    return [x, g.counter, row], {"direct": g.trips <= g.shape(x)[0]}


add("set_row", _set_row, _row_set, 4.0)


def _never(g: Chooser) -> Choice:
    raise NoChoice


add("identity_of", lambda x: x, _never, 0.0)  # what a step is replaced by that is left out
