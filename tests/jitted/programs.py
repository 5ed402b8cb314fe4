"""Random NumPy programs: text, and the arguments that it is called with.

A program has float and int arrays among its arguments, makes views, swaps, copies and new arrays of
other dtypes, changes arrays in place, reads with index arrays and masks, and has loops whose bounds
depend on outer counters, branches on values, and helper functions that write their arguments. All
of it stays where NumPy's result is defined: no index out of range, no division by zero.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

N = 7  # the length of every vector and the side of every matrix
FLOATS = ("float64", "float32")
INTS = ("int64", "int32", "uint8")
_HELPERS = '''
def helper_scale(v, s):
    v *= s
    return v

def helper_shift(v):
    v[1:] += v[:-1]

def helper_norm(v):
    t = 0.0
    for q in range(v.shape[0]):
        t += v[q] * 0.5
    return t
'''


class Generator:
    """Writes one program.

    Attributes:
        vectors, matrices, scalars, ints: names of variables by what they hold.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.vectors: dict[str, str] = {}
        self.matrices: dict[str, str] = {}
        self.scalars: list[str] = []
        self.ints: list[str] = []  # ints in [0, N)
        self.count = 0

    def fresh(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def pick(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * (depth + 1) + line)

    # -- expressions -------------------------------------------------------------------------

    def index(self) -> str:
        kind = self.random.random()
        if self.ints and kind < 0.6:
            name = self.pick(self.ints)
            return self.pick([name, f"{N - 1} - {name}", f"-1 - {name}", f"({name} * 3) % {N}"])
        return str(self.random.randrange(-N, N))

    def number(self) -> str:
        choices = ["0.5", "2", "-1.25", "3", "0.1"]
        if self.scalars:
            choices += self.scalars * 2
        if self.vectors:
            choices.append(f"{self.pick(self.vectors)}[{self.index()}]")
        if self.matrices:
            choices.append(f"{self.pick(self.matrices)}[{self.index()}, {self.index()}]")
        if self.ints:
            choices.append(self.pick(self.ints))
        return self.pick(choices)

    def vector(self, depth: int = 0) -> str:
        options = list(self.vectors)
        if self.matrices:
            m = self.pick(self.matrices)
            options += [f"{m}[{self.index()}]", f"{m}[:, {self.index()}]", f"{m}.T[{self.index()}]"]
        if depth < 2:
            a = self.vector(depth + 1)
            options += [
                f"({a} {self.pick('+-*')} {self.number()})",
                f"({a} {self.pick('+-')} {self.vector(depth + 1)})",
                f"np.{self.pick(['abs', 'negative', 'square'])}({a})",
                f"np.where({a} > {self.number()}, {a}, {self.number()})",
                f"np.{self.pick(['minimum', 'maximum'])}({a}, {self.number()})",
                f"{a}[::-1]",
                f"np.sort({a})",
                f"np.cumsum({a})",
            ]
            if self.vectors:
                v = self.pick(self.vectors)
                options.append(f"{v}[np.array([{', '.join(str(self.random.randrange(N)) for _ in range(N))}])]")  # noqa: E501
                options.append(f"np.roll({v}, {self.random.randrange(-3, 4)})")
        return self.pick(options) if options else f"np.ones({N})"

    def reduced(self) -> str:
        if self.matrices and self.random.random() < 0.4:
            return f"{self.pick(self.matrices)}.{self.pick(['sum', 'max', 'min', 'mean'])}()"
        v = self.vector()
        return self.pick([f"({v}).sum()", f"({v}).max()", f"np.mean({v})", f"np.dot({v}, {v})"])

    # -- statements --------------------------------------------------------------------------

    def block(self, depth: int, size: int) -> None:
        known = dict(self.vectors), dict(self.matrices), list(self.scalars), list(self.ints)
        before = len(self.lines)
        for _ in range(size):
            self.statement(depth)
        if len(self.lines) == before:
            self.emit(depth, "pass")
        if depth:  # what a block makes may not be there after it
            self.vectors, self.matrices, self.scalars, self.ints = known

    def statement(self, depth: int) -> None:
        kinds = [
            self.assign_item, self.assign_item, self.update_slice, self.update_slice,
            self.update_whole, self.new_vector, self.view, self.accumulate, self.masked,
            self.swap, self.call_helper, self.copy, self.cast, self.rows, self.scatter,
        ]  # fmt: skip
        if depth < 2:
            kinds += [self.loop, self.loop, self.branch, self.while_loop]
        self.pick(kinds)(depth)

    def assign_item(self, depth: int) -> None:
        if self.matrices and self.random.random() < 0.5:
            m = self.pick(self.matrices)
            self.emit(depth, f"{m}[{self.index()}, {self.index()}] {self.pick(['=', '+='])} {self.whole(m)}")  # noqa: E501
        elif self.vectors:
            v = self.pick(self.vectors)
            self.emit(depth, f"{v}[{self.index()}] {self.pick(['=', '+=', '-='])} {self.whole(v)}")

    def whole(self, name: str) -> str:
        """A number that an array of any dtype takes as NumPy's assignment converts it."""
        dtype = {**self.vectors, **self.matrices}[name]
        if dtype in FLOATS:
            return self.number()
        return self.pick([str(self.random.randrange(4)), *self.ints])

    def update_slice(self, depth: int) -> None:
        if not self.vectors:
            return
        v = self.pick(self.vectors)
        a, b = sorted(self.random.sample(range(N + 1), 2))
        if self.vectors[v] in FLOATS:
            width = b - a
            shift = self.random.randrange(0, N - width + 1)
            w = self.pick(self.vectors)
            value = self.pick([f"{w}[{shift}:{shift + width}]", self.number(), f"{w}[{a}:{b}] * {self.number()}"])  # noqa: E501
            self.emit(depth, f"{v}[{a}:{b}] {self.pick(['=', '+=', '-=', '*='])} {value}")
        elif self.ints:
            i = self.pick(self.ints)
            self.emit(depth, f"{v}[{i}:] {self.pick(['=', '+='])} {self.random.randrange(3)}")

    def update_whole(self, depth: int) -> None:
        names = [n for n, d in {**self.vectors, **self.matrices}.items() if d in FLOATS]
        if names:
            self.emit(depth, f"{self.pick(names)} {self.pick(['+=', '-=', '*='])} {self.number()}")

    def new_vector(self, depth: int) -> None:
        name = self.fresh("v")
        made = self.pick([self.vector(), f"np.zeros({N})", f"np.full({N}, {self.number()})",
                          f"np.arange({N}) * {self.number()}"])  # fmt: skip
        self.emit(depth, f"{name} = {made} + 0.0")
        self.vectors[name] = "float64"

    def view(self, depth: int) -> None:
        if self.matrices and self.random.random() < 0.6:
            m = self.pick(self.matrices)
            name = self.fresh("w")
            part = self.pick([f"{m}[{self.index()}]", f"{m}[:, {self.index()}]", f"{m}.T[{self.index()}]"])  # noqa: E501
            self.emit(depth, f"{name} = {part}")
            self.vectors[name] = self.matrices[m]
        elif self.vectors:
            v = self.pick(self.vectors)
            name = self.fresh("w")
            self.emit(depth, f"{name} = {self.pick([v, f'{v}[:]', f'{v}[::-1]', f'{v}.reshape({N})'])}")  # noqa: E501
            self.vectors[name] = self.vectors[v]

    def accumulate(self, depth: int) -> None:
        if self.scalars and self.random.random() < 0.5:
            self.emit(depth, f"{self.pick(self.scalars)} += {self.reduced()}")
        elif depth == 0:
            name = self.fresh("s")
            self.emit(depth, f"{name} = {self.pick([self.reduced(), '0.0', '0', '1'])}")
            self.scalars.append(name)

    def masked(self, depth: int) -> None:
        names = [n for n, d in self.vectors.items() if d in FLOATS]
        if names:
            v = self.pick(names)
            test = f"{v} {self.pick('<>')} {self.number()}"
            self.emit(depth, f"{v}[{test}] {self.pick(['=', '+=', '*='])} {self.number()}")

    def swap(self, depth: int) -> None:
        same: dict[str, list[str]] = {}
        for name, dtype in self.vectors.items():
            same.setdefault(dtype, []).append(name)
        pairs = [names for names in same.values() if len(names) > 1]
        if pairs:
            a, b = self.random.sample(self.pick(pairs), 2)
            self.emit(depth, self.pick([f"{a}, {b} = {b}, {a}"] * 3 + [f"{a} = {b}", f"{a} = {b} * 1"]))  # noqa: E501

    def call_helper(self, depth: int) -> None:
        names = [n for n, d in self.vectors.items() if d in FLOATS]
        if not names:
            return
        v = self.pick(names)
        kind = self.random.randrange(3)
        if kind == 0:
            self.emit(depth, f"helper_scale({v}, {self.pick(['0.5', '-1.0', '1.5'])})")
        elif kind == 1:
            self.emit(depth, f"helper_shift({v})")
        elif self.scalars:
            self.emit(depth, f"{self.pick(self.scalars)} += helper_norm({v})")

    def copy(self, depth: int) -> None:
        if self.vectors:
            v, name = self.pick(self.vectors), self.fresh("c")
            self.emit(depth, f"{name} = {self.pick([f'{v}.copy()', f'np.copy({v})', f'np.array({v})'])}")  # noqa: E501
            self.vectors[name] = self.vectors[v]

    def cast(self, depth: int) -> None:
        names = [n for n, d in self.vectors.items() if d != "uint8"]
        if names:
            v, name = self.pick(names), self.fresh("d")
            self.emit(depth, f"{name} = {v}.astype(np.float32)")
            self.vectors[name] = "float32"

    def rows(self, depth: int) -> None:
        names = [n for n, d in self.matrices.items() if d in FLOATS]
        if names:
            m, row = self.pick(names), self.fresh("row")
            self.emit(depth, f"for {row} in {m}:")
            self.emit(depth + 1, f"{row} {self.pick(['+=', '*='])} {self.pick(['1.0', '0.5'])}")

    def scatter(self, depth: int) -> None:
        names = [n for n, d in self.vectors.items() if d in FLOATS]
        if names:
            v = self.pick(names)
            places = ", ".join(str(self.random.randrange(N)) for _ in range(4))
            self.emit(depth, f"np.add.at({v}, np.array([{places}]), {self.pick(['1.0', '0.25'])})")

    def loop(self, depth: int) -> None:
        i = self.fresh("i")
        bounds = [f"range({N})", f"range(1, {N})", f"range({N - 1}, -1, -1)", f"range(0, {N}, 2)"]
        if self.ints:
            j = self.pick(self.ints)
            bounds += [f"range({j})", f"range({j}, {N})", f"range({j} + 1)"] * 2
        self.emit(depth, f"for {i} in {self.pick(bounds)}:")
        kept = list(self.ints)
        self.ints.append(i)
        self.block(depth + 1, self.random.randrange(1, 4))
        if self.scalars and self.random.random() < 0.3:
            self.emit(depth + 1, f"if {self.pick(self.scalars)} > {self.pick(['5.0', '100.0'])}:")
            self.emit(depth + 2, self.pick(["break", "continue"]))
            self.emit(depth + 1, f"{self.pick(self.scalars)} += 0.5")
        self.ints = kept

    def while_loop(self, depth: int) -> None:
        k = self.fresh("k")
        self.emit(depth, f"{k} = {self.pick(['0', '1', '2'])}")
        self.emit(depth, f"while {k} < {N}:")
        kept = list(self.ints)
        self.ints.append(k)
        self.block(depth + 1, self.random.randrange(1, 3))
        self.emit(depth + 1, f"{k} += {self.pick(['1', '2'])}")
        self.ints = kept

    def branch(self, depth: int) -> None:
        self.emit(depth, f"if {self.pick([self.number(), self.reduced()])} > {self.pick(['0.0', '1.0', '3'])}:")  # noqa: E501
        self.block(depth + 1, self.random.randrange(1, 3))
        if self.random.random() < 0.6:
            self.emit(depth, "else:")
            self.block(depth + 1, self.random.randrange(1, 3))


def program(seed: int) -> tuple[str, list[Any]]:
    """The text of a function ``f`` and the arguments to call it with."""
    made = Generator(seed)
    rng = np.random.default_rng(seed)
    arguments: list[Any] = []
    names = []
    for _ in range(made.random.randrange(1, 4)):
        name, dtype = made.fresh("x"), made.pick([*FLOATS, *FLOATS, *INTS])
        made.vectors[name] = dtype
        names.append(name)
        arguments.append((rng.normal(size=N) * 3).astype(dtype) if dtype in FLOATS
                         else rng.integers(0, 9, N).astype(dtype))  # fmt: skip
    for _ in range(made.random.randrange(0, 3)):
        name, dtype = made.fresh("m"), made.pick([*FLOATS, "int64"])
        made.matrices[name] = dtype
        names.append(name)
        arguments.append((rng.normal(size=(N, N)) * 3).astype(dtype))
    if made.random.random() < 0.5:
        name = made.fresh("a")
        names.append(name)
        made.scalars.append(name)
        arguments.append(made.pick([1.5, -0.25, 2.0]))
    made.block(0, made.random.randrange(3, 8))
    results = [*made.vectors, *made.matrices, *made.scalars]
    made.emit(0, f"return {', '.join(results)},")
    text = f"import numpy as np\n{_HELPERS}\ndef f({', '.join(names)}):\n" + "\n".join(made.lines)
    return text + "\n", arguments
