"""Random programs: plain Python = converted with Python values = traced with tensors."""

from __future__ import annotations

import linecache
import random

import numpy as np
import pytest

import treadle as td


def block(rng: random.Random, depth: int, in_loop: bool, indent: str) -> list[str]:
    lines: list[str] = []
    for _ in range(rng.randint(1, 3)):
        lines += statement(rng, depth, in_loop, indent)
    return lines


def statement(rng: random.Random, depth: int, in_loop: bool, indent: str) -> list[str]:
    kind = rng.random()
    inner = indent + "    "
    if depth > 0 and kind < 0.35:
        lines = [f"{indent}if {condition(rng)}:", *block(rng, depth - 1, in_loop, inner)]
        if rng.random() < 0.5:
            lines += [f"{indent}else:", *block(rng, depth - 1, in_loop, inner)]
        return lines
    if depth > 0 and kind < 0.55:
        name = f"i{depth}"
        lines = [f"{indent}for {name} in range({rng.choice(['a % 5', '4', 'b % 3 + 1'])}):"]
        lines += [*block(rng, depth - 1, True, inner), f"{inner}c = c + {name}"]
        if rng.random() < 0.2:
            lines += [f"{indent}else:", *block(rng, 0, in_loop, inner)]
        return lines
    if in_loop and kind < 0.65:
        return [f"{indent}if {condition(rng)}:", inner + rng.choice(["break", "continue"])]
    if kind < 0.7:
        return [f"{indent}if {condition(rng)}:", f"{inner}return {expression(rng)}"]
    name = rng.choice("abc")
    return [f"{indent}{name} = {expression(rng)}"]


def expression(rng: random.Random) -> str:
    left, right = rng.choice("abc"), rng.choice(["a", "b", "c", "1", "7"])
    return f"({left} {rng.choice('+-*')} {right}) % 97"


def condition(rng: random.Random) -> str:
    operator = rng.choice(["<", ">", "==", "!="])
    test = f"{rng.choice('abc')} {operator} {rng.choice(['b', 'c', '3', '20'])}"
    shape = rng.choice(["{0}", "not {0}", "{0} and a > 5", "{0} or c < 9"])
    return shape.format(test)


def program(seed: int):
    rng = random.Random(seed)
    text = "\n".join(
        ["def f(a, b, c):", *block(rng, 3, False, "    "), "    return a * 100 + b + c"]
    )
    filename = f"<random program {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict = {}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


@pytest.mark.parametrize("seed", [*range(120), 1066])
def test_random_program(seed):
    fn, text = program(seed)
    converted = td.autograph.to_graph(fn)
    traced = td.function(fn) if seed < 25 else None
    for args in [(1, 2, 3), (14, 0, 50), (33, 21, 8)]:
        expected = fn(*args)
        assert converted(*args) == expected, text
        if traced is not None:
            assert np.asarray(traced(*map(td.constant, args))) == expected, text
