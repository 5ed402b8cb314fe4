"""Reductions, scans and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from tests.runtime.fuzz.chooser import FLOATS, INTS, WIDE, Chooser, NoChoice
from tests.runtime.fuzz.registry import Choice, add, one_of

NUMBERS = (*FLOATS, *INTS)


def _reduction(dtypes: Any = NUMBERS, low: int = 0) -> Callable[[Chooser], Choice]:
    def choose(g: Chooser) -> Choice:
        x = g.value(dtypes, low)
        return [x], {"axis": g.axes(x), "keepdims": g.chance(0.5)}

    return choose


def _along(dtypes: Any = WIDE) -> Callable[[Chooser], Choice]:
    def choose(g: Chooser) -> Choice:
        x = g.value(dtypes, 1)
        return [x], {"axis": g.axis(x)}

    return choose


add("reduce_sum", td.reduce_sum, _reduction(), 3.0)
add("reduce_mean", td.reduce_mean, _reduction(FLOATS), 1.5, exact=False)
add("reduce_max", td.reduce_max, _reduction(), 1.5)
add("reduce_min", td.reduce_min, _reduction(), 1.0)


def _product(g: Chooser) -> Choice:
    """Of few numbers: whether products of many overflow depends on their order."""
    x = g.value(NUMBERS, test=lambda a: a.size <= 32)
    return [x], {"axis": g.axes(x), "keepdims": g.chance(0.5)}


add("reduce_prod", td.reduce_prod, _product, 0.3)
add("reduce_all", td.reduce_all, _reduction(("bool",)), 0.5)
add("reduce_any", td.reduce_any, _reduction(("bool",)), 0.5)
add("reduce_logsumexp", td.reduce_logsumexp, _reduction(WIDE), 0.7, exact=False)
add("reduce_variance", td.math.reduce_variance, _reduction(WIDE), 0.7, exact=False)
add("count_nonzero", td.math.count_nonzero, _reduction(), 0.3)
add("argmax", td.argmax, _along(NUMBERS), 0.7)
add("argmin", td.argmin, _along(NUMBERS), 0.4)
add("softmax", td.nn.softmax, _along(FLOATS), 1.0, exact=False)
add("log_softmax", td.nn.log_softmax, _along(FLOATS), 1.0, exact=False)
add("l2_normalize", lambda x, axis: td.math.l2_normalize(x, axis), _along(), 0.4, exact=False)


def _layer_norm(x: Any, axis: Any) -> Any:
    mean, variance = td.nn.moments(x, [axis], keepdims=True)
    return (x - mean) * td.math.rsqrt(variance + 0.1)


add("layer_norm", _layer_norm, _along(), 0.8, exact=False)
add("centred", lambda x, axis: x - td.reduce_max(x, axis, keepdims=True), _along(), 0.5)
add("over_sum", lambda x: x / (1.0 + td.reduce_sum(td.abs(x))), one_of(WIDE), 0.5, exact=False)


def _scan(g: Chooser) -> Choice:
    x = g.value((*WIDE, *INTS), 1)
    return [x], {"axis": g.axis(x), "exclusive": g.chance(0.3), "reverse": g.chance(0.3)}


add("cumsum", td.cumsum, _scan, 1.0)
add("cumprod", td.math.cumprod, _scan, 0.2)


def _labels(g: Chooser) -> Choice:
    x = g.value(WIDE, 2, 3)
    shape = g.shape(x)
    return [g.positions(shape[:-1], shape[-1]), x], {}


add(
    "sparse_cross_entropy",
    td.nn.sparse_softmax_cross_entropy_with_logits,
    _labels,
    0.5,
    exact=False,
)


def _distributions(g: Chooser) -> Choice:
    x = g.value(WIDE, 2, 3)
    return [g.alike(x, lambda a: a.shape == g.shape(x)), x], {}


add(
    "cross_entropy",
    lambda labels, x: td.nn.softmax_cross_entropy_with_logits(td.nn.softmax(labels), x),
    _distributions,
    0.3,
    exact=False,
)


def _sorted(g: Chooser) -> Choice:
    x = g.value((*WIDE, *INTS), 1)
    return [x], {"axis": g.axis(x), "direction": g.pick(["ASCENDING", "DESCENDING"])}


add("sort", td.sort, _sorted, 0.3)
add("argsort", lambda x, **k: td.argsort(x, stable=True, **k), _sorted, 0.3)


def _top(g: Chooser) -> Choice:
    x = g.value(WIDE, 1)
    return [x], {"k": g.integer(1, g.shape(x)[-1])}


add("top_k", lambda x, k: tuple(td.math.top_k(x, k)), _top, 0.2)


def _masked(g: Chooser) -> Choice:
    x = g.value(WIDE, 1, 2)
    try:
        mask = g.value(("bool",), 1, test=lambda a: a.shape == g.shape(x)[:1])
    except NoChoice:
        mask = g.new(g.shape(x)[:1], "bool")
    return [x, mask], {}


add("masked_sum", lambda x, mask: td.reduce_sum(td.boolean_mask(x, mask), 0), _masked, 0.3)
