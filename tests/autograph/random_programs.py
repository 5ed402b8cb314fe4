"""Random programs over ints (a, b, c), a float (v) and a vector (w), and their comparison.

A program is plain Python; it runs as it is, converted with Python values, traced into a graph
that the interpreter runs, and compiled. All must give the same.
"""

from __future__ import annotations

import copy
import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.runtime import interpreter

ARGUMENTS = [
    (1, 2, 3, 0.5, np.array([1.0, -2.0, 4.0])),
    (14, 0, 50, -3.0, np.array([0.0, 0.25, 1.0])),
    (33, 21, 8, 6.25, np.array([-1.0, 8.0, 0.5])),
]


class Writer:
    """Writes one program; `rng` decides."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.counters = 0

    def program(self) -> str:
        body = self.block(self.rng.choice([2, 2, 3]), False, "    ")
        last = "    return a * 100 + b + c, v, w"
        return "\n".join(["def f(a, b, c, v, w):", *body, last, ""])

    def block(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            lines += self.statement(depth, in_loop, indent)
        return lines

    def statement(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        kind = self.rng.random()
        inner = indent + "    "
        if depth > 0 and kind < 0.3:
            return self.branches(depth, in_loop, indent)
        if depth > 0 and kind < 0.42:
            return self.for_loop(depth, in_loop, indent)
        if depth > 0 and kind < 0.52:
            return self.while_loop(depth, in_loop, indent)
        if depth > 0 and kind < 0.57:
            return self.match(depth, in_loop, indent)
        if depth > 0 and kind < 0.61:
            return self.function(indent)
        if in_loop and kind < 0.69:
            return [
                f"{indent}if {self.condition()}:",
                inner + self.rng.choice(["break", "continue"]),
            ]
        if kind < 0.73:
            result = f"return {self.integer()}, {self.real()}, {self.vector()}"
            return [f"{indent}if {self.condition()}:", inner + result]
        return [indent + self.assignment()]

    def branches(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        inner = indent + "    "
        test = self.condition() if self.rng.random() < 0.85 else self.walrus()
        lines = [f"{indent}if {test}:", *self.block(depth - 1, in_loop, inner)]
        if self.rng.random() < 0.2:
            lines += [f"{indent}elif {self.condition()}:", *self.block(depth - 1, in_loop, inner)]
        if self.rng.random() < 0.5:
            lines += [f"{indent}else:", *self.block(depth - 1, in_loop, inner)]
        return lines

    def for_loop(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        inner, name = indent + "    ", f"i{depth}"
        count = self.rng.choice(["a % 5", "4", "b % 3 + 1", "1, c % 6", "a % 7, 0, -2"])
        lines = [f"{indent}for {name} in range({count}):", *self.block(depth - 1, True, inner)]
        lines.append(f"{inner}c = c + {name}")
        return lines + self.otherwise(in_loop, indent)

    def while_loop(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        inner = indent + "    "
        self.counters += 1
        count = f"k{self.counters}"
        test = self.rng.choice(
            [
                f"{count} < 4 and ({self.condition()})",
                f"{count} < b % 4",
                f"(a := {self.integer()}) > 30 and {count} < 5",
            ]
        )
        lines = [f"{indent}{count} = 0", f"{indent}while {test}:", f"{inner}{count} = {count} + 1"]
        lines += self.block(depth - 1, True, inner)
        return lines + self.otherwise(in_loop, indent)

    def match(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        subject = self.rng.choice(["a % 4", "(b % 3, a)", "c % 5"])
        lines = [f"{indent}match {subject}:"]
        for _ in range(self.rng.randint(1, 2)):
            pattern = str(self.rng.randint(0, 3))
            if subject.startswith("("):
                pattern = f"({pattern}, m)" if self.rng.random() < 0.5 else f"(m, {pattern})"
                pattern += self.rng.choice(["", f" if m {self.rng.choice('<>')} 9"])
            elif self.rng.random() < 0.4:
                pattern += f" | {self.rng.randint(0, 4)}"
            lines.append(f"{indent}    case {pattern}:")
            lines += self.block(depth - 1, in_loop, indent + " " * 8)
        if self.rng.random() < 0.6:
            lines.append(f"{indent}    case {self.rng.choice(['_', 'm'])}:")
            lines += self.block(depth - 1, in_loop, indent + " " * 8)
        return lines

    def function(self, indent: str) -> list[str]:
        """A function, perhaps one that changes a variable around it, and calls of it."""
        self.counters += 1
        name, inner = f"g{self.counters}", indent + "    "
        lines = [f"{indent}def {name}(a, b):"]
        lines += [f"{inner}if {self.condition(safe=True)}:", f"{inner}    return (a - b) % 31"]
        lines += [f"{inner}for i in range(b % 3):", f"{inner}    a = (a + i * b) % 53"]
        lines.append(f"{inner}return a")
        call = f"{name}({self.rng.choice('abc')}, {self.rng.choice('abc')} % 11)"
        use = self.rng.choice([f"c = {call}", f"a, b = {call}, a", f"b = max({call}, b)"])
        return [*lines, indent + use]

    def walrus(self) -> str:
        name = self.rng.choice("abc")
        first, second = self.comparison(), f"({name} := {self.integer()}) > 20"
        if self.rng.random() < 0.5:
            first, second = second, first
        return f"{first} {self.rng.choice(['and', 'or'])} {second}"

    def otherwise(self, in_loop: bool, indent: str) -> list[str]:
        if self.rng.random() < 0.8:
            return []
        return [f"{indent}else:", *self.block(0, in_loop, indent + "    ")]

    def assignment(self) -> str:
        kind = self.rng.random()
        if kind < 0.15:
            return f"v = {self.real()}"
        if kind < 0.3:
            return f"w = {self.vector()}"
        if kind < 0.38:
            x, y = self.rng.sample("abc", 2)
            return self.rng.choice(
                [
                    f"{x}, {y} = {y}, {self.integer()}",
                    f"{x}, ({y}, *_) = {y}, ({self.integer()}, 1, {x})",
                    f"{x}, w[{self.rng.randint(0, 2)}] = {y}, {self.real()}",
                ]
            )
        if kind < 0.44:
            key = self.rng.choice(["0", "-1", "a % 3", "1:", "w > v"])
            return f"w[{key}] {self.rng.choice(['=', '+=', '*='])} v * 0.25"
        name = self.rng.choice("abc")
        if kind < 0.5:
            return f"{name} += {self.rng.choice(['a', 'b', 'c', '2'])} % 11"
        return f"{name} = {self.integer()}"

    def integer(self) -> str:
        left, right = self.rng.choice("abc"), self.rng.choice(["a", "b", "c", "1", "7"])
        text = f"({left} {self.rng.choice('+-*')} {right}) % 97"
        if self.rng.random() < 0.12:
            return self.rng.choice(
                [
                    f"min({left}, {right}, 40)",
                    f"max({left} % 50, {right})",
                    f"sum([{left}, {right}, 3]) % 89",
                    f"sum(i * {left} for i in range(b % 5)) % 71",
                    f"sum([i for i in range({left} % 7) if i != c])",
                    f"sorted([{left}, {right}, 5])[1]",
                    f"abs({left} - 9) // 2",
                ]
            )
        if self.rng.random() < 0.1:
            return f"({text} if {self.condition()} else {self.rng.choice('abc')})"
        return text

    def real(self) -> str:
        return self.rng.choice(
            ["v * 0.5 + 1.0", "-v", "v - 3.0", "v + w[1] * 0.25", "v / 4.0", "max(w) * 0.5",
             "sum(x for x in w if x > v) * 0.1"]
        )  # fmt: skip

    def vector(self) -> str:
        return self.rng.choice(["w * 0.5", "w + v", "-w", "w - 2.0 * v", "w * w[2] * 0.125"])

    def condition(self, safe: bool = False) -> str:
        test = self.comparison(safe)
        shape = self.rng.choice(["{0}", "{0}", "not {0}", "{0} and {1}", "{0} or {1}"])
        return shape.format(test, self.comparison(safe))

    def comparison(self, safe: bool = False) -> str:
        """A condition; a safe one reads nothing but a and b."""
        if safe:
            return f"{self.rng.choice('ab')} {self.rng.choice('<>')} {self.rng.randint(0, 30)}"
        kind = self.rng.random()
        if kind < 0.05:
            return f"a % 10 in ({self.rng.randint(0, 9)}, b % 10, 3)"
        if kind < 0.08:
            return f"any(x > {self.rng.choice(['v', '1.0'])} for x in w)"
        if kind < 0.18:
            return f"v {self.rng.choice('<>')} {self.rng.choice(['0.0', '1.5', '-4.0'])}"
        if kind < 0.25:
            return f"w[{self.rng.randint(0, 2)}] {self.rng.choice('<>')} v"
        if kind < 0.32:
            return f"{self.rng.randint(0, 9)} < {self.rng.choice('abc')} < 60"
        operator = self.rng.choice(["<", ">", "==", "!=", ">=", "<="])
        return f"{self.rng.choice('abc')} {operator} {self.rng.choice(['b', 'c', '3', '20'])}"


def program(seed: int, writer: type[Writer] = Writer) -> tuple[Callable[..., Any], str]:
    """A function and its text, known to linecache."""
    text = writer(seed).program()
    filename = f"<random program {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


def tensors(args: tuple[Any, ...]) -> list[Any]:
    """Integers as int32, the float and the vector as float64, which Python computes in."""
    return [td.constant(x, td.int32 if isinstance(x, int) else td.float64) for x in args]


def differences(
    seed: int, traced: bool, compiled: bool, writer: type[Writer] = Writer
) -> list[str]:
    """What a program gives differently in some mode; empty if all agree."""
    fn, text = program(seed, writer)
    converted = td.autograph.to_graph(fn)
    function = td.function(fn)
    found = []
    for args in ARGUMENTS:
        expected = fn(*copy.deepcopy(args))
        found += _compare("converted", seed, expected, converted(*copy.deepcopy(args)))
        given = tensors(args)
        if traced:
            graph = function.get_concrete_function(*given).graph
            flat = interpreter.run(graph, [t._buffer for t in given])
            found += _compare("interpreted", seed, expected, flat)
        if compiled:
            found += _compare("compiled", seed, expected, function(*given))
    del linecache.cache[f"<random program {seed}>"]
    return [f"{line}\n{text}" for line in found]


def _compare(mode: str, seed: int, expected: Any, result: Any) -> list[str]:
    pairs = zip(expected, result, strict=True)
    same = all(np.allclose(np.asarray(r), e, rtol=1e-9, atol=1e-9) for e, r in pairs)
    return [] if same else [f"{mode} program {seed}: {result} instead of {expected}"]
