"""Random loops that read the array which they change: what is read where is chosen at random.

``python -m tests.runtime.in_place_loops --programs N --seed S`` compares them with NumPy.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from tests.jitted.differential import compiled_text

CALLS = 6  # of each program, with other numbers
_LINE = ["j", "j", "j", "j + 1", "j - 1", "2 * j", "2 * j + 1", "p", "j + p", "j - q", "p - j",
         "p * j + q", "0", "-1", "n - 1 - j", "j + 17"]  # fmt: skip
_TABLE = ["i, j", "i, j", "i, j", "i, k", "k, j", "j, i", "j, k", "i, p", "p, j", "i, j + 1",
          "i - 1, j", "i, j - 1", "q, j", "i, n - 1 - j", "p, q", "j, j", "k, k",
          "j, p", "i, 2 * j", "i - 1, j - q", "i, p * j + q"]  # fmt: skip
# Places of which iterations often share none, or one only.
_LINE_APART = ["j", "j", "j", "p", "0", "j + p", "j - q", "n - 1 - j", "2 * j", "2 * j + 1"]
_TABLE_APART = ["i, j", "i, j", "i, j", "i, k", "i, k", "k, j", "p, j", "i, p", "j, i", "j, k"]
_RANGES = ["n", "n", "1, n - 1", "n - 1, -1, -1", "n - 2, 0, -1", "0, n, 2", "p, q", "k + 1, n",
           "n // 2", "1, n // 2", "n // 2, 0, -1"]  # fmt: skip
_DTYPES = [np.float64] * 4 + [np.float32, np.int64, np.int32, np.complex128]


class _Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.table = self.random.random() < 0.6
        if self.random.random() < 0.5:
            self.places = _TABLE_APART if self.table else _LINE_APART
        else:
            self.places = _TABLE if self.table else _LINE
        self.dtype = self.random.choice(_DTYPES)
        self.size = self.random.choice([7, 37, 37, 75] if self.table else [7, 37, 150, 700])

    def text(self) -> str:
        lines, indent = ["def f(x, y, n, p, q, k, z):"], "    "
        if self.random.random() < 0.5:  # the program is made for numbers, not for what is in arrays
            lines.append(f"{indent}p, q, k = z[0], z[1], z[2]")
        if self.table:
            outer = self.random.choice(["n - 1", "2", "k, n", "n - 2, -1, -1"])
            lines.append(f"{indent}for i in range({outer}):")
            indent += "    "
            if self.random.random() < 0.2:
                lines.append(f"{indent}k = i")
        lines.append(f"{indent}for j in range({self.random.choice(_RANGES)}):")
        indent += "    "
        for _ in range(self.random.choice([1, 1, 1, 2])):
            lines += [indent + line for line in self.statement()]
        return "\n".join([*lines, "    return x", ""])

    def statement(self) -> list[str]:
        place = self.random.choice(self.places)
        value = self.value(place)
        store = f"x[{place}] = {value}"
        kind = self.random.random()
        if self.dtype is not np.complex128 and kind < 0.15:
            # Nothing is outside in a branch only: where a short loop is written out, a constant
            # position that lies outside is refused whether the branch is taken or not.
            load, other = self.load(), self.load()
            value = self.random.choice([load, other, "old", f"({load} - {other})"])
            return [f"old = x[{place}] - {other}", f"if old < {load}:", f"    x[{place}] = {value}"]
        if kind < 0.25:
            return [f"x[{place}] += {self.load()}"]
        if kind < 0.35:
            return [f"old = {self.load()}", store, f"x[{place}] = x[{place}] - old"]
        return [store]

    def load(self) -> str:
        array = "y" if self.random.random() < 0.15 else "x"
        return f"{array}[{self.random.choice(self.places)}]"

    def value(self, place: str) -> str:
        loads = [self.load() for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.5:
            loads.append(f"x[{place}]")
        text = loads[0]
        for load in loads[1:]:
            if self.dtype is np.complex128:
                text = f"({text} {self.random.choice('+-')} {load})"
            else:
                text = self.random.choice(
                    [f"({text} + {load})", f"({text} - {load})", f"min({text}, {load})",
                     f"max({load}, {text})"]
                )  # fmt: skip
        return text

    def arguments(self, call: int) -> list[Any]:
        rng = np.random.default_rng((self.random.randrange(1 << 30), call))
        size = self.size
        arrays = [self.array(rng, (size, size) if self.table else (size,)) for _ in range(2)]
        near = self.random.choice([(0, size), (0, 2), (0, 3), (-3, 3), (-size, size + 2)])
        numbers = [self.random.randrange(*near) for _ in range(2)]
        numbers.append(self.random.randrange(size))
        return [*arrays, size, *numbers, np.array(numbers)]

    def array(self, rng: np.random.Generator, shape: Sequence[int]) -> Any:
        if self.dtype in (np.int64, np.int32):
            return rng.integers(-9, 9, shape).astype(self.dtype)
        values = rng.integers(-9, 9, shape).astype(self.dtype) / 4
        if self.random.random() < 0.3:
            values[rng.random(shape) < 0.05] = np.nan
            values[rng.random(shape) < 0.05] = -0.0
        return values


def difference(seed: int) -> str | None:
    """What differs between NumPy and the jitted program; None where nothing does."""
    writer = _Writer(seed)
    text = writer.text()
    function = compiled_text(text, f"in place {seed}")
    jitted = td.jit(function)
    for call in range(CALLS):
        arguments = writer.arguments(call)
        wanted, got = (
            [a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2)
        )
        ran = _run(function, wanted)
        if ran != _run(jitted, got):
            return f"errors differ for {arguments[2:]}:\n{text}"
        if ran and not same_bits(wanted[0], got[0]):
            return f"elements differ for {arguments[2:]}:\n{text}"
    return None


def _run(function: Any, arguments: list[Any]) -> bool:
    """Whether a program could run to its end."""
    with np.errstate(all="ignore"):
        try:
            function(*arguments)
        except (IndexError, td.errors.InvalidArgumentError):
            return False
    return True


def same_bits(a: Any, b: Any) -> bool:
    """Whether arrays are equal, with the signs of zeros; any NaN is as good as another."""
    if not np.array_equal(a, b, equal_nan=True):
        return False
    if a.dtype.kind in "iu":
        return True
    parts = ((a.real, b.real), (a.imag, b.imag)) if a.dtype.kind == "c" else ((a, b),)
    return all(
        np.array_equal(np.signbit(x) & ~np.isnan(x), np.signbit(y) & ~np.isnan(y)) for x, y in parts
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faults = 0
    for seed in range(options.seed, options.seed + options.programs):
        found = difference(seed)
        if found is not None:
            faults += 1
            print(f"seed {seed}: {found}", flush=True)
    print(f"{options.programs} programs, {faults} differ")


if __name__ == "__main__":
    main()
