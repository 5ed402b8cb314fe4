"""Iterations of a loop that go through the loops inside it together.

    for j in range(n):                        for j in range(0, n - 1, 2):
        s = 0.0                                   s = t = 0.0
        for k in range(m):            ->          for k in range(m):
            s += a[i, k] * b[k, j]                    s += a[i, k] * b[k, j]
        c[i, j] = s                                   t += a[i, k] * b[k, j + 1]
                                                  c[i, j], c[i, j + 1] = s, t
                                              ... and what is left of n one by one

A sum that a loop adds up waits for its own last addition in every iteration. The sums of several
iterations of the loop around it do not wait for each other, and they read rows together. Each is
added up in its own order, so that results are the same.

Where positions in a loop inside have to be checked, they are before it, for all its iterations. If
one is outside, the iterations go on one by one from there on; nothing was stored before.

The loops inside must count from and to numbers that are the same in all iterations of the loop
around them. What an iteration stores, no other one may read or store: one position of each element
is the counter itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from treadle.core import dtypes
from treadle.core.shapes import Dim
from treadle.core.switches import is_on
from treadle.graph.ir import Value
from treadle.kernel.ir import Affine, Apply, Expr, Index, Load, postorder
from treadle.runtime.cpu.contraction import Products
from treadle.runtime.cpu.hoisted_checks import Counting
from treadle.runtime.cpu.linear_forms import LinearForms, positions
from treadle.runtime.cpu.llvm_text import Block as TextBlock
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import value_type
from treadle.runtime.cpu.strips import UNINTERRUPTED, countdown_of, limit_of, strip_end
from treadle.runtime.schedule.printer import all_steps
from treadle.runtime.schedule.steps import (
    Block,
    Carried,
    Evaluate,
    LoadScalar,
    Loop,
    Place,
    Position,
    Step,
    Update,
    is_checked,
)

MOST_STEPS = 64  # of an iteration that is written several times: the length of the code


def jointly(emitter: Emitter, step: Loop) -> int:
    """How many iterations of a loop go together; 1 where they cannot or where nothing is gained."""
    count = emitter.module.target.tuning.chains
    few = step.most is not None and step.most < count
    if few or not is_on("joint") or step.flags or _counter(step) is None:
        return 1
    if emitter.program.timer is not None:  # each step is written once, between two looks at a clock
        return 1
    if len(_registers(step)) != 1 or not _Analysis(emitter, step).agrees():
        return 1
    return count


def emit_jointly(emitter: Emitter, step: Loop, count: int, start: str) -> str:
    """Write the loop for as many iterations as `count` divides, from `start` on. Gives the value of
    the counter after them."""
    return _Joint(emitter, count).outer(step, start)


def _counter(step: Loop) -> Carried | None:
    """The variable that counts the iterations, where it alone ends the loop."""
    counted = step.counted
    found = (c for c in step.carried if counted is not None and c.param is counted.counter)
    return next(found, None)


def _registers(step: Loop) -> list[Carried]:
    return [c for c in step.carried if c.place is None]


class _Read(NamedTuple):
    """An element that a step reads; `load` is None for an array of rank 0."""

    step: Any
    place: Place
    load: Load | None = None


def _read(step: Step) -> Iterator[_Read]:
    """The elements of arrays that a step reads."""
    if isinstance(step, LoadScalar):
        yield _Read(step, step.source)
    elif isinstance(step, Evaluate):
        for load in postorder([step.expr]):
            place = step.inputs[load.buffer.name].place if isinstance(load, Load) else None
            if place is not None and isinstance(load, Load):
                yield _Read(step, place, load)


def _stays(carried: Carried) -> bool:
    """Whether a variable is a register, or an array that is updated where it is."""
    place = carried.place
    return place is None or (carried.other is None and place.kind != "buffer")


def _widened(step: Evaluate, expr: Expr) -> Value | None:
    """The integer register that an expression converts to a type at least as wide."""
    if not isinstance(expr, Apply) or expr.fn != "cast" or not expr.dtype.is_integer:
        return None
    (given,) = expr.args
    if not isinstance(given, Load) or given.index or not given.dtype.is_integer:
        return None
    source = step.inputs[given.buffer.name]
    wider = expr.dtype.size >= given.dtype.size
    return source.value if wider and source.place is None else None


class _Analysis:
    """Whether iterations of a loop can go together, and whether that is of use.

    Attributes:
        varying: the registers that differ between these iterations.
        made: the steps that compute registers.
    """

    def __init__(self, emitter: Emitter, step: Loop) -> None:
        assert step.counted is not None
        self.emitter, self.step, self.counter = emitter, step, step.counted.counter
        self.varying: set[Value] = {self.counter}
        self.made: dict[Value, Evaluate] = {}

    def agrees(self) -> bool:
        steps = list(all_steps(self.step.body))
        loops = [s for s in steps if isinstance(s, Loop)]
        kinds = Evaluate | LoadScalar | Update | Loop | Position
        plain = all(isinstance(s, kinds) for s in steps)
        if not loops or not plain or len(steps) > MOST_STEPS:
            return False
        if any(isinstance(s, Position) for s in steps) and not self._checks_first(loops):
            return False
        if not all(map(_stays, self.step.carried)):
            return False
        arrays = [c for s in loops for c in s.carried if c.place is not None]
        if not all(_stays(c) and c.start.place is c.place for c in arrays):
            return False
        return self._counts_alike(self.step.body) and self._keeps_apart(steps)

    def _checks_first(self, loops: Sequence[Loop]) -> bool:
        """Whether all positions that are to be checked are in the only loop inside, and nothing is
        stored before it."""
        steps = self.step.body.steps
        if len(loops) != 1 or any(isinstance(s, Position) for s in steps):
            return False
        return not any(isinstance(s, Update) for s in steps[: steps.index(loops[0])])

    def _counts_alike(self, block: Block) -> bool:
        """Whether the loops in a block add something up, and count in all iterations alike."""
        for step in block.steps:
            if isinstance(step, Evaluate):
                self.made[step.value] = step
                inputs = [o for o in step.inputs.values() if o.place is None]
                loads = any(o.place is not None for o in step.inputs.values())
                if loads or any(o.value in self.varying for o in inputs):
                    self.varying.add(step.value)
            elif isinstance(step, LoadScalar | Position):
                self.varying.add(step.value)
            elif isinstance(step, Loop):
                counter = _counter(step)
                sums = [c.param for c in _registers(step) if c is not counter]
                if step.flags or counter is None or step.counted is None or not sums:
                    return False
                if not any(v.spec.dtype.is_floating for v in sums):
                    return False
                limit = step.counted.limit
                if counter.start.value in self.varying or limit in self.varying:
                    return False
                self.varying.update(sums)
                if not self._counts_alike(step.body):
                    return False
        return True

    def _keeps_apart(self, steps: Sequence[Step]) -> bool:
        """Whether the elements that an iteration stores are its own."""
        stored: dict[object, tuple[Sequence[Dim], set[int]]] = {}
        for update in (s for s in steps if isinstance(s, Update)):
            dims, axes = update.node.inputs[0].spec.dims, self._axes(update)
            where = self.emitter.program.scopes.memory(update.target)
            for memory in where:
                known_dims, known_axes = stored.setdefault(memory, (dims, axes))
                axes = axes & known_axes
                known_axes &= axes
                if known_dims != dims:
                    return False
            if not where or not axes:
                return False
        return all(
            where and (stored.keys().isdisjoint(where) or self._is_own(read, stored, where))
            for step in steps
            for read in _read(step)
            for where in [self.emitter.program.scopes.memory(read.place)]
        )

    def _is_own(
        self, read: _Read, stored: Mapping[object, tuple[Sequence[Dim], set[int]]],
        where: Sequence[object],
    ) -> bool:  # fmt: skip
        """Whether an element that is read is one that no other iteration stores."""
        step, load = read.step, read.load
        if load is None or not is_checked(step, step.inputs[load.buffer.name]):
            return False
        counted = {n for n, index in enumerate(load.index) if self._counts(step, index)}
        known = [stored[memory] for memory in where if memory in stored]
        return all(load.buffer.shape == dims and counted & axes for dims, axes in known)

    def _axes(self, update: Update) -> set[int]:
        """The axes along which the position of a stored number is the counter."""
        refuses = update.node.op.refuses
        positions = [o.value for o in update.inputs[1:-1]]
        if refuses is None or not refuses.is_of_axes or update.refuse is not None:
            return set()
        if len(positions) != update.node.inputs[0].spec.rank or update.inputs[-1].place is not None:
            return set()
        return {axis for axis, value in enumerate(positions) if self._is_counter(value)}

    def _is_counter(self, value: Value) -> bool:
        """Whether a register is the counter, of this or another width."""
        while value is not self.counter:
            step = self.made.get(value)
            source = None if step is None else _widened(step, step.expr)
            if source is None:
                return False
            value = source
        return True

    def _counts(self, step: Evaluate, index: Index) -> bool:
        """Whether a position is the counter."""
        source = None if isinstance(index, Affine) else _widened(step, index)
        return source is not None and self._is_counter(source)


class _Joint:
    """Writes iterations that go together: each has its own registers, and its own products that may
    be taken into sums."""

    def __init__(self, emitter: Emitter, count: int) -> None:
        self.emitter, self.fn = emitter, emitter.fn
        self.copies = [_Copy(dict(emitter.registers), {}) for _ in range(count)]
        self.out = ""  # the block in which iterations go on one by one

    @contextmanager
    def _as(self, copy: _Copy) -> Iterator[None]:
        """What is emitted belongs to one of the iterations."""
        emitter = self.emitter
        before = emitter.registers, emitter.contraction.products
        emitter.registers, emitter.contraction.products = copy.registers, copy.products
        yield
        emitter.registers, emitter.contraction.products = before

    def outer(self, step: Loop, start: str) -> str:
        emitter, fn, k = self.emitter, self.fn, self.fn.unique()
        counted = step.counted
        assert counted is not None
        counter, dtype = counted.counter, counted.counter.spec.dtype
        kind, count = value_type(emitter, counter), len(self.copies)
        countdown = countdown_of(emitter)
        pair = f"{kind} {limit_of(emitter, counted)}, {kind} {count - 1}"
        last = fn.call(f"{kind} @llvm.ssub.sat.{kind}({kind}, {kind})", pair)
        left, self.out = fn.load_word(countdown), f"exit{k}"
        fn.enter(f"pre{k}")
        head = TextBlock(f"head{k}", [("i64", f"%count{k}"), (kind, f"%x{k}")])
        fn.enter(head(left, start))
        more = emitter.elements.apply("lt", [f"%x{k}", last], [dtype] * 2, dtypes.bool)
        fn.fork(more, f"body{k}", f"exit{k}")
        fn.label(f"body{k}")
        for number, copy in enumerate(self.copies):
            copy.registers[counter] = fn.value(f"add {kind} %x{k}, {number}")
        with emitter.forgetting(), emitter.contraction.inside(step):
            self._steps(step.body)
        after = fn.value(f"add {kind} %x{k}, {count}")
        left = emitter.exits.count_down(k, f"%count{k}", lambda _: emitter.exits.polled(countdown))
        fn.branch(head(left, after))
        fn.label(self.out)
        return f"%x{k}"

    def _steps(self, block: Block) -> None:
        """The steps of all iterations: loops together, what is between them one after another."""
        steps = list(block.steps)
        while steps:
            first = steps[0]
            if isinstance(first, Loop):
                self._inner(first)
                del steps[0]
                continue
            loops = (n for n, s in enumerate(steps) if isinstance(s, Loop))
            count = next(loops, len(steps))
            plain, steps = steps[:count], steps[count:]
            for copy in self.copies:
                with self._as(copy):
                    self.emitter.emit_block(Block(plain))

    def _inner(self, step: Loop) -> None:
        """A loop inside, in strips where it may be long."""
        emitter, k = self.emitter, self.fn.unique()
        counted = step.counted
        assert counted is not None
        words = [copy.registers[c.start.value] for copy, c in self._carried(step)]
        with self._as(self.copies[0]):
            limit = limit_of(emitter, counted)
        before = emitter.inside
        emitter.inside = self._checked(step, words[self._place(step)], limit)
        self._strips(step, k, words, limit)
        emitter.inside = before

    def _checked(self, step: Loop, first: str, limit: str) -> frozenset[Step]:
        """Check the positions of a loop inside, in all iterations; one by one they go on where a
        position is outside, or cannot be checked here."""
        emitter, fn = self.emitter, self.fn
        found = frozenset[Step](positions(step.body))
        good = "true"
        for copy in self.copies if found else ():
            with self._as(copy):
                forms = LinearForms(emitter, step)
                counting = Counting(emitter, forms, positions(step.body))
                if found != set(counting.steps):
                    good = "false"
                    break
                ends = [forms.wide(word, forms.counter) for word in (first, limit)]
                good = fn.value(f"and i1 {good}, {counting.all_inside(*ends)}")
        if found:
            stay = f"inside{fn.unique()}"
            fn.fork(good, stay, self.out, likely=True)
            fn.label(stay)
        return found

    def _strips(self, step: Loop, k: int, words: Sequence[str], limit: str) -> None:
        emitter, fn, counted = self.emitter, self.fn, step.counted
        assert counted is not None
        if step.most is not None and step.most <= UNINTERRUPTED:
            self._strip(step, k, words, limit)
            return
        countdown = countdown_of(emitter)
        fn.enter(f"pre{k}")
        more = self._block(step, f"more{k}", f"y{k}")
        fn.enter(more(*words))
        self._bind(step, more)
        fn.fork(self._below(step, limit), f"strip{k}", f"exit{k}")
        fn.label(f"strip{k}")
        first = self.copies[0].registers[counted.counter]
        end = strip_end(emitter, counted, first, limit, countdown)
        left = self._strip(step, fn.unique(), more.values, end)
        fn.fork(self._below(step, limit), f"poll{k}", f"done{k}", likely=False)
        fn.label(f"poll{k}")
        emitter.exits.polled(countdown)
        fn.branch(more(*left))
        fn.label(f"done{k}")
        fn.branch(more(*left))
        fn.label(f"exit{k}")
        self._bind(step, more)

    def _strip(self, step: Loop, k: int, words: Sequence[str], end: str) -> list[str]:
        """Iterations of a loop inside until its counter is at `end`."""
        fn = self.fn
        head = self._block(step, f"head{k}", f"x{k}")
        fn.enter(head(*words))
        self._bind(step, head)
        fn.fork(self._below(step, end), f"body{k}", f"after{k}")
        fn.label(f"body{k}")
        with self.emitter.forgetting(), self.emitter.contraction.inside(step):
            self._steps(step.body)
        results = {c.param: r.value for c, r in zip(step.carried, step.body.results, strict=True)}
        ends = [copy.registers[results[c.param]] for copy, c in self._carried(step)]
        fn.branch(head(*ends))
        fn.label(f"after{k}")
        self._bind(step, head)
        return head.values

    def _carried(self, step: Loop) -> Iterator[tuple[_Copy, Carried]]:
        """The variables of all iterations; they have one counter."""
        counter = _counter(step)
        for copy in self.copies:
            for carried in _registers(step):
                if carried is not counter or copy is self.copies[0]:
                    yield copy, carried

    def _block(self, step: Loop, name: str, prefix: str) -> TextBlock:
        kinds = [value_type(self.emitter, c.param) for _, c in self._carried(step)]
        return TextBlock(name, [(kind, f"%{prefix}.{n}") for n, kind in enumerate(kinds)])

    def _bind(self, step: Loop, block: TextBlock) -> None:
        """Let the variables stand for the parameters of a block."""
        assert step.counted is not None
        for (copy, carried), word in zip(self._carried(step), block.values, strict=True):
            copy.registers[carried.param] = word
        for copy in self.copies:
            copy.registers[step.counted.counter] = block.values[self._place(step)]

    def _place(self, step: Loop) -> int:
        """Where the counter is among the words."""
        counter = _counter(step)
        return next(n for n, (_, c) in enumerate(self._carried(step)) if c is counter)

    def _below(self, step: Loop, limit: str) -> str:
        assert step.counted is not None
        counter = step.counted.counter
        args = [self.copies[0].registers[counter], limit]
        return self.emitter.elements.apply("lt", args, [counter.spec.dtype] * 2, dtypes.bool)


class _Copy(NamedTuple):
    """One of the iterations: its registers, and its products."""

    registers: dict[Value, str]
    products: Products
