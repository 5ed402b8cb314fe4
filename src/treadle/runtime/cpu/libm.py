"""Functions taken from the C library, lane by lane: the rare ones that are not worth vectors."""

from __future__ import annotations

from treadle.runtime.cpu.lanes import Lanes

# Kernel function -> C function. All are evaluated in float64, which rounds float32 correctly
# but for rare ties.
_NAMES = {
    "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erfc": "erfc", "tan": "tan",
    "atan2": "atan2", "sin": "sin", "cos": "cos", "pow": "pow",
}  # fmt: skip


def call(v: Lanes, fn: str, *args: str) -> str:
    """``fn(*args)`` by calls of the C library."""
    return _each_lane(v, _NAMES[fn], args)


def remainder(v: Lanes, x: str, y: str) -> str:
    """``fmod(x, y)``, exact."""
    return _each_lane(v, "fmod", (x, y))


def _each_lane(v: Lanes, name: str, args: tuple[str, ...]) -> str:
    fn = v.function
    wide = v.like(bits=64)
    widened = [v.f(a) if v.bits == 64 else v.widen(a) for a in args]
    declaration = f"double @{name}({', '.join(['double'] * len(args))})"
    if not v.count:
        result = fn.call(declaration, ", ".join(f"double {a}" for a in widened))
    else:
        result = "poison"
        for lane in range(v.count):
            parts = [fn.value(f"extractelement {wide.floats} {a}, i64 {lane}") for a in widened]
            one = fn.call(declaration, ", ".join(f"double {p}" for p in parts))
            result = fn.value(f"insertelement {wide.floats} {result}, double {one}, i64 {lane}")
    return result if v.bits == 64 else v.narrow(result)
