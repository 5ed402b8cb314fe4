"""Random programs of loops over Python ranges, lists and the like, and of `while` loops that count:
rolled and unrolled they give the same."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np

import treadle as td
from treadle.autograph.operators import python_loops
from treadle.core.switches import disabled

SIZE = 8


class Writer:
    """Writes one program over a vector v, a matrix m, ints k and j, a float p and a number s."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.loops: list[str] = []
        self.floats: list[str] = []  # variables of loops that are floats

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def program(self) -> str:
        lines = ["    k, p, s, u = 1, 0.5, 0.0, v * 1.0"]
        for _ in range(self.rng.randint(1, 2)):
            lines += self.loop("    ", 2)
        lines.append("    return v, m, u, s, k, p")
        return "\n".join(["def f(v, m):", *lines, ""])

    def loop(self, indent: str, depth: int) -> list[str]:
        name = "ijl"[len(self.loops)]
        outer = self.loops[-1] if self.loops else None
        bounds = [
            f"{self.rng.randint(6, SIZE)}",
            f"1, {SIZE}",
            f"{SIZE - 1}, -1, -1",
            f"0, {SIZE}, 2",
        ]
        if outer is not None:
            bounds += [outer, f"{outer} + 1", f"{outer}, {SIZE}"]
        before, head, first = self.head(name, self.rng.choice(bounds))
        self.loops.append(name)
        body = [f"{indent}    {line}" for line in first]
        for _ in range(self.rng.randint(1, 4)):
            body += self.statement(indent + "    ", depth - 1)
        self.loops.pop()
        self.floats = [f for f in self.floats if not f.startswith(name)]
        lines = [*(indent + line for line in before), indent + head, *body]
        if self.rng.random() < 0.1:
            lines += [f"{indent}else:", f"{indent}    s = s + 1.0"]
        return lines

    def head(self, name: str, bounds: str) -> tuple[list[str], str, list[str]]:
        """What comes before the loop, its first line, and what its body begins with."""
        kind = self.rng.random()
        if kind < 0.55:
            return [], f"for {name} in range({bounds}):", []
        if kind < 0.65:
            return [f"{name} = -1"], f"while {name} < {SIZE - 1}:", [f"{name} += 1"]
        if kind < 0.75:
            return [], f"for {name} in [2, 0, 1, 7, 3, 3, 5]:", []
        self.floats.append(f"{name}w")
        items = self.pick(
            "WEIGHTS", "reversed(WEIGHTS)", "[0.5 * e for e in WEIGHTS]", "np.linspace(0, 1, 8)",
            "[float(e) for e in range(7)]",
        )  # fmt: skip
        if kind < 0.85:
            return [], f"for {name}, {name}w in enumerate({items}):", []
        if kind < 0.95:
            return [], f"for {name}, {name}w in zip(range({bounds}), {items}):", []
        self.floats.append(f"{name}r[1]")
        return [], f"for {name}, ({name}w, {name}r) in enumerate(zip({items}, ROWS)):", []

    def statement(self, indent: str, depth: int) -> list[str]:
        kind = self.rng.random()
        if depth > 0 and kind < 0.22:
            return self.loop(indent, depth)
        if kind < 0.42:
            lines = [f"{indent}if {self.condition()}:", *self.simple(indent + "    ")]
            if self.rng.random() < 0.5:
                lines += [f"{indent}else:", *self.simple(indent + "    ")]
            return lines
        if kind < 0.5:
            return [
                f"{indent}if {self.condition()}:",
                f"{indent}    {self.pick('break', 'continue')}",
            ]
        return self.simple(indent)

    def condition(self) -> str:
        i = self.rng.choice(self.loops)
        return self.pick(
            f"{i} % 3 == 1", f"{i} > 4", f"{i} == 5 or k > 9", f"v[{i}] > s", "k % 2 == 0",
            f"not {i} < 2", f"{i} >= 0", "p > 0.2", f"td.reduce_sum(u) > {i}",
        )  # fmt: skip

    def simple(self, indent: str) -> list[str]:
        i = self.rng.choice(self.loops)
        return [indent + self.pick(
            f"v = v * 0.5 + {self.number()}", f"v[{i}] = v[{i}] * {self.number()}",
            f"v[{i}] += v[{i} - 1]", f"s = s + v[{i}] * {self.number()}", "s = s * 0.5",
            f"s += td.reduce_max(v[:3]) * {i}", "k += 2", f"k = (k * 3 + {i}) % 17", "p *= 0.75",
            f"p = p / 2 + {i} * 0.1", f"u = td.minimum(u, {self.number()}) + v", "u, v = v, u",
            f"m[{i}, {self.rng.choice(self.loops)}] = v[{i}] * 0.1 + {self.number()}",
            f"m[{i}] = m[{i}] * 0.5 + v", f"m[1:3, {i}] = m[{i}, 1:3] + p",
            f"v = v + m[{i}] * {self.number()}", f"s = m[{i}, k % {SIZE}] - s",
            f"u = u * 0.9 + np.sqrt({i} + 1.0)", f"s = {self.number()}", f"k = {i}",
            f"v[k % {SIZE}] = p", f"u = u + len([x for x in range({i} % 3)])",
            f"v = helper(v, {i})", "s = s + int(p * 10) * 0.125",
        )]  # fmt: skip

    def number(self) -> str:
        i = self.rng.choice(self.loops)
        if self.floats and self.rng.random() < 0.3:
            return self.rng.choice(self.floats)
        return self.pick(
            f"WEIGHTS[{i} % 8]", i, f"({i} + 1) / 3", f"math.sin({i})", "p", "k",
            f"({i} * {i} - k)", f"max({i}, 3)",
            f"min({i} // 2, k)", f"abs({i} - 4)", f"2.0 ** -{i}", f"(1.0 if {i} > 2 else 0.5)",
            f"float({i} % 4)", f"round(p * {i}, 1)",
        )  # fmt: skip


