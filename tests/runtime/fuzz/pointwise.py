"""Elementwise operations of random programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from tests.runtime.fuzz.chooser import FLOATS, INTS, WIDE, Chooser
from tests.runtime.fuzz.registry import Choice, add, one_of


def _pair(dtypes: Any = (*FLOATS, *INTS)) -> Callable[[Chooser], Choice]:
    def choose(g: Chooser) -> Choice:
        x = g.value(dtypes)
        y = g.partner(x)
        return ([x, y] if g.chance(0.5) else [y, x]), {}

    return choose


NUMBERS = (*FLOATS, *INTS)
SMOOTH: dict[str, Callable[[Any], Any]] = {
    "tanh": td.tanh,
    "sigmoid": td.sigmoid,
    "sin": td.sin,
    "cos": td.cos,
    "erf": td.math.erf,
    "softplus": td.nn.softplus,
    "gelu": td.nn.gelu,
    "silu": td.nn.silu,
    "elu": td.nn.elu,
    "exp": lambda x: td.exp(td.minimum(x, 1.0)),
    "expm1": lambda x: td.math.expm1(td.minimum(x, 1.0)),
    "sqrt": lambda x: td.sqrt(td.abs(x) + 0.5),
    "rsqrt": lambda x: td.math.rsqrt(td.square(x) + 1.0),
    "log": lambda x: td.math.log(td.abs(x) + 0.5),
    "log1p": lambda x: td.math.log1p(td.square(x)),
    "reciprocal": lambda x: td.math.reciprocal(td.square(x) + 1.0),
    "scaled": lambda x: x * 0.3,
    "affine": lambda x: 1.5 - 0.7 * x,
    "power": lambda x: (td.abs(x) + 0.5) ** 1.5,
    "leaky_relu": td.nn.leaky_relu,
}
for _name, _run in SMOOTH.items():
    add(_name, _run, one_of(), 0.4, exact=False)

WHOLE: dict[str, Callable[[Any], Any]] = {
    "abs": td.abs,
    "negative": td.negative,
    "square": td.square,
    "sign": td.sign,
    "clip": lambda x: td.clip_by_value(x, -2, 2),
    "plus": lambda x: x + 1,
    "minus": lambda x: 2 - x,
    "twice": lambda x: x * 2,
    "cube": lambda x: x**3,
    "identity": td.identity,
    "stop": td.stop_gradient,
}
for _name, _run in WHOLE.items():
    add(_name, _run, one_of(NUMBERS), 0.5)
for _name, _run in {
    "relu": td.nn.relu,
    "relu6": td.nn.relu6,
    "floor": td.floor,
    "round": td.round,
    "half": lambda x: x * 0.5,
}.items():
    add(_name, _run, one_of(), 0.5)

for _name, _run2 in {
    "add": td.add,
    "subtract": td.subtract,
    "multiply": td.multiply,
    "maximum": td.maximum,
    "minimum": td.minimum,
    "squared_difference": td.math.squared_difference,
    "where_greater": lambda x, y: td.where(x > y, x, y - x),
}.items():
    add(_name, _run2, _pair(), 2.0 if _name in ("add", "multiply", "subtract") else 1.0)
add("divide", lambda x, y: x / (td.abs(y) + 1.0), _pair(FLOATS), 2.0, exact=False)
add("atan2", lambda x, y: td.atan2(x, td.abs(y) + 0.5), _pair(WIDE), 0.3, exact=False)
add("floordiv", lambda x, y: x // (td.abs(y) + 1), _pair(INTS), 0.5)
add("mod", lambda x, y: x % (td.abs(y) + 1), _pair(NUMBERS), 0.5)
add("divide_no_nan", lambda x, y: td.math.divide_no_nan(x, y * y + 1), _pair(WIDE), 0.3, False)

COMPARISONS = (
    td.less, td.less_equal, td.greater, td.greater_equal, td.equal, td.not_equal,
)  # fmt: skip
for _compare in COMPARISONS:
    add(_compare.__name__, _compare, _pair(), 0.4)
for _name, _logical in {
    "logical_and": td.logical_and,
    "logical_or": td.logical_or,
    "logical_xor": td.logical_xor,
}.items():
    add(_name, _logical, _pair(("bool",)), 0.4)
add("logical_not", td.logical_not, one_of(("bool",)), 0.2)


def _where(g: Chooser) -> Choice:
    x = g.value(NUMBERS)
    return [g.partner(x, ("bool",)), x, g.partner(x)], {}


add("where", td.where, _where, 1.5)


def _cast(g: Chooser) -> Choice:
    x = g.value((*NUMBERS, "bool"))
    wanted = [*WIDE, *g.floats, *g.floats, "int32", "int64", "bool"]
    return [x], {"dtype": g.pick([d for d in wanted if d != g.dtype(x)])}


add("cast", lambda x, dtype: td.cast(x, dtype), _cast, 1.5)


def _to_float(g: Chooser) -> Choice:
    return [g.value(("bool", *INTS, "float16", "bfloat16"))], {}


add("to_float", lambda x: td.cast(x, td.float32), _to_float, 1.5)
