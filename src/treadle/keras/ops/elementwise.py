"""`keras.ops`: functions of each element, and of elements of two tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.config import floatx
from treadle.keras.ops.conversion import (
    by_numpy,
    floats,
    floats_of,
    ints_as_floatx,
    tensor,
    tensors,
    together,
)
from treadle.keras.ops.operations import operation
from treadle.keras.promotion import result_type
from treadle.keras.sparse import taking_sparse

_operation = functools.partial(operation, "numpy")


def _made(
    name: str, function: Callable[..., Any], parameters: tuple[str, ...], doc: str, kind: str = ""
) -> Callable[..., Any]:
    """A function of `keras.ops` of that name, whose parameters are all tensors."""
    one: Callable[..., Any]
    if parameters == ("x",):
        def one(x: Any) -> Any:
            return function(x)
    elif parameters == ("x1", "x2"):
        def one(x1: Any, x2: Any) -> Any:
            return function(x1, x2)
    else:
        def one(x: Any, y: Any) -> Any:
            return function(x, y)
    one.__name__ = one.__qualname__ = name
    one.__doc__ = doc
    return operation("numpy", *parameters, name=kind or None)(one)


def _unary(
    name: str, function: Callable[..., Any], doc: str, prepared: Callable[[Any], Any] = floats,
) -> Callable[..., Any]:  # fmt: skip
    """A function of each element, of what `prepared` makes of the argument."""
    function = taking_sparse(name, function)
    return _made(name, lambda x: function(prepared(x)), ("x",), doc)


def _binary(
    name: str, function: Callable[..., Any], doc: str,
    prepared: Callable[..., tuple[td.Tensor, ...]] = together,
) -> Callable[..., Any]:  # fmt: skip
    """A function of two elements, of what `prepared` makes of the arguments."""
    function = taking_sparse(name, function)
    return _made(name, lambda x1, x2: function(*prepared(x1, x2)), ("x1", "x2"), doc)


# -- one argument ----------------------------------------------------------------------------------

arccos = _unary("arccos", td.math.acos, "The angle whose cosine is x.")
arccosh = _unary("arccosh", td.math.acosh, "The inverse of the hyperbolic cosine.")
arcsin = _unary("arcsin", td.math.asin, "The angle whose sine is x.")
arcsinh = _unary("arcsinh", td.math.asinh, "The inverse of the hyperbolic sine.")
arctan = _unary("arctan", td.math.atan, "The angle whose tangent is x.")
arctanh = _unary("arctanh", td.math.atanh, "The inverse of the hyperbolic tangent.")
ceil = _unary("ceil", td.math.ceil, "The least integer that is not less, as a float.")
cos = _unary("cos", td.cos, "The cosine.")
cosh = _unary("cosh", td.cosh, "The hyperbolic cosine.")
exp = _unary("exp", td.exp, "The exponential.", ints_as_floatx)
exp2 = _unary(
    "exp2", lambda x: td.pow(td.constant(2.0, x.dtype), x), "Two to the power x.", ints_as_floatx
)  # fmt: skip
expm1 = _unary("expm1", td.math.expm1, "``exp(x) - 1``, precise near 0.", ints_as_floatx)
fabs = _unary("fabs", td.abs, "The absolute value, as a float.", ints_as_floatx)
floor = _unary("floor", td.math.floor, "The greatest integer that is not greater, as a float.")
log = _unary("log", td.math.log, "The natural logarithm.")
log10 = _unary(
    "log10", lambda x: td.math.log(x) / td.constant(math.log(10.0), x.dtype),
    "The logarithm to base 10.",
)  # fmt: skip
log1p = _unary("log1p", td.math.log1p, "``log(1 + x)``, precise near 0.")
log2 = _unary(
    "log2", lambda x: td.math.log(x) / td.constant(math.log(2.0), x.dtype),
    "The logarithm to base 2.",
)  # fmt: skip
sin = _unary("sin", td.sin, "The sine.")
sinh = _unary("sinh", td.sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", td.sqrt, "The square root.")
tan = _unary("tan", td.tan, "The tangent.")
tanh = _unary("tanh", td.tanh, "The hyperbolic tangent.")
reciprocal = _unary("reciprocal", td.math.reciprocal, "One over x.", tensor)
negative = _unary("negative", td.negative, "Minus x.", tensor)
copy = _unary("copy", td.identity, "The same values.", tensor)
conjugate = _unary("conjugate", td.math.conj, "The complex conjugate.", tensor)
conj = conjugate
real = _unary("real", td.math.real, "The real part.", tensor)
imag = _unary("imag", td.math.imag, "The imaginary part.", tensor)
bitwise_invert = _unary("bitwise_invert", td.bitwise.invert, "Each bit inverted.", tensor)
bitwise_not = _unary("bitwise_not", td.bitwise.invert, "Each bit inverted.", tensor)


def _absolute(x: Any) -> Any:
    x = tensor(x)
    return x if x.dtype == td.bool or x.dtype.is_unsigned else td.abs(x)


absolute = _unary("absolute", _absolute, "The absolute value.", tensor)
abs = absolute


def _angle(x: Any) -> Any:
    if not x.dtype.is_complex:
        return td.where(x < 0, td.constant(math.pi, x.dtype), td.zeros_like(x))
    return td.math.angle(x)


angle = _unary("angle", _angle, "The angle of complex numbers.")


def _cbrt(x: Any) -> Any:
    x = tensor(x)
    if x.dtype not in (td.bfloat16, td.float16, td.float64):
        x = td.cast(x, "float64" if x.dtype == td.int64 else floatx())
    return td.sign(x) * td.pow(td.abs(x), td.constant(1.0 / 3.0, x.dtype))


cbrt = _unary("cbrt", _cbrt, "The cube root.", tensor)


def _times(factor: float) -> Callable[[Any], td.Tensor]:
    def scaled(x: Any) -> Any:
        x = tensor(x)
        x = td.cast(x, floats_of(x.dtype))
        return x * td.constant(factor, x.dtype)

    return scaled


deg2rad = _unary("deg2rad", _times(math.pi / 180.0), "Degrees as radians.", tensor)
rad2deg = _unary("rad2deg", _times(180.0 / math.pi), "Radians as degrees.", tensor)


def _i0(x: Any) -> Any:
    x = tensor(x)
    if x.dtype not in (td.bfloat16, td.float16):
        x = td.cast(x, "float64" if x.dtype in (td.int64, td.float64) else floatx())
    return td.math.bessel_i0(x)


i0 = _unary("i0", _i0, "The modified Bessel function of order 0.", tensor)


def _sign(x: Any) -> Any:
    return td.cast(td.sign(td.cast(x, td.int64)), x.dtype) if x.dtype.is_unsigned else td.sign(x)


sign = _unary("sign", _sign, "-1, 0 or 1 by the sign.", tensor)


def _signbit(x: Any) -> Any:
    if x.dtype == td.bool:
        return td.zeros_like(x)
    if x.dtype.is_integer:
        return x < td.zeros([], x.dtype)
    return td.bitcast(td.cast(x, td.float32), td.int32) < 0


signbit = _unary("signbit", _signbit, "Whether the sign's bit is set, as of -0.0.", tensor)


def _sinc(x: Any) -> Any:
    turns = x * td.constant(math.pi, x.dtype)
    safe = td.where(td.equal(x, 0), td.ones_like(x), turns)
    return td.where(td.equal(x, 0), td.ones_like(x), td.sin(safe) / safe)


sinc = _unary("sinc", _sinc, "``sin(pi x) / (pi x)``, 1 at 0.")


def _square(x: Any) -> Any:
    return td.square(td.cast(x, td.int32) if x.dtype == td.bool else x)


square = _unary("square", _square, "x times x.", tensor)


def _trunc(x: Any) -> Any:
    if not x.dtype.is_floating:
        return x
    return td.where(x < 0, td.math.ceil(x), td.math.floor(x))


trunc = _unary("trunc", _trunc, "x without its fraction.", tensor)


def _tested(function: Callable[..., Any], otherwise: bool) -> Callable[[Any], td.Tensor]:
    """A question to floats, whose answer for other numbers is `otherwise`."""

    def asked(x: Any) -> Any:
        if x.dtype.is_floating:
            return function(x)
        return td.fill(td.shape(x), otherwise)

    return asked


isfinite = _unary("isfinite", _tested(td.math.is_finite, True), "Whether it is finite.", tensor)
isinf = _unary("isinf", _tested(td.math.is_inf, False), "Whether it is infinite.", tensor)
isnan = _unary("isnan", _tested(td.math.is_nan, False), "Whether it is no number.", tensor)
isneginf = _unary(
    "isneginf", _tested(lambda x: td.equal(x, td.constant(-math.inf, x.dtype)), False),
    "Whether it is minus infinity.", tensor,
)  # fmt: skip
isposinf = _unary(
    "isposinf", _tested(lambda x: td.equal(x, td.constant(math.inf, x.dtype)), False),
    "Whether it is plus infinity.", tensor,
)  # fmt: skip
isreal = _unary(
    "isreal",
    lambda x: td.equal(td.math.imag(x), 0) if x.dtype.is_complex else td.fill(td.shape(x), True),
    "Whether the imaginary part is 0.", tensor,
)  # fmt: skip


def _bools(*values: Any) -> tuple[td.Tensor, ...]:
    return tuple(td.cast(tensor(x), td.bool) for x in values)


logical_not = _unary(
    "logical_not", td.logical_not, "Whether it is false or 0.", lambda x: _bools(x)[0]
)  # fmt: skip


@_operation("x")
@functools.partial(taking_sparse, "round")
def round(x: Any, decimals: int = 0) -> Any:
    """The nearest number with so many digits behind the point, the even one of two."""
    x = tensor(x)
    if decimals == 0:
        return td.round(x)
    if x.dtype.is_integer and decimals > 0:
        return x
    kind = floatx() if x.dtype.is_integer else x.dtype
    factor = td.constant(10.0**decimals, kind)
    return td.cast(td.round(td.cast(x, kind) * factor) / factor, x.dtype)


@_operation("x")
def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """The nearest number between two bounds; bools as int32."""
    x = tensor(x)
    x = td.cast(x, td.int32) if x.dtype == td.bool else x
    return td.clip_by_value(x, tensor(x_min, x.dtype), tensor(x_max, x.dtype))


@_operation("x")
def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Numbers instead of NaN and infinities, which are the dtype's extreme ones when omitted."""
    x = tensor(x)
    if not x.dtype.is_floating:
        return x
    values = (nan, x.dtype.max if posinf is None else posinf,
              x.dtype.min if neginf is None else neginf)  # fmt: skip
    instead = [tensor(np.asarray(value, np.float64), x.dtype) for value in values]
    infinite = td.math.is_inf(x)
    x = td.where(td.math.is_nan(x), instead[0], x)
    x = td.where(infinite & (x > 0), instead[1], x)
    return td.where(infinite & (x < 0), instead[2], x)


