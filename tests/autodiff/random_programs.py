"""Random differentiable programs over a matrix, a vector and a number, and the checks of them.

A program nests loops and conditions; its arrays grow, are cut and changed in parts. In float64 its
gradients must be those of finite differences, in eager mode, interpreted and compiled; forward
mode gives what reverse mode does; and gradients of gradients are those of finite differences.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.runtime import interpreter

STEP = 1e-4
Program = Callable[..., Any]
Arrays = Sequence[np.ndarray]


class Writer:
    """Writes one program over a [3, 3] matrix a, a vector v of three and a number s."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = 0
        self.counters: list[str] = []  # of the loops around
        self.arrays: list[str] = []  # TensorArrays that may be written here

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def program(self) -> str:
        lines = ["def f(a, v, s):", "    a, v, s = a * 1.0, v * 1.0, s * 1.0"]
        if self.rng.random() < 0.4:
            lines += self.collected()
        for _ in range(self.rng.randint(1, 2)):
            lines += self.statement("    ", 0)
        lines += self.loop("    ", self.rng.choice([1, 2, 2, 3]))
        lines.append("    return td.reduce_sum(a * a) * 0.3 + td.reduce_sum(td.sin(v)) + s")
        return "\n".join([*lines, ""])

    def collected(self) -> list[str]:
        """An array that nested loops and branches write, and what becomes of it."""
        array, size = self.name("array"), "size=0, dynamic_size=True"
        self.arrays.append(array)
        lines = [f"    {array} = td.TensorArray(td.float64, {size}, clear_after_read=False)"]
        lines.append(f"    {array} = {array}.write(0, {self.pick('v', 'v * s', 'a[1]')})")
        lines += self.loop("    ", self.rng.choice([1, 2, 2]))
        self.arrays.pop()
        use = self.pick(
            f"v = td.tanh(td.reduce_sum({array}.stack() * 0.3, 0))",
            f"s = td.tanh(td.reduce_mean({array}.concat() ** 2))",
            f"v = td.tanh({array}.read({array}.size() - 1)) * v",
        )
        return [*lines, f"    {use}"]

    def loop(self, indent: str, depth: int) -> list[str]:
        inner, before, last = indent + "    ", list[str](), list[str]()
        name = self.name("i")
        kind = self.rng.random()
        self.counters.append(name)
        if kind < 0.65:
            bound = self.pick("2", "3", "3")
            if len(self.counters) > 1 and self.rng.random() < 0.4:
                bound = f"{self.counters[-2]} + 1"
            head = f"for {name} in td.range({bound}):"
            if self.rng.random() < 0.25:
                head = f"for {name} in range({bound}):"
        else:
            before = [f"{indent}{name} = td.constant(0)"]
            more = f" and {self.condition()}" if kind < 0.8 else ""
            head = f"while {name} < 3{more}:"
            last = [f"{inner}{name} += 1"]
        body = list[str]()
        for _ in range(self.rng.randint(1, 3)):
            body += self.statement(inner, depth - 1, True)
        self.counters.pop()
        if not last and self.rng.random() < 0.2:
            leave = self.pick("break", "continue")
            body += [f"{inner}if {self.condition()}:", f"{inner}    {leave}"]
            body += self.statement(inner, 0, True)
        return [*before, indent + head, *body, *last]

    def statement(self, indent: str, depth: int, in_loop: bool = False) -> list[str]:
        kind = self.rng.random()
        if depth > 0 and kind < 0.35:
            return self.loop(indent, depth)
        if kind < 0.6 and (depth > 0 or self.rng.random() < 0.4):
            lines = [f"{indent}if {self.condition()}:"]
            lines += self.statement(indent + "    ", depth - 1, in_loop)
            if self.rng.random() < 0.5:
                lines += [f"{indent}else:", *self.statement(indent + "    ", depth - 1, in_loop)]
            return lines
        if self.arrays and in_loop and self.rng.random() < 0.5:
            array = self.rng.choice(self.arrays)
            value = self.pick("v", "a[0]", "v * s", "td.sin(a[1]) - v", f"{array}.read(0) * v")
            return [f"{indent}{array} = {array}.write({array}.size(), {value})"]
        return [indent + self.assignment()]

    def position(self) -> str:
        """A position along an axis of three."""
        if self.counters and self.rng.random() < 0.6:
            name = self.rng.choice(self.counters)
            return f"td.minimum({name}, 2)" if self.rng.random() < 0.7 else f"{name} % 3"
        return self.pick("0", "1", "-1")

    def assignment(self) -> str:
        kind = self.rng.random()
        if kind < 0.35:
            return f"a = {self.matrix()}"
        if kind < 0.7:
            return f"v = {self.vector()}"
        if kind < 0.85:
            return f"s = {self.number()}"
        k = self.position()
        return self.pick(
            f"v[{k}] = td.tanh({self.number()})",
            f"a[{k}] = {self.vector()}",
            f"a[:, {k}] += v * 0.2",
            f"v[1:] *= {self.number()}",
            f"a[{k}, {self.position()}] = s * 0.5",
            f"v[:{k} + 1] = td.sin(v[:{k} + 1])" if "-" not in k else "v[:2] = v[1:]",
        )

    def matrix(self) -> str:
        return self.pick(
            "td.tanh(a @ a)", "a * 0.5 + td.transpose(a) * s * 0.2", "td.nn.softmax(a)",
            "a - td.reduce_mean(a, 0)", "td.sin(a) + v", "td.matmul(a, a, transpose_b=True) * 0.2",
            "td.tensordot(v, v, 0) * 0.3 - a", "td.where(a > s, a * 0.7, td.sin(a))",
            "td.concat([a[1:], v[None]], 0)", "td.stack([v, a[0], a[2]], 1) * 0.6",
            "td.maximum(a, td.reduce_mean(a)) * 0.8", "td.reverse(a, [1]) * td.sigmoid(a)",
            "td.cumsum(a, 1) * 0.4", "td.gather(a, [2, 0, 1])",
            "td.einsum('ij,jk->ki', a, a) * 0.3",
            "td.linalg.band_part(a, 1, 0) + 0.1 * v", "td.roll(a, 1, 0) - 0.2 * s",
            f"td.tensor_scatter_nd_add(a, [[{self.rng.randint(0, 2)}, 1]], [s * 0.3])",
        )  # fmt: skip

    def vector(self) -> str:
        k = self.position()
        return self.pick(
            "td.tanh(td.linalg.matvec(a, v))", f"a[{k}] * 0.7", f"a[:, {k}] - 0.3 * v",
            "td.reduce_sum(a * v, 1) * 0.3", "v * td.sigmoid(s)", "td.sin(v) + 0.1 * s",
            "td.nn.softmax(v)", "v / td.sqrt(1.0 + td.reduce_sum(v * v))", "td.sort(v) * 0.9",
            "td.concat([v[1:], v[:1]], 0)", "td.where(v > s, v, 0.5 * v)", "td.cumsum(v) * 0.5",
            "td.reduce_max(a, 1) * 0.6", "td.clip_by_value(v, -0.9, 0.8)", "td.exp(-v * v)",
            "td.linalg.diag_part(a)", f"td.gather(v, [{k.strip('-')}, 0, 1])",
            "td.math.log(1.5 + v * v)", "td.linalg.matvec(td.transpose(a), td.tanh(v))",
        )  # fmt: skip

    def number(self) -> str:
        k = self.position()
        return self.pick(
            "td.tanh(s) + 0.2", "td.reduce_mean(a * a)", f"v[{k}] * 0.6 + s * 0.3",
            f"a[{k}, {self.position()}] * s", "td.tensordot(v, td.sin(v), 1)", "td.norm(v) * 0.4",
            "td.reduce_logsumexp(v) * 0.5", "s * td.reduce_sum(td.sigmoid(v)) * 0.3",
            "td.linalg.trace(a) * 0.4", "td.reduce_prod(v + 1.5) * 0.1", "td.cos(s * v[0])",
        )  # fmt: skip

    def condition(self) -> str:
        bound = round(self.rng.uniform(-0.5, 0.8), 3)
        k = self.position()
        test = self.pick(
            f"s > {bound}", f"v[{k}] < {bound}", f"td.reduce_sum(v) > {bound}",
            f"td.reduce_mean(a) < {bound}", f"a[{k}, 1] > v[{k}]",
        )  # fmt: skip
        if self.counters and self.rng.random() < 0.3:
            return f"{self.counters[-1]} > 0"
        return f"not ({test})" if self.rng.random() < 0.15 else test


