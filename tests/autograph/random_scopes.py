"""Random programs whose functions, classes, generators and blocks share variables.

They are the programs of `random_programs` with further statements: functions that read or assign
variables around them, kept by names, lists, partial objects, default arguments and instances;
loops whose targets such functions read; ``with``, ``try``, ``del``, ``global``, generators.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.autograph.random_programs import Writer

_HEAD = ["import contextlib", "import functools", "G = 0", ""]


class ScopeWriter(Writer):
    """Writes one program; the functions that a block may call are those of the blocks around."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.readers: list[list[str]] = [[]]  # calls that give an integer, by block
        self.callers: list[list[str]] = [[]]  # statements that call a function, by block

    def program(self) -> str:
        begin = ["    global G", "    G = a"]
        for _ in range(self.rng.randint(1, 2)):
            begin += self.sharing("    ")
        body = self.block(self.rng.choice([2, 2, 3]), False, "    ")
        end = [f"    c = c + {call}" for call in self.readers[-1][:3]]
        last = "    return a * 100 + b + c + G, v, w"
        return "\n".join([*_HEAD, "def f(a, b, c, v, w):", *begin, *body, *end, last, ""])

    def block(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        if indent == "    ":
            return super().block(depth, in_loop, indent)
        self.readers.append([])
        self.callers.append([])
        try:
            return super().block(depth, in_loop, indent)
        finally:
            self.readers.pop()
            self.callers.pop()

    def statement(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        kind = self.rng.random()
        if depth > 0 and kind < 0.2:
            return self.sharing(indent)
        if kind < 0.4:
            return [indent + self.call()]
        if depth > 0 and kind < 0.6:
            compound: list[Callable[[int, bool, str], list[str]]]
            compound = [self.with_block, self.try_block, self.target_loop, self.generator_loop]
            return self.rng.choice(compound)(depth, in_loop, indent)
        if kind < 0.65:
            return self.deletion(indent)
        return super().statement(depth, in_loop, indent)

    def fresh(self, prefix: str) -> str:
        self.counters += 1
        return f"{prefix}{self.counters}"

    def shared(self) -> str:
        """An integer of variables around a function."""
        x, y = self.rng.choice("abc"), self.rng.choice(["a", "b", "c", "G", "3"])
        return self.rng.choice([x, f"({x} + {y}) % 13", f"({x} - {y}) % 17", f"({x} * {y}) % 11"])

    def call(self) -> str:
        readers = [r for block in self.readers for r in block]
        callers = [c for block in self.callers for c in block]
        name = self.rng.choice("abc")
        if callers and self.rng.random() < 0.3:
            return self.rng.choice(callers)
        if readers:
            return f"{name} = ({name} + {self.rng.choice(readers)}) % 61"
        return f"G = (G + {self.shared()}) % 41"

    def sharing(self, indent: str) -> list[str]:
        """Something that reads or assigns variables of the function when it is called."""
        name, inner = self.fresh("r"), indent + "    "
        kind = self.rng.choice(
            ["def", "def", "lambda", "list", "partial", "default", "class", "writer", "nested",
             "recursive", "branching", "dict"]
        )  # fmt: skip
        calls = [f"{name}()"]
        match kind:
            case "def":
                lines = [f"def {name}():", f"    return {self.shared()}"]
            case "lambda":
                lines = [f"{name} = lambda: {self.shared()}"]
            case "list":
                lines = [f"{name} = [lambda: {self.shared()}]"]
                lines.append(f"{name}.append(lambda: {self.shared()})")
                calls = [f"{name}[0]()", f"{name}[1]()"]
            case "dict":
                lines = [f"{name} = dict(x=lambda: {self.shared()})"]
                calls = [f"{name}['x']()"]
            case "partial":
                lines = [f"{name} = functools.partial(lambda k: k + {self.shared()}, 2)"]
            case "default":
                other = self.rng.choice("abc")
                lines = [f"def {name}(k, d={other}):", f"    return (k - d + {self.shared()}) % 19"]
                calls = [f"{name}({other})", f"{name}(1, d=2)"]
            case "class":
                lines = [f"class K{name}:", f"    held = {self.shared()}", "    def go(self, k):"]
                lines += [f"        return k - self.held + {self.shared()}", f"{name} = K{name}()"]
                calls = [f"{name}.go(2)"]
            case "writer":
                other = self.rng.choice("abc")
                lines = [f"def {name}():", f"    nonlocal {other}"]
                lines += [f"    {other} = ({other} + {self.shared()}) % 29"]
                self.callers[-1].append(f"{name}()")
                calls = []
            case "nested":
                lines = [f"def {name}():", "    def inner():", f"        return {self.shared()}"]
                lines += [f"    return inner() + {self.rng.choice('abc')} % 3"]
            case "recursive":
                lines = [f"def {name}(n=3):", "    if n == 0:", f"        return {self.shared()}"]
                lines += [f"    return ({name}(n - 1) * 2 + {self.rng.choice('abc')}) % 37"]
            case _:
                lines = [f"def {name}():", f"    if {self.rng.choice('abc')} > 9:"]
                lines += [f"        return {self.shared()}"]
                lines += [f"    for i in range({self.rng.choice('abc')} % 3):"]
                lines += [f"        if i == {self.rng.choice('ab')} % 2:"]
                lines += [f"            return i + {self.rng.choice('abc')}", "    return 5"]
        self.readers[-1] += calls
        del inner
        return [indent + line for line in lines]

    def with_block(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        bound = self.rng.choice(["", "", f" as {self.rng.choice('abc')}"])
        line = f"{indent}with contextlib.nullcontext({self.integer()}){bound}:"
        return [line, *self.block(depth - 1, in_loop, indent + "    ")]

    def try_block(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        inner = indent + "    "
        lines = [f"{indent}try:", *self.block(depth - 1, in_loop, inner)]
        kind = self.rng.random()
        if kind < 0.4:
            last = [f"{inner}{self.rng.choice('abc')} = {self.integer()}", f"{inner}{self.call()}"]
            return [*lines, f"{indent}finally:", self.rng.choice(last)]
        if kind < 0.6:
            lines.append(f"{inner}raise ValueError")
        lines += [f"{indent}except ValueError:", *self.block(0, in_loop, inner)]
        if kind > 0.8:
            lines += [f"{indent}else:", *self.block(0, in_loop, inner)]
        return lines

    def target_loop(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        """A loop whose target is a variable that functions may read."""
        inner, name = indent + "    ", self.rng.choice("abc")
        count = self.rng.choice(["a % 4", "b % 3 + 1", "3", "c % 5"])
        body = self.block(depth - 1, True, inner)
        lines = [f"{indent}for {name} in range({count}):", *body]
        return lines + self.otherwise(in_loop, indent)

    def generator_loop(self, depth: int, in_loop: bool, indent: str) -> list[str]:
        name, inner = self.fresh("g"), indent + "    "
        lines = [f"{indent}def {name}():", f"{inner}for q in (1, 2, 3):"]
        lines += [f"{inner}    yield q + {self.rng.choice('abc')} % 7"]
        total = self.rng.choice("abc")
        use = f"{total} = ({total} + x) % 43"
        if self.rng.random() < 0.5:
            return [*lines, f"{indent}for x in {name}():", inner + use]
        return [*lines, f"{indent}{total} = sum(x * 2 for x in {name}()) % 43"]

    def deletion(self, indent: str) -> list[str]:
        name = self.fresh("t")
        use = f"{self.rng.choice('abc')} = {name} % 9"
        return [f"{indent}{name} = {self.integer()}", indent + use, f"{indent}del {name}"]