# -- two arguments ---------------------------------------------------------------------------------

def _of_bools(function: Callable[..., Any], logical: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers that is `logical` of bools."""
    return lambda a, b: logical(a, b) if a.dtype == td.bool else function(a, b)


subtract = _binary("subtract", td.subtract, "The difference.")
add = _binary("add", _of_bools(td.add, td.logical_or), "The sum; of bools, whether one is true.")
multiply = _binary(
    "multiply", _of_bools(td.multiply, td.logical_and),
    "The product; of bools, whether both are true.",
)  # fmt: skip
maximum = _binary("maximum", _of_bools(td.maximum, td.logical_or), "The greater of two.")
minimum = _binary("minimum", _of_bools(td.minimum, td.logical_and), "The lesser of two.")


def _with_floats(*values: Any) -> tuple[td.Tensor, ...]:
    """The values in their common dtype, which is a floating one."""
    xs = together(*values)
    dtype = result_type(xs[0].dtype, float)
    return tuple(td.cast(x, dtype) for x in xs)


divide = _binary("divide", td.divide, "The quotient, a float.", _with_floats)
true_divide = _binary("true_divide", td.divide, "The quotient, a float.", _with_floats)
divide_no_nan = _binary(
    "divide_no_nan", td.math.divide_no_nan, "The quotient; 0 where the divisor is 0.", _with_floats
)  # fmt: skip


def _floor_divide(a: td.Tensor, b: td.Tensor) -> Any:
    if a.dtype == td.bool:
        return td.cast(td.math.floordiv(td.cast(a, td.int8), td.cast(b, td.int8)), td.bool)
    return td.math.floordiv(a, b)


floor_divide = _binary("floor_divide", _floor_divide, "The quotient, rounded down.")


def _power(a: td.Tensor, b: td.Tensor) -> Any:
    if a.dtype.is_unsigned or a.dtype == td.bool:
        return td.cast(td.pow(td.cast(a, td.int32), td.cast(b, td.int32)), a.dtype)
    return td.pow(a, b)


power = _binary("power", _power, "x1 to the power x2.")


def _numbers(x1: Any, x2: Any) -> tuple[td.Tensor, ...]:
    """The values in their common dtype, bools as int32."""
    a, b = tensors(x1, x2)
    return (td.cast(a, td.int32), td.cast(b, td.int32)) if a.dtype == td.bool else (a, b)


def _mod(a: td.Tensor, b: td.Tensor) -> Any:
    return td.math.floormod(a, b)


def _fmod(a: td.Tensor, b: td.Tensor) -> Any:
    if a.dtype.is_unsigned:
        return td.math.floormod(a, b)
    return td.sign(a) * td.math.floormod(td.abs(a), td.abs(b))


mod = _binary("mod", _mod, "The remainder, of the divisor's sign.", _numbers)
fmod = _binary("fmod", _fmod, "The remainder, of the dividend's sign.", _numbers)


def _over_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    """The other number where one is NaN."""

    def chosen(a: td.Tensor, b: td.Tensor) -> Any:
        found = function(a, b)
        if not a.dtype.is_floating:
            return found
        first, second = td.math.is_nan(a), td.math.is_nan(b)
        return td.where(first, b, td.where(second, a, found))

    return chosen


fmax = _binary(
    "fmax", _over_nan(_of_bools(td.maximum, td.logical_or)), "The greater of two; not NaN if one "
    "is a number.",
)  # fmt: skip
fmin = _binary(
    "fmin", _over_nan(_of_bools(td.minimum, td.logical_and)), "The lesser of two; not NaN if one "
    "is a number.",
)  # fmt: skip

_strong_floats = functools.partial(tensors, beside=(float,))
arctan2 = _binary("arctan2", td.math.atan2, "The angle of the point (x2, x1).", _strong_floats)


def _log_add(base: float) -> Callable[..., td.Tensor]:
    def added(a: td.Tensor, b: td.Tensor) -> Any:
        scale = td.constant(math.log(base), a.dtype)
        difference = a - b
        more = td.math.log1p(td.exp(-td.abs(difference) * scale)) / scale
        return td.where(td.math.is_nan(difference), a + b, td.maximum(a, b) + more)

    return added


logaddexp = _binary(
    "logaddexp", _log_add(math.e), "``log(exp(x1) + exp(x2))``.", _strong_floats
)  # fmt: skip
logaddexp2 = _binary(
    "logaddexp2", _log_add(2.0), "``log2(2 ** x1 + 2 ** x2)``.", _strong_floats
)  # fmt: skip


def _as_floats(x1: Any, x2: Any) -> tuple[td.Tensor, ...]:
    """The values in their common dtype, int64 as float64 and other integers in `floatx`."""
    a, b = tensors(x1, x2)
    if a.dtype == td.bool:
        return a, b
    kind = floats_of(a.dtype)
    return td.cast(a, kind), td.cast(b, kind)


def _heaviside(a: td.Tensor, b: td.Tensor) -> Any:
    if a.dtype == td.bool:
        return td.where(a, a, b)
    return td.where(a < 0, td.zeros_like(a), td.where(a > 0, td.ones_like(a), b))


def _hypot(a: td.Tensor, b: td.Tensor) -> Any:
    a, b = td.abs(a), td.abs(b)
    most, least = td.maximum(a, b), td.minimum(a, b)
    ratio = td.math.divide_no_nan(least, most)
    return most * td.sqrt(td.constant(1.0, a.dtype) + td.square(ratio))


heaviside = _binary("heaviside", _heaviside, "0 below 0, 1 above, x2 at 0.", _as_floats)
hypot = _binary("hypot", _hypot, "The length of the side opposite the right angle.", _as_floats)


def _nextafter(x1: Any, x2: Any) -> Any:
    a, b = tensors(x1, x2, beside=(float,))
    return td.cast(td.math.nextafter(td.cast(a, td.float64), td.cast(b, td.float64)), a.dtype)


nextafter = _made("nextafter", _nextafter, ("x1", "x2"), "The next number towards x2.")


def _integers(name: str, x1: Any, x2: Any) -> tuple[td.Tensor, ...]:
    a, b = tensors(x1, x2)
    if not a.dtype.is_integer:
        raise TypeError(f"{name}: integers are needed, got {a.dtype.name}")
    return a, b


gcd = _binary(
    "gcd", functools.partial(by_numpy, np.gcd), "The greatest common divisor.",
    functools.partial(_integers, "gcd"),
)  # fmt: skip
lcm = _binary(
    "lcm", functools.partial(by_numpy, np.lcm), "The least common multiple.",
    functools.partial(_integers, "lcm"),
)  # fmt: skip


def _ldexp(x1: Any, x2: Any) -> Any:
    a, b = tensor(x1), tensor(x2)
    if not b.dtype.is_integer:
        raise TypeError(f"ldexp: x2 must be an integer, got {b.dtype.name}")
    kind = result_type(a.dtype, b.dtype, float)
    a, b = td.cast(a, kind), td.cast(b, kind)
    found = a * td.pow(td.constant(2.0, a.dtype), b)
    return td.where(td.math.is_inf(a) | td.equal(a, 0), a, found)


ldexp = _made("ldexp", _ldexp, ("x1", "x2"), "x1 times two to the power x2.")

equal = _binary("equal", td.equal, "Whether they are equal.", tensors)
not_equal = _binary("not_equal", td.not_equal, "Whether they differ.", tensors)


def _compared(function: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison, which takes bools as 0 and 1."""
    return lambda a, b: (
        function(td.cast(a, td.int32), td.cast(b, td.int32)) if a.dtype == td.bool
        else function(a, b)
    )  # fmt: skip


greater = _binary("greater", _compared(td.greater), "Whether x1 is greater.", tensors)
greater_equal = _binary(
    "greater_equal", _compared(td.greater_equal), "Whether x1 is not less.", tensors
)  # fmt: skip
less = _binary("less", _compared(td.less), "Whether x1 is less.", tensors)
less_equal = _binary(
    "less_equal", _compared(td.less_equal), "Whether x1 is not greater.", tensors
)  # fmt: skip
logical_and = _binary("logical_and", td.logical_and, "Whether both are true.", _bools)
logical_or = _binary("logical_or", td.logical_or, "Whether one is true.", _bools)
logical_xor = _binary("logical_xor", td.math.logical_xor, "Whether just one is true.", _bools)


def _bits(name: str, function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    return _made(name, lambda x, y: function(*tensors(x, y)), ("x", "y"), doc)


bitwise_and = _bits(
    "bitwise_and", _of_bools(td.bitwise.bitwise_and, td.logical_and), "The bits that both have."
)  # fmt: skip
bitwise_or = _bits(
    "bitwise_or", _of_bools(td.bitwise.bitwise_or, td.logical_or), "The bits that one has."
)  # fmt: skip
bitwise_xor = _bits(
    "bitwise_xor", _of_bools(td.bitwise.bitwise_xor, td.math.logical_xor),
    "The bits that just one has.",
)  # fmt: skip


def _shifted(function: Callable[..., Any]) -> Callable[..., Any]:
    def shifted(x: Any, y: Any) -> Any:
        x = tensor(x)
        return function(x, tensor(y, x.dtype)) if isinstance(y, int) else function(*tensors(x, y))

    return shifted


_left, _right = _shifted(td.bitwise.left_shift), _shifted(td.bitwise.right_shift)
_XY = ("x", "y")
bitwise_left_shift = _made("bitwise_left_shift", _left, _XY, "The bits y places up.")
bitwise_right_shift = _made("bitwise_right_shift", _right, _XY, "The bits y places down.")
left_shift = _made("left_shift", _left, _XY, "The bits y places up.")
right_shift = _made("right_shift", _right, _XY, "The bits y places down.")


def _close(a: td.Tensor, b: td.Tensor, rtol: Any, atol: Any, equal_nan: bool) -> Any:
    if not a.dtype.is_floating:
        return td.equal(a, b)
    near = td.abs(a - b) <= tensor(atol, a.dtype) + tensor(rtol, a.dtype) * td.abs(b)
    found = (td.math.is_finite(a) & td.math.is_finite(b) & near) | td.equal(a, b)
    return found | (td.math.is_nan(a) & td.math.is_nan(b)) if equal_nan else found


@_operation("x1", "x2", "rtol", "atol")
def isclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether numbers differ by no more than ``atol + rtol |x2|``."""
    a, b = tensors(x1, x2)
    return _close(a, b, rtol, atol, equal_nan)


@_operation("x1", "x2", name="AllClose")
def allclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Whether all numbers differ by no more than ``atol + rtol |x2|``."""
    a, b = tensors(x1, x2)
    return td.reduce_all(_close(a, b, rtol, atol, equal_nan))


@_operation("condition", "x1", "x2")
def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """x1 where the condition is true, else x2; the positions of true ones when both are omitted.

    Raises:
        ValueError: just one of them is omitted.
    """
    chosen = td.cast(tensor(condition), td.bool)
    if x1 is not None and x2 is not None:
        then, other = together(x1, x2)
        return td.where(chosen, then, other)
    if x1 is None and x2 is None:
        return positions(chosen)
    raise ValueError(
        "`x1` and `x2` either both should be `None` or both should have non-None value."
    )


def positions(x: td.Tensor) -> list[Any]:
    """The indices of true elements, an int32 vector for each axis."""
    found = td.cast(td.where(x), td.int32)
    return td.unstack(found, len(x.shape), axis=1)


@_operation("condlist", "choicelist", "default")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Of each element that of the first choice whose condition is true, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError("select: as many conditions as choices are needed")
    *choices, found = together(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        found = td.where(td.cast(tensor(condition), td.bool), choice, found)
    return found