HEADER = """import math
import numpy as np
import treadle as td

WEIGHTS = [0.1, 0.7, -0.3, 0.25, 1.5, 0.0, 0.9, -1.0]
ROWS = np.arange(16.0).reshape(8, 2) / 7.0


def helper(x, i):
    y = x * 0.5 + i
    return y if i != 2 else y - 1.0


"""


def program(seed: int) -> Any:
    """The function and its text."""
    text = HEADER + Writer(seed).program()
    name = f"<random loop {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "random_loops"}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


def outcome(f: Any, args: Any) -> Any:
    function = td.function(f)
    try:
        results = td.nest.flatten(function(*args))
    except Exception as error:
        return type(error).__name__, []
    loops = function.get_concrete_function(*args).loops
    return [np.asarray(r) for r in results], loops


def difference(seed: int) -> tuple[str, int]:
    """What differs between the program rolled and unrolled ("" for nothing), and how many of its
    loops were rolled."""
    f, text = program(seed)
    random_state = np.random.default_rng(seed)
    args = (td.constant(random_state.normal(size=SIZE).astype("f4")),
            td.constant(random_state.normal(size=(SIZE, SIZE)).astype("f4")))  # fmt: skip
    least, python_loops.FEWEST_OPERATIONS = python_loops.FEWEST_OPERATIONS, 0
    try:
        found, loops = outcome(f, args)
    finally:
        python_loops.FEWEST_OPERATIONS = least
    with disabled("rolled_loops"):
        wanted, _ = outcome(f, args)
    rolled = sum(n.rolled for n in loops)
    if isinstance(found, str) or isinstance(wanted, str):
        same = type(found) is type(wanted) and found == wanted
    else:
        same = all(
            a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
            for a, b in zip(found, wanted, strict=True)
        )
    return ("" if same else f"{text}\nrolled: {found}\nunrolled: {wanted}"), rolled
