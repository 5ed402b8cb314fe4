"""Loops whose iterations can be computed side by side: none needs an element that another changes.

    for j in range(n):                                    stores at (i, j); reads (i, j), (k, j):
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])         of other columns than other iterations

Positions are linear in the counter (`linear_forms`). Two accesses touch different elements in
different iterations if, along one axis, both go the same steps and begin less than a step apart, or
if all positions of one access come before all positions of the other. Where the text does not show
it, as for accesses of different rows, the program tests it when the loop begins. LLVM is then told
to compute iterations side by side. It cannot find out by itself: it compares the memory that all
iterations touch together.

All iterations may read one element, `d[i, k]`, that a single one of them stores. That element is
kept in a register: `Crossing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from treadle.core.records import record
from treadle.core.shapes import Dim
from treadle.core.spec import ListSpec
from treadle.core.switches import is_on
from treadle.kernel.ir import Affine, Load, postorder
from treadle.runtime.cpu.hoisted_checks import Counting, is_inside
from treadle.runtime.cpu.linear_forms import LinearForms, positions
from treadle.runtime.cpu.program import Emitter
from treadle.runtime.cpu.program_poll import MOST_ITERATIONS
from treadle.runtime.schedule.steps import (
    Block,
    Branch,
    Check,
    Evaluate,
    LoadScalar,
    Loop,
    Place,
    Step,
    Update,
    is_checked,
)

MOST_PAIRS = 512  # of accesses that are compared
MOST_TESTS = 8  # of pairs of accesses, when a loop begins
FEW = 16  # iterations: what is repeated after fewer is not worth a test

Form: TypeAlias = "Dim | None"


@record(eq=False)
class Access:
    """A load or a store of one element, in every iteration or in some.

    index: the position along each axis; None where it is not linear in the counter.
    narrow: for each axis, whether the position is computed with 32 bits.
    always: whether every iteration has the access.
    load: the expression of a load.
    """

    step: Step
    place: Place
    dims: tuple[Dim, ...]
    index: tuple[Form, ...]
    narrow: tuple[bool, ...]
    always: bool
    load: Load | None = None

    @property
    def is_store(self) -> bool:
        return isinstance(self.step, Update)


@record(frozen=True, eq=False)
class Test:
    """A test that two accesses touch different elements in different iterations. It holds if it
    does along one axis: in `apart`, all positions of one access come before those of the other; in
    `same`, their positions are equal in every iteration."""

    a: Access
    b: Access
    apart: tuple[int, ...]
    same: tuple[int, ...]


@record(frozen=True, eq=False)
class Crossing:
    """Loads of an element that is the same in every iteration, and that one iteration may store.

    axis: an axis along which the position of the store moves, by `pace` in an iteration.
    after: whether the loads come after the store.
    """

    store: Access
    loads: tuple[Access, ...]
    axis: int
    pace: int
    after: bool


@record(eq=False)
class Independence:
    """The conditions under which the iterations of a loop are independent."""

    forms: LinearForms
    tests: list[Test] = field(default_factory=list)
    crossing: Crossing | None = None

    def holds(self, first: str, end: str) -> str:
        """Write all tests, for a counter of 64 bits that goes from `first` to `end`; gives whether
        they hold."""
        fn = self.forms.emitter.fn
        last = fn.value(f"sub i64 {end}, 1")
        good = "true"
        for test in self.tests:
            for access in (test.a, test.b):
                for axis in (*test.apart, *test.same):
                    if access.always and not access.narrow[axis]:
                        continue
                    form, size = access.index[axis], self.forms.emitter.dim(access.dims[axis])
                    size = fn.min(size, 1 << 31) if access.narrow[axis] else size
                    assert form is not None
                    inside = is_inside(self.forms, form, size, first, last)
                    good = fn.value(f"and i1 {good}, {inside}")
            ways = [self._apart(test, axis, first, last) for axis in test.apart]
            ways += [self._same(test, axis, first) for axis in test.same]
            some = ways[0]
            for way in ways[1:]:
                some = fn.value(f"or i1 {some}, {way}")
            good = fn.value(f"and i1 {good}, {some}")
        return good

    def _apart(self, test: Test, axis: int, first: str, last: str) -> str:
        fn = self.forms.emitter.fn
        ends = []
        for access in (test.a, test.b):
            form = access.index[axis]
            assert form is not None
            low, high = self.forms.at(form, first), self.forms.at(form, last)
            ends.append((fn.min(low, high), fn.max(low, high)))
        (low_a, high_a), (low_b, high_b) = ends
        before = fn.value(f"icmp slt i64 {high_a}, {low_b}")
        return fn.value(f"or i1 {before}, {fn.value(f'icmp slt i64 {high_b}, {low_a}')}")

    def _same(self, test: Test, axis: int, first: str) -> str:
        a, b = test.a.index[axis], test.b.index[axis]
        assert a is not None and b is not None
        return self.forms.emitter.fn.value(f"icmp eq i64 {self.forms.at(a - b, first)}, 0")


def independence(
    emitter: Emitter, step: Loop, forms: LinearForms, counting: Counting
) -> Independence | None:
    """The conditions under which the iterations of a counting loop are independent, while its
    positions are inside the arrays; None where no tests could show it, or where LLVM would not
    compute them side by side."""
    if not is_on("independent") or step.flags or not _is_plain(step, counting):
        return None
    accesses = list(_accesses(forms, step.body, True))
    stores = sum(a.is_store for a in accesses)
    if not stores or stores * len(accesses) > MOST_PAIRS:
        return None
    if not all(_is_dense(forms, a) for a in accesses if a.is_store):
        return None
    found, loads, dependent = Independence(forms), list[Access](), False
    for a, b, ordered in _pairs(emitter, accesses):
        test = _compared(forms, a, b, ordered)
        if test is True:
            continue
        load = next((x for x in (a, b) if not x.is_store), None)
        if isinstance(test, Test):
            found.tests.append(test)
        elif load is None or stores > 1 or not _is_fixed(forms, load):
            return None
        else:
            dependent = True
        if load is not None:
            loads.append(load)
    found.crossing = _crossing(step, forms, accesses, loads)
    if found.crossing is not None:
        found.tests = [t for t in found.tests if t.a.is_store and t.b.is_store]
    elif dependent:
        return None
    # A version with tests pays where LLVM computes iterations side by side. It does not where
    # iterations pass numbers on, except for sums of integers.
    most = MOST_TESTS if _numbers(step) == 1 else 0
    return found if len(found.tests) <= most else None


def _pairs(emitter: Emitter, accesses: Sequence[Access]) -> Iterator[tuple[Access, Access, bool]]:
    """Pairs of accesses that may touch the same memory, at least one of them a store, which is also
    paired with itself; and whether the first one is a store that comes before the other access in
    an iteration."""
    for number, a in enumerate(accesses):
        for later, b in enumerate(accesses[number:], number):
            if (a.is_store or b.is_store) and _overlap(emitter, a, b):
                yield a, b, a.is_store and later > number


def _is_dense(forms: LinearForms, store: Access) -> bool:
    """Whether iterations store neighbouring elements: nothing is gained with others."""
    paces = [None if f is None else forms.step(f) for f in store.index]
    return bool(paces) and paces[-1] in (1, -1) and not any(p != 0 for p in paces[:-1])


def _is_fixed(forms: LinearForms, access: Access) -> bool:
    """Whether all iterations access one element."""
    return all(f is not None and forms.step(f) == 0 for f in access.index)


def _crossing(
    step: Loop, forms: LinearForms, accesses: Sequence[Access], loads: Sequence[Access]
) -> Crossing | None:
    """The loads of one element, if that is all that the only store may change of the elements that
    other iterations read; else None."""
    stores = [n for n, a in enumerate(accesses) if a.is_store]
    if not loads or len(stores) != 1 or _numbers(step) != 1:
        return None
    store = accesses[stores[0]]
    sides = {accesses.index(a) > stores[0] for a in loads}
    if (
        not all(_is_fixed(forms, a) for a in loads)
        or len(sides) != 1
        or any(a.index != loads[0].index for a in loads)
    ):
        return None
    if any(any(a.narrow) for a in (store, *loads)):
        return None
    if any(f is None for f in store.index) or store.place.dtype.is_complex:
        return None
    if not all(a.place is store.place and a.dims == store.dims and a.load for a in loads):
        return None
    for axis, form in enumerate(store.index):
        pace = forms.step(form) if form is not None else 0
        if isinstance(pace, int) and 0 < abs(pace) <= forms.most_step:
            return Crossing(store, tuple(loads), axis, pace, sides.pop())
    return None


def _numbers(step: Loop) -> int:
    """How many numbers pass from one iteration to the next, the counter included."""
    return sum(c.place is None for c in step.carried)


def _is_plain(step: Loop, counting: Counting) -> bool:
    """Whether iterations pass on integers only, and the loop has no checks."""
    for carried in step.carried:
        spec = carried.param.spec
        if carried.place is None and (isinstance(spec, ListSpec) or not spec.dtype.is_integer):
            return False
        if carried.place is not None and carried.other is not None:
            return False
    proved = set(counting.steps)
    return all(s in proved for s in positions(step.body)) and not _has_checks(step.body)


def _has_checks(block: Block) -> bool:
    return any(
        isinstance(s, Check)
        or (isinstance(s, Branch) and (_has_checks(s.then) or _has_checks(s.otherwise)))
        for s in block.steps
    )


def _accesses(forms: LinearForms, block: Block, always: bool) -> Iterator[Access]:
    """The loads and stores of a block, in order."""
    for step in block.steps:
        match step:
            case Evaluate():
                for load in postorder([step.expr]):
                    if isinstance(load, Load):
                        yield from _loaded(forms, step, load, always)
            case LoadScalar():
                yield Access(step, step.source, (), (), (), always)
            case Update():
                yield _stored(forms, step, always)
            case Branch():
                yield from _accesses(forms, step.then, False)
                yield from _accesses(forms, step.otherwise, False)


def _loaded(forms: LinearForms, step: Evaluate, load: Load, always: bool) -> Iterator[Access]:
    operand = step.inputs[load.buffer.name]
    if operand.place is None:
        return
    checked = is_checked(step, operand)  # others are kept inside the array where they are read
    found = [
        forms.index(step, i) if checked or isinstance(i, Affine) else (None, False)
        for i in load.index
    ]
    index, narrow = tuple(f for f, _ in found), tuple(n for _, n in found)
    yield Access(step, operand.place, load.buffer.shape, index, narrow, always, load)


def _stored(forms: LinearForms, step: Update, always: bool) -> Access:
    dims = step.node.inputs[0].spec.dims
    index: tuple[Form, ...] = (None,) * len(dims)
    narrow = (False,) * len(dims)
    given = [o.value for o in step.inputs[1:-1]]
    refuses = step.node.op.refuses
    if refuses is not None and refuses.is_of_axes and len(given) == len(dims):
        index = tuple(forms.linear(v) if v.spec.dtype.is_unsigned else None for v in given)
        narrow = tuple(forms.is_narrow(v) for v in given)
    return Access(step, step.target, dims, index, narrow, always)


def _overlap(emitter: Emitter, a: Access, b: Access) -> bool:
    """Whether two accesses may be of the same memory."""
    one, other = emitter.program.scopes.memory(a.place), emitter.program.scopes.memory(b.place)
    return not one or not other or not set(one).isdisjoint(other)


def _compared(forms: LinearForms, a: Access, b: Access, ordered: bool) -> bool | Test:
    """Whether two accesses touch different elements in different iterations, or a test of it.

    ordered: whether they must touch different elements in one iteration too, where LLVM could
        change their order.
    """
    if a.place is not b.place or a.dims != b.dims:
        return False
    apart, same = list[int](), list[int]()
    for axis, (one, other) in enumerate(zip(a.index, b.index, strict=True)):
        if one is None or other is None:
            continue
        pace, distance = forms.step(one), one - other
        if pace != forms.step(other):
            apart.append(axis)
        elif isinstance(distance, int):
            narrow = a.narrow[axis] or b.narrow[axis]
            if _is_settled(pace, distance, ordered, 32 if narrow else 64):
                return True
            if isinstance(pace, int) and pace and abs(distance) > FEW * abs(pace):
                apart.append(axis)
        else:
            apart.append(axis)
            if pace != 0 and not ordered:
                same.append(axis)
    return Test(a, b, tuple(apart), tuple(same)) if apart or same else False


def _is_settled(pace: Dim, distance: int, ordered: bool, bits: int) -> bool:
    """Whether positions that begin at a distance from each other and go the same steps are never
    equal in different iterations, nor, if `ordered`, in one. They are known modulo 2**bits."""
    most = 1 << (bits - 2)
    if not isinstance(pace, int) or abs(pace) > most // MOST_ITERATIONS or abs(distance) > most:
        return False
    if ordered and not distance:
        return False
    return distance != 0 if pace == 0 else distance == 0 or distance % pace != 0
