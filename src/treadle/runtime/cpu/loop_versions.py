"""Versions of a counting loop: without checks, and with iterations side by side.

    while i < end: ...   ->   if the positions stay inside:            (hoisted_checks)
                                  if no iteration needs another one:   (vector_iterations)
                                      while i < end: ...               (marked so for LLVM)
                                  else:
                                      while i < end: ...
                              else:
                                  while i < end: ...                   (with checks)

Where one iteration stores the element that all iterations read, the marked loop runs with the
element in a register: up to that iteration with the old value, and from there on with the new one.

    for j in range(n):                           old = d[i, k]
        d[i, j] += d[i, k] * x[j]         ->     for j in range(0, k + 1): d[i, j] += old * x[j]
                                                 new = d[i, k]
                                                 for j in range(k + 1, n): d[i, j] += new * x[j]

No other iteration changes what that one reads. So it is done in advance to see the new value, and
undone: where the bits are the old ones, as they often are, one loop does all iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core import dtypes
from treadle.runtime.cpu.counter_ranges import counter_range
from treadle.runtime.cpu.elements import alignment, compute_type, stored_type
from treadle.runtime.cpu.hoisted_checks import Counting
from treadle.runtime.cpu.inner_loops import InnerLoop
from treadle.runtime.cpu.linear_forms import LinearForms, positions
from treadle.runtime.cpu.llvm_text import Block, Word
from treadle.runtime.cpu.program_carried import value_type
from treadle.runtime.cpu.vector_iterations import Crossing, independence


def emit_versions(
    loop: InnerLoop, k: int, starts: Sequence[str], first: str, end: str
) -> list[str]:
    """As `InnerLoop.emit`, while the counter goes from `first` to `end`."""
    before = loop.emitter.inside
    words = _Versions(loop, starts, first, end).emit(k)
    loop.emitter.inside = before
    return words


class _Versions:
    """The versions of one loop.

    A method that writes some of them gets the number `k` in the names of their blocks, begins the
    block `after{k}` at the end, and gives the values that the variables have there.
    """

    def __init__(self, loop: InnerLoop, starts: Sequence[str], first: str, end: str) -> None:
        emitter, step = loop.emitter, loop.step
        assert step.counted is not None
        self.loop, self.emitter, self.fn = loop, emitter, emitter.fn
        self.starts, self.first, self.end = list(starts), first, end
        self.counter = step.counted.counter
        self.kind = value_type(emitter, self.counter)
        self.forms = LinearForms(emitter, step)
        reach = counter_range(emitter, step, first)
        self.counting = Counting(emitter, self.forms, positions(step.body), reach)
        self.independence = independence(emitter, step, self.forms, self.counting)
        self.known = dict(emitter.positions)

    def emit(self, k: int) -> list[str]:
        """All versions."""
        if not self.counting.asks:
            return self._proved(k)
        inside = self.counting.all_inside(*self._ends())
        return self._either(k, inside, self._proved, self._checked)

    def _ends(self) -> tuple[str, str]:
        """The first value and the end of the counter, as words of 64 bits."""
        first, end = (self.forms.wide(word, self.counter) for word in (self.first, self.end))
        return first, end

    def _either(
        self, k: int, condition: str, then: Callable[[int], list[str]],
        other: Callable[[int], list[str]],
    ) -> list[str]:  # fmt: skip
        fn, variables = self.fn, self.loop.variables
        numbers = fn.unique(), fn.unique()
        after = variables.block(f"after{k}", f"z{k}")
        yes, no = (f"strip{number}" for number in numbers)
        fn.fork(condition, yes, no, likely=True)
        for number, way in zip(numbers, (then, other), strict=True):
            fn.label(f"strip{number}")
            fn.branch(after(*way(number)))
        fn.label(after)
        return variables.bind(after)

    def _plain(self, k: int) -> list[str]:
        self.emitter.positions = dict(self.known)
        return self.loop.emit(k, self.starts, self.end)

    def _checked(self, k: int) -> list[str]:
        self.emitter.inside = frozenset()
        return self._plain(k)

    def _proved(self, k: int) -> list[str]:
        self.emitter.inside = frozenset(self.counting.steps)
        if self.independence is None:
            return self._plain(k)
        if not self.independence.tests:
            return self._parallel(k)
        holds = self.independence.holds(*self._ends())
        return self._either(k, holds, self._parallel, self._plain)

    def _parallel(self, k: int) -> list[str]:
        """The loop with iterations that LLVM may do side by side."""
        emitter = self.emitter
        assert self.independence is not None
        crossing = self.independence.crossing
        group, emitter.group = emitter.group, None
        if crossing is not None:
            words = self._in_pieces(k, crossing)
        else:
            emitter.group = emitter.program.scopes.group()
            words = self._plain(k)
        emitter.group = group
        return words

    # -- elements that one iteration stores and all of them read

    def _in_pieces(self, k: int, crossing: Crossing) -> list[str]:
        """The loop up to the iteration that stores the element, with its old value, and from there
        on, with the new one."""
        emitter, fn, number = self.emitter, self.fn, self.fn.unique()
        old, new, cut = self._values(crossing)
        from_, to, kept = f"%from{number}", f"%to{number}", f"%kept{number}"
        held = compute_type(crossing.store.place.dtype)
        piece = Block(f"strip{number}", [(self.kind, from_), (self.kind, to), (held, kept)])
        fn.enter(piece(self.first, cut, old))
        position = self.loop.variables.position(self.counter)
        assert position is not None
        starts = list(self.starts)
        starts[position] = from_
        emitter.kept = {(a.step, a.load): kept for a in crossing.loads if a.load}
        emitter.positions, emitter.group = dict(self.known), emitter.program.scopes.group()
        words = self.loop.emit(number, starts, to)
        emitter.kept = {}
        dtype = self.counter.spec.dtype
        more = emitter.elements.apply("lt", [to, self.end], [dtype] * 2, dtypes.bool)
        fn.fork(more, f"more{number}", f"after{k}")
        fn.label(f"more{number}")
        fn.branch(piece(cut, self.end, new))
        fn.label(f"after{k}")
        return words

    def _values(self, crossing: Crossing) -> tuple[str, str, str]:
        """The values of the element before and after the iteration that stores it, and the counter
        of the first iteration that reads the new one, or the end where none does."""
        emitter, fn, k = self.emitter, self.fn, self.fn.unique()
        store = crossing.store
        place, dtype = store.place, store.place.dtype
        first, end = self._ends()
        runs = fn.value(f"icmp slt i64 {first}, {end}")
        exists, offset = self._element(crossing, first)
        exists = fn.value(f"and i1 {runs}, {exists}")
        meets, counter = self._meeting(crossing, first, end)
        kind, none = compute_type(dtype), emitter.elements.constant(0, dtype)
        values = [(kind, f"%old{k}"), (kind, f"%new{k}"), (self.kind, f"%cut{k}")]
        kept = Block(f"kept{k}", values)
        fn.fork(exists, f"hold{k}", kept(none, none, self.end))
        fn.label(f"hold{k}")
        address = fn.offset(emitter.pointer(place), offset, stored_type(dtype))
        old = emitter.load_scalar(address, dtype, place)
        fn.fork(meets, f"try{k}", kept(old, old, self.end))
        fn.label(f"try{k}")
        new, same = self._tried(crossing, address, counter)
        cut = counter if crossing.after else fn.value(f"add i64 {counter}, 1")
        cut = cut if self.kind == "i64" else fn.value(f"trunc i64 {cut} to {self.kind}")
        cut = fn.value(f"select i1 {same}, {self.kind} {self.end}, {self.kind} {cut}")
        fn.enter(kept(old, new, cut))
        return f"%old{k}", f"%new{k}", f"%cut{k}"

    def _element(self, crossing: Crossing, first: str) -> tuple[str, Word]:
        """Whether the position of the element is inside the array, and its offset."""
        fn, good = self.fn, "true"
        offset: Word = 0
        load = crossing.loads[0]
        for form, dim in zip(load.index, load.dims, strict=True):
            assert form is not None
            position, size = self.forms.at(form, first), self.emitter.dim(dim)
            good = fn.value(f"and i1 {good}, {fn.value(f'icmp ult i64 {position}, {size}')}")
            scaled = offset if offset == 0 else fn.value(f"mul i64 {offset}, {size}")
            offset = position if scaled == 0 else fn.value(f"add i64 {scaled}, {position}")
        return good, offset

    def _meeting(self, crossing: Crossing, first: str, end: str) -> tuple[str, str]:
        """Whether an iteration stores the element, and the counter of that one, of 64 bits."""
        fn, forms, axis, pace = self.fn, self.forms, crossing.axis, crossing.pace
        pairs = list(zip(crossing.store.index, crossing.loads[0].index, strict=True))
        stored, read = pairs.pop(axis)
        assert stored is not None and read is not None
        distance = fn.value(f"sub i64 {forms.at(read, first)}, {forms.at(stored, first)}")
        meets, passed = "true", distance
        if pace == -1:
            passed = fn.value(f"sub i64 0, {distance}")
        elif pace != 1:
            passed = fn.value(f"sdiv i64 {distance}, {pace}")
            back = fn.value(f"mul i64 {passed}, {pace}")
            meets = fn.value(f"icmp eq i64 {back}, {distance}")
        trips = fn.value(f"sub i64 {end}, {first}")
        meets = fn.value(f"and i1 {meets}, {fn.value(f'icmp ult i64 {passed}, {trips}')}")
        counter = fn.value(f"add i64 {first}, {passed}")
        for stored, read in pairs:
            assert stored is not None and read is not None
            words = forms.at(stored, counter), forms.at(read, counter)
            equal = fn.value(f"icmp eq i64 {words[0]}, {words[1]}")
            meets = fn.value(f"and i1 {meets}, {equal}")
        return meets, counter

    def _tried(self, crossing: Crossing, address: str, counter: str) -> tuple[str, str]:
        """Run one iteration and put back the element that it stores. Gives the value that it has
        stored, and whether this has the bits of the old one."""
        emitter, fn = self.emitter, self.fn
        place, dtype = crossing.store.place, crossing.store.place.dtype
        ending = f"align {alignment(dtype)}{emitter.program.scopes.of(place)}"
        bits = f"i{dtype.size * 8}"
        before = fn.value(f"load {bits}, ptr {address}, {ending}")
        narrow = counter if self.kind == "i64" else fn.value(f"trunc i64 {counter} to {self.kind}")
        emitter.registers[self.counter] = narrow
        emitter.positions = dict(self.known)
        with emitter.forgetting(), emitter.contraction.inside(self.loop.step):
            emitter.emit_block(self.loop.step.body)
        new = emitter.load_scalar(address, dtype, place)
        after = fn.value(f"load {bits}, ptr {address}, {ending}")
        fn.emit(f"store {bits} {before}, ptr {address}, {ending}")
        return new, fn.value(f"icmp eq {bits} {before}, {after}")