def program(seed: int) -> tuple[Program, str]:
    """A function and its text, known to linecache."""
    text = Writer(seed).program()
    filename = f"<differentiable program {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"td": td}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


def gradient(f: Program, xs: Sequence[Any]) -> list[Any]:
    """The derivatives of a number by each of its arguments, by reverse mode."""
    with td.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return list(tape.gradient(y, xs, unconnected_gradients=td.UnconnectedGradients.ZERO))


def slope(f: Program, xs: Sequence[Any], direction: Sequence[Any]) -> Any:
    """The derivative along a direction, by forward mode."""
    with td.autodiff.ForwardAccumulator(xs, direction) as forward:
        y = f(*xs)
    return forward.jvp(y, td.UnconnectedGradients.ZERO)


def curvature(f: Program, xs: Sequence[Any], direction: Sequence[Any]) -> list[Any]:
    """The derivatives of the slope along a direction by each argument."""

    def inner(*given: Any) -> Any:
        parts = zip(gradient(f, given), direction, strict=True)
        return td.add_n([td.reduce_sum(g * d) for g, d in parts])

    return gradient(inner, xs)


def difference_quotient(f: Program, xs: Arrays, direction: Arrays) -> np.ndarray | None:
    """The derivative of f, arrays as one vector, from its values at four points; None where f is
    not smooth between them."""

    def at(step: float) -> np.ndarray:
        found = f(*(td.constant(x + step * d) for x, d in zip(xs, direction, strict=True)))
        return np.concatenate([np.ravel(y) for y in td.nest.flatten(found)])

    def quotient(h: float) -> np.ndarray:
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    found, nearer = quotient(STEP), quotient(STEP / 7)
    smooth = np.allclose(found, nearer, rtol=1e-5, atol=1e-6 * (1 + np.abs(found).max()))
    return found if smooth else None


