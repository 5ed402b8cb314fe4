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
from treadle.runtime.cpu.elements import alignment, compute_type, stored_type
from treadle.runtime.cpu.hoisted_checks import Counting
from treadle.runtime.cpu.inner_loops import inner, phis, registers
from treadle.runtime.cpu.linear_forms import LinearForms
from treadle.runtime.cpu.llvm_text import Word
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_carried import Names, bind, value_type
from treadle.runtime.cpu.vector_iterations import Crossing, Independence, independence
from treadle.runtime.schedule.steps import Loop


def versions(
    emitter: Emitter, step: Loop, k: int, starts: Sequence[list[str]], first: str, end: str
) -> Names:
    """As `inner`, while the counter goes from `first` to `end`."""
    before = emitter.inside
    names = _Versions(emitter, step, starts, first, end).emit(k)
    emitter.inside = before
    return names


class _Versions:
    """The versions of one loop. Methods are entered from block `strip{k}`, left for `after{k}`."""

    def __init__(
        self, emitter: Emitter, step: Loop, starts: Sequence[list[str]], first: str, end: str
    ) -> None:
        assert step.counted is not None
        self.emitter, self.fn, self.step = emitter, emitter.fn, step
        self.starts, self.first, self.end = starts, first, end
        self.counter = step.counted.counter
        self.kind = value_type(emitter, self.counter)
        self.forms = LinearForms(emitter, step)
        self.counting = Counting(emitter, step, self.forms)
        self.independence = independence(emitter, step, self.forms, self.counting)
        self.known = dict(emitter.positions)

    def emit(self, k: int) -> Names:
        """All versions."""
        if not self.counting.steps:
            return self._proved(k)
        inside = self.counting.all_inside(*self._ends())
        return self._either(k, inside, self._proved, self._checked)

    def _ends(self) -> tuple[str, str]:
        """First value and end of the counter, of 64 bits."""
        first, end = (self.forms.wide(word, self.counter) for word in (self.first, self.end))
        return first, end

    def _either(
        self, k: int, condition: str, then: Callable[[int], Names], other: Callable[[int], Names]
    ) -> Names:
        fn = self.fn
        numbers = fn.unique(), fn.unique()
        yes, no = numbers
        fn.emit(f"br i1 {condition}, label %strip{yes}, label %strip{no}, !prof !2")
        ways = []
        for number, way in zip(numbers, (then, other), strict=True):
            fn.label(f"strip{number}")
            ways.append((registers(way(number)), f"after{number}"))
            fn.branch(f"after{k}")
        fn.label(f"after{k}")
        merged = bind(self.emitter, self.step, f"z{k}")
        fn.lines += phis(merged, *ways)
        return merged

    def _plain(self, k: int) -> Names:
        self.emitter.positions = dict(self.known)
        return inner(self.emitter, self.step, k, self.starts, self.end)

    def _checked(self, k: int) -> Names:
        self.emitter.inside = frozenset()
        return self._plain(k)

    def _proved(self, k: int) -> Names:
        self.emitter.inside = frozenset(self.counting.steps)
        if self.independence is None:
            return self._plain(k)
        if not self.independence.tests:
            return self._parallel(k)
        holds = self.independence.holds(*self._ends())
        return self._either(k, holds, self._parallel, self._plain)

    def _parallel(self, k: int) -> Names:
        """The loop with iterations that LLVM may do side by side."""
        emitter = self.emitter
        assert self.independence is not None
        crossing = self.independence.crossing
        group, emitter.group = emitter.group, None
        if crossing is not None:
            names = self._in_pieces(k, self.independence, crossing)
        else:
            emitter.group = emitter.scopes.group()
            names = self._plain(k)
        emitter.group = group
        return names

    # -- elements that one iteration stores and all of them read

    def _in_pieces(self, k: int, independence: Independence, crossing: Crossing) -> Names:
        """Up to the iteration that stores the element with the old value, then with the new one."""
        emitter, fn, number = self.emitter, self.fn, self.fn.unique()
        old, new, cut = self._values(independence, crossing)
        ready = fn.block
        fn.branch(f"strip{number}")
        fn.label(f"strip{number}")
        kept = compute_type(crossing.store.place.dtype)
        fn.emit(f"%from{number} = phi {self.kind} [{self.first}, %{ready}], [{cut}, %more{number}]")
        fn.emit(f"%to{number} = phi {self.kind} [{cut}, %{ready}], [{self.end}, %more{number}]")
        fn.emit(f"%kept{number} = phi {kept} [{old}, %{ready}], [{new}, %more{number}]")
        at = [n for n, c in enumerate(self.step.carried) if c.param is self.counter]
        starts = list(self.starts)
        starts[at[0]] = [f"%from{number}"]
        emitter.kept = {(a.step, a.load): f"%kept{number}" for a in crossing.loads if a.load}
        emitter.positions, emitter.group = dict(self.known), emitter.scopes.group()
        names = inner(emitter, self.step, number, starts, f"%to{number}")
        emitter.kept = {}
        words = [f"%to{number}", self.end]
        more = emitter.elements.apply("lt", words, [self.counter.spec.dtype] * 2, dtypes.bool)
        fn.emit(f"br i1 {more}, label %more{number}, label %after{k}")
        fn.label(f"more{number}")
        fn.branch(f"strip{number}")
        fn.label(f"after{k}")
        return names

    def _values(self, independence: Independence, crossing: Crossing) -> tuple[str, str, str]:
        """Emit the element's values before and after the iteration that stores it, and the counter
        of the first iteration that reads the new one; the end where there is none."""
        emitter, fn, k = self.emitter, self.fn, self.fn.unique()
        store = crossing.store
        place, dtype = store.place, store.place.dtype
        first, end = self._ends()
        runs = fn.value(f"icmp slt i64 {first}, {end}")
        exists, offset = self._element(crossing, first)
        exists = fn.value(f"and i1 {runs}, {exists}")
        meets, counter = self._meeting(crossing, first, end)
        before = fn.block
        fn.emit(f"br i1 {exists}, label %hold{k}, label %kept{k}")
        fn.label(f"hold{k}")
        address = fn.offset(emitter.pointer(place), offset, stored_type(dtype))
        old = emitter.load_scalar(address, dtype, place)
        held = fn.block
        fn.emit(f"br i1 {meets}, label %try{k}, label %kept{k}")
        fn.label(f"try{k}")
        new, same = self._tried(crossing, address, counter)
        cut = counter if crossing.after else fn.value(f"add i64 {counter}, 1")
        cut = cut if self.kind == "i64" else fn.value(f"trunc i64 {cut} to {self.kind}")
        cut = fn.value(f"select i1 {same}, {self.kind} {self.end}, {self.kind} {cut}")
        tried = fn.block
        fn.branch(f"kept{k}")
        fn.label(f"kept{k}")
        kind, none = compute_type(dtype), emitter.elements.constant(0, dtype)
        values = []
        for what, words in (
            (kind, (none, old, old)),
            (kind, (none, old, new)),
            (self.kind, (self.end, self.end, cut)),
        ):
            pairs = zip(words, (before, held, tried), strict=True)
            values.append(fn.value(f"phi {what} " + ", ".join(f"[{w}, %{b}]" for w, b in pairs)))
        old, new, cut = values
        return old, new, cut

    def _element(self, crossing: Crossing, first: str) -> tuple[str, Word]:
        """Emit whether the position of the element is inside the array, and its offset."""
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
        """Emit whether an iteration stores the element, and its counter, of 64 bits."""
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
        """Emit one iteration and undo what it stores: the new value, and whether its bits are
        those of the old one."""
        emitter, fn = self.emitter, self.fn
        place, dtype = crossing.store.place, crossing.store.place.dtype
        ending = f"align {alignment(dtype)}{emitter.scopes.of(place)}"
        bits = f"i{dtype.size * 8}"
        before = fn.value(f"load {bits}, ptr {address}, {ending}")
        narrow = counter if self.kind == "i64" else fn.value(f"trunc i64 {counter} to {self.kind}")
        emitter.registers[self.counter] = narrow
        symbols, emitter.positions = dict(emitter.symbols), dict(self.known)
        emitter.contraction.depth += not self.step.exact
        emitter.emit_block(self.step.body)
        emitter.contraction.depth -= not self.step.exact
        emitter.symbols = symbols
        new = emitter.load_scalar(address, dtype, place)
        after = fn.value(f"load {bits}, ptr {address}, {ending}")
        fn.emit(f"store {bits} {before}, ptr {address}, {ending}")
        return new, fn.value(f"icmp eq i64 {before}, {after}".replace("i64", bits))