def differences(seed: int, compiled: bool, second: bool) -> list[str] | None:
    """What is wrong with the derivatives of a program; None where it has none."""
    f, text = program(seed)
    f = td.autograph.to_graph(f)
    rng = np.random.default_rng(seed)
    xs, direction = ([rng.standard_normal(d) * 0.7 for d in ((3, 3), (3,), ())] for _ in range(2))
    inputs, along = [list(map(td.constant, z)) for z in (xs, direction)]
    check = _Check(seed, text)
    eager = gradient(f, inputs)
    ways: list[tuple[str, Program, Sequence[Any], Any, float]] = [
        ("reverse mode", lambda *z: gradient(f, z), inputs, eager, 1e-9)
    ]
    expected = difference_quotient(f, xs, direction)
    if expected is None:
        return None
    reverse = sum(np.sum(g.numpy() * d) for g, d in zip(eager, direction, strict=True))
    check("eager gradient and difference quotient", reverse, expected[0], 1e-4)
    forward: Program = lambda *z: slope(f, z[:3], z[3:])
    check("eager forward mode", forward(*inputs, *along), reverse, 1e-9)
    ways.append(("forward mode", forward, [*inputs, *along], reverse, 1e-9))
    if second:
        quotient = difference_quotient(lambda *z: gradient(f, z), xs, direction)
        if quotient is not None:
            bent: Program = lambda *z: curvature(f, z[:3], z[3:])
            check("eager second order", bent(*inputs, *along), quotient, 1e-4)
            ways.append(("second order", bent, [*inputs, *along], quotient, 1e-4))
    for name, way, given, result, bound in ways:
        function = td.function(way)
        graph = function.get_concrete_function(*given).graph
        found = interpreter.run(graph, [z._buffer for z in given])
        check(f"interpreted {name}", found, result, bound)
        if compiled:
            check(f"compiled {name}", function(*given), result, bound)
    del linecache.cache[f"<differentiable program {seed}>"]
    return check.found


class _Check:
    """Notes numbers that differ."""

    def __init__(self, seed: int, text: str) -> None:
        self.seed, self.text, self.found = seed, text, list[str]()

    def __call__(self, what: str, found: Any, expected: Any, bound: float) -> None:
        a, b = (
            np.concatenate([np.ravel(np.asarray(y)) for y in td.nest.flatten(z)])
            for z in (found, expected)
        )
        if not np.allclose(a, b, rtol=bound, atol=bound * (1 + np.abs(b).max())):
            self.found.append(f"{self.seed}: {what}: {a} instead of {b}\n{self.text}")
