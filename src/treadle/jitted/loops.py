"""Loops of a jitted function in the graph.

Tracing a loop's body shows its changes: the variables that it gives back, and the storages of
arrays that it writes, also through views and in functions that it calls. A loop is traced again
until its variables keep their forms and every storage that is written is carried. The first trace
carries the storages of the arrays that the body assigns or changes by name: mostly these are all
that it writes, and the body is traced once, which loops inside of loops need most.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.autograph.operators.journal import changes
from treadle.autograph.operators.undefined import PartlyDefined, Undefined
from treadle.core import dtypes, nest
from treadle.core.context import context, recording
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted.aliases import reach
from treadle.jitted.arrays import Array, check_kept
from treadle.jitted.branches import chosen_item
from treadle.jitted.chosen_lists import (
    KINDS,
    FrozenItems,
    holders_in,
    is_chosen,
    is_items,
    items_of,
    same_items,
)
from treadle.jitted.chosen_texts import is_text, number_of, options_of, text_like, text_of
from treadle.jitted.errors import CallsItself, NoForm, NotStaged
from treadle.jitted.forms import ARRAY, NUMBER, Form, form_of, joined, same
from treadle.jitted.growing_ints import Exact, exactness, overflow
from treadle.jitted.grown_lists import (
    GrownList,
    Template,
    grown_like,
    template_of,
)
from treadle.jitted.left import check_names, is_left, leave, leaving
from treadle.jitted.listed_ints import noted
from treadle.jitted.optional_values import MaybeNone, like, maybe_none
from treadle.jitted.recursion import check_doubts, stacked
from treadle.jitted.replaced import Replaced
from treadle.jitted.run_texts import RunText, is_any_text
from treadle.jitted.run_texts import like as run_text_like
from treadle.jitted.storage import Scope, Storage, listed, scope, scopes, states
from treadle.ops.control import control_flow
from treadle.ops.control.raising import raise_unless
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.logic import logical_and
from treadle.ops.numbers.python_numbers import number_from

State = tuple[Any, ...]


class _Again(Exception):
    """The loop must be traced again, with more storages carried or other forms."""


class Loop:
    """A loop of the graph over a state of Python values.

    The loop carries the numbers and arrays among the state's leaves that the body replaces, and the
    storages that it writes. An array that is replaced by another variable's array (``p, pn = pn,
    p``) is carried with a number that tells which array it was before the loop: changes in place
    reach that array in the end.

    Args:
        test: ``test(state)`` gives whether to go on, a bool tensor or bool.
        body: ``body(state)`` gives the next state.
        state: the values before the loop.
        peels: whether the first iteration can be taken out where it is unlike the others.
        grows: whether lists that grow in the body become lists of the graph.
        expects: whether the first trace carries the storages that the body will probably write.
        named: gives the lists and dicts that the body finds by name.
    """

    def __init__(
        self,
        test: Callable[[State], Any],
        body: Callable[[State], State],
        state: State,
        peels: bool = False,
        grows: bool = False,
        expects: bool = True,
        named: Callable[[], Sequence[Any]] = list,
    ) -> None:
        self.test, self.body, self.grows, self.named = test, body, grows, named
        self.shared: dict[int, list[Any]] = {}  # variable -> lists of before the loop, one of these
        self.moved: set[int] = set()  # variables that become other lists, which the body changes
        self.growing: dict[int, Template] = {}  # variables whose lists are to be of the graph
        self.left: list[leaving] = []  # what they were
        self.others: State | None = None  # variables to begin again with
        self.state = state
        self.leaves = nest.flatten(state)
        self.structure = nest.map_structure(lambda _: None, state)
        self.rebound: set[int] = set()  # variables that become other lists or dicts
        self.forms = _forms_of_numbers(self.leaves)
        self.blanks: dict[int, Any] = {}  # for variables that have no value before the loop
        self.exact: list[int] = []  # Python ints that the body multiplies,
        self.grows_at = ""  # and where
        self.outside: Any = context.recorder
        self.home = scopes.innermost
        self.storages: list[Storage] = _assigned(state) if expects else []
        self.expecting = bool(self.storages)  # until the first trace has told which are written
        self.peels = peels
        self.replaced = Replaced(peels)

    def run(self) -> State:
        """Record the loop; gives the values after it.

        Raises:
            NotStaged: the variables do not keep their structure from one iteration to the next.
        """
        known = set(listed.storages)
        try:
            return self.settled()
        except Exception:
            for one in reversed(self.left):
                one.undo()
            listed.storages = known
            raise

    def settled(self) -> State:
        for _ in range(_MOST_TRACES):
            try:
                ended = self.record()
            except _Again:
                self.expecting = False
                continue
            except Exception as error:
                if not self.expecting or isinstance(error, CallsItself):
                    raise
                kept = self.test, self.body, self.state, self.peels, self.grows
                return Loop(*kept, False, self.named).run()
            return ended
        raise NotStaged(f"the variables of a loop do not settle{at(user_origin())}")

    def make_grow(self) -> None:
        """Have lists be of the graph that the last trace found to grow."""
        state = list(self.state)
        for i, template in self.growing.items():
            grown = GrownList.of(state[i], template)
            check_names(state, state[i])
            self.left.append(leaving(state[i], grown).begin())
            state[i] = grown
        self.growing = {}
        self.restart(tuple(state))

    def restart(self, state: State) -> None:
        """Begin again with other variables before the loop. A trace of the body only notes them as
        `others`: until it has ended, lists hold what the body has made of them."""
        self.others = None
        self.state, self.leaves = state, nest.flatten(state)
        self.structure = nest.map_structure(lambda _: None, state)
        self.forms, self.blanks = _forms_of_numbers(self.leaves), {}

    def record(self) -> State:
        if self.others is not None:
            self.restart(self.others)
        if self.growing:
            self.make_grow()
        numbers = sorted(self.forms)
        arrays = [i for i in numbers if self.forms[i].kind == ARRAY]
        self.replaced.begin({i: self.blanks.get(i, self.leaves[i]) for i in arrays})
        start = [self.start(i) for i in numbers] + [s.held for s in self.storages]
        start += self.replaced.start() + [convert_to_tensor(np.True_)] * len(self.exact)
        results = control_flow.staged_loop(
            lambda *flat: self.traced_test(numbers, flat),
            lambda *flat: self.traced_body(numbers, flat),
            tuple(start),
            widen=True,
        )
        size = len(results) - len(self.exact)
        results, exact = results[:size], dict(zip(self.exact, results[size:], strict=True))
        values = dict(zip(numbers, results, strict=False))
        rest = results[len(numbers) :]
        for storage, tensor in zip(self.storages, rest, strict=False):
            storage.write(tensor)
        leaves = list(self.leaves)
        for i, tensor in values.items():
            leaves[i] = self.forms[i].value(tensor)
            if i in exact:
                leaves[i] = number_from(Exact(tensor, exact[i], self.grows_at), int)
        leaves = self.replaced.end(leaves, rest[len(self.storages) :])
        state = list(self.packed(leaves))
        for i, sources in self.shared.items():
            state[i] = FrozenItems(state[i], sources, chosen_item)
        for i in self.moved:
            if type(self.state[i]) in KINDS and not is_left(self.state[i]):
                leave(self.state[i], why=_CHANGED + at(user_origin()))  # for its other names
        return tuple(state)

    def packed(self, leaves: list[Any]) -> State:
        """The variables with these leaves. Lists and dicts that keep their identity in the body are
        those from before the loop, which other variables may name too."""
        made = nest.pack(self.structure, leaves)
        return tuple(
            new if i in self.rebound else _poured(old, new)
            for i, (old, new) in enumerate(zip(self.state, made, strict=True))
        )

    def start(self, number: int) -> Tensor:
        leaf = self.blanks.get(number, self.leaves[number])
        return self.forms[number].tensor(leaf)

    def inside(self, numbers: Sequence[int], flat: Sequence[Any]) -> State:
        """The state that the user's code sees in an iteration; storages hold carried tensors."""
        rest = flat[len(numbers) :]
        for storage, tensor in zip(self.storages, rest, strict=False):
            storage.put_back(tensor)
        values = list(self.leaves)
        for i, tensor in zip(numbers, flat, strict=False):
            values[i] = self.forms[i].value(tensor)
        self.replaced.enter(values, rest[len(self.storages) :])
        return self.packed(values)

    def note_changes(self) -> None:
        """The carried storages are others in an iteration: scopes put them back."""
        for storage in self.storages:
            storage.note_change()

    def traced_test(self, numbers: list[int], flat: Sequence[Any]) -> Any:
        with changes(self.state), scope():
            self.note_changes()
            return self.test(self.inside(numbers, flat[: len(flat) - len(self.exact)]))

    def traced_body(self, numbers: list[int], flat: Sequence[Any]) -> Any:
        with changes(self.state), scope() as found:
            self.note_changes()
            doubts = len(stacked.doubts)
            flat = self.still_exact(flat)
            before = self.inside(numbers, flat)
            begun = nest.flatten(before)
            held = [(h, items_of(h)) for h in holders_in(before)]
            after = self.body(before)
            after = tuple(like(grown_like(x, y), y) for x, y in zip(after, before, strict=True))
            changed = {id(h) for h, items in held if not same_items(items, items_of(h))}
            after = self.unshared(before, after, changed)
            after = tuple(text_like(x, y) for x, y in zip(after, before, strict=True))
            after = tuple(run_text_like(x, y) for x, y in zip(after, before, strict=True))
            self.settle(before, begun, after, found)
            check_doubts(doubts)
            leaves = nest.flatten(after)
            check_kept(leaves)
            given = [self.forms[i].tensor(leaves[i]) for i in numbers]
            told = self.exact_ints(numbers, flat, given)
            rest = self.replaced.leave(leaves)
            return (*given, *(s.tensor for s in self.storages), *rest, *told)

    def still_exact(self, flat: Sequence[Any]) -> Sequence[Any]:
        """What an iteration begins with, which raises where an int is not exact any more."""
        size = len(flat) - len(self.exact)
        if self.exact:
            raise_unless(functools.reduce(logical_and, flat[size:]), overflow(self.grows_at))
        return flat[:size]

    def exact_ints(
        self, numbers: list[int], flat: Sequence[Any], given: Sequence[Any]
    ) -> list[Tensor]:
        """For each Python int that grows in the body whether it is exact behind the iteration.

        Raises:
            _Again: there are others than the loop carries such a bool for.
        """
        builder: Any = context.recorder
        ints = [
            (i, begun.value, ended.value)
            for i, begun, ended in zip(numbers, flat, given, strict=False)
            if self.forms[i] == _INT and getattr(ended, "recorder", None) is builder
        ]
        noted.values.update(value for _, _, value in ints)
        found = exactness([b for _, b, _ in ints], [e for _, _, e in ints])
        exact = {ints[k][0]: builder.tensor_of(value) for k, value in found.items()}
        if list(exact) != self.exact:
            self.exact = list(exact)
            self.grows_at = at(next(v.node.origin for v in found.values() if v.node))
            raise _Again
        return list(exact.values())

    def unshared(self, before: State, after: State, changed: set[int]) -> State:
        """The variables after an iteration, with a copy of a list or dict for each that has one
        which others may have, too.

        Args:
            changed: the ids of lists and dicts that the iteration has changed.

        Raises:
            NotStaged: it has changed one of these.
        """
        pairs = [*zip(before, after, strict=True)]
        new = [i for i, (x, y) in enumerate(pairs) if y is not x and is_items(y)]
        self.shared = {}
        self.moved = {i for i in new if id(before[i]) in changed}
        known = -1
        while known < len(self.moved):
            known, gone = len(self.moved), [before[j] for j in self.moved]
            self.moved |= {i for i in new if any(after[i] is one for one in gone)}
        if not new:
            return after
        named = {id(h) for h in holders_in(self.named())}
        own = {id(x): y for x, y in zip(before, self.state, strict=True)}
        made = list(after)
        for i in new:
            others = [y for j, y in enumerate(after) if j != i]
            found = [o.items for o in after[i].options] if is_chosen(after[i]) else [after[i]]
            if is_chosen(after[i]) or id(after[i]) in named or any(y is after[i] for y in others):
                self.shared[i] = [own.get(id(one), one) for one in found]
                if not changed.isdisjoint(map(id, found)):
                    raise NotStaged(
                        "A loop changes a list or dict in place, and gives a variable one that "
                        f"may be it: give it a copy, or use arrays{at(user_origin())}"
                    )
                made[i] = after[i].get() if is_chosen(after[i]) else type(after[i])(after[i])
        return tuple(made)

    def settle(self, state: State, before: list[Any], after: State, found: Scope) -> None:
        """See whether the next iteration begins as this one did.

        Args:
            state, before: the variables and their leaves at the begin of the iteration.

        Raises:
            _Again: not yet; the storages to be carried are noted.
            NotStaged: it never will.
        """
        expected = self.storages if self.expecting else []
        self.storages = self.storages[len(expected) :]
        self.open_none(state, after)
        self.open_texts(state, after)
        try:
            nest.assert_same_structure(self.structure, nest.map_structure(lambda _: None, after))
        except (TypeError, ValueError) as error:
            self.open_undefined(after)
            self.note_growth(after)
            raise NotStaged(f"{error}{at(user_origin())}") from None
        leaves = nest.flatten(after)
        rebound = {i for i, (a, b) in enumerate(zip(state, after, strict=True)) if _differ(a, b)}
        changed = not rebound <= self.rebound
        self.rebound |= rebound
        for i, (old, new) in enumerate(zip(before, leaves, strict=True)):
            changed |= self.settle_leaf(i, old, new)
        written = [s for s in found.written if s not in self.storages]
        if expected and not changed and set(written) == set(expected):
            self.storages, written, expected = expected, [], []
        if changed:  # arrays from before the loop were written by name: trace again
            arrays = [self.leaves[i] for i, form in self.forms.items() if form.kind == ARRAY]
            own = {s for a in arrays if isinstance(a, Array) for s in reach(a)}
            written = [s for s in written if s not in own]
        self.storages += written
        if not changed and not written and not expected:
            changed = self.replaced.settle(leaves, found, self.storages)
            for storage in self.replaced.followed_storages():
                if storage not in self.storages:
                    self.storages.append(storage)
        if changed or written or expected:
            raise _Again

    def open_none(self, before: State, after: State) -> None:
        """Have a variable be one that may be None, which is None before an iteration or behind it.

        Raises:
            _Again: there is one.
            NotStaged: it is None before the first iteration only, which may be taken out.
        """
        found = [i for i, pair in enumerate(zip(before, after, strict=True)) if _opens(*pair)]
        if not found:
            return
        if self.peels and not any(isinstance(after[i], MaybeNone) for i in found):
            raise NotStaged(
                f"A variable begins as None and becomes a value in a loop in the graph"
                f"{at(user_origin())}"
            )
        state = list(self.state)
        for i in found:
            value = after[i].value if isinstance(after[i], MaybeNone) else after[i]
            filler = nest.map_structure(self.blank_like, value)
            with recording(self.outside):
                state[i] = maybe_none(state[i], filler)
        self.others = tuple(state)
        raise _Again

    def open_texts(self, before: State, after: State) -> None:
        """Have a variable be one of several texts, which is one before an iteration and may be
        another one after it.

        Raises:
            _Again: there is one.
        """
        pairs = enumerate(zip(before, after, strict=True))
        found = [(i, options_of(*p)) for i, p in pairs if all(map(is_text, p))]
        found = [(i, options) for i, options in found if options != options_of(before[i])]
        state = list(self.state)
        for i, options in found:
            with recording(self.outside):
                state[i] = text_of(number_of(state[i], options), options)
        of_run = [
            i for i, (old, new) in enumerate(zip(before, after, strict=True))
            if isinstance(new, RunText) and is_any_text(old) and type(old) is not type(new)
        ]  # fmt: skip
        for i in of_run:
            with recording(self.outside):
                state[i] = run_text_like(state[i], after[i])
        if found or of_run:
            self.others = tuple(state)
            raise _Again

    def blank_like(self, leaf: Any) -> Any:
        """What stands for a value of an iteration before the loop, where there is none."""
        form = form_of(leaf)
        return leaf if form is None else self.blank(form, form.tensor(leaf).spec)

    def blank(self, form: Form, spec: Any) -> Any:
        """Zeros of a form before the loop."""
        with recording(self.outside):
            blank = form.value(form.blank(spec))
        if isinstance(blank, Array):
            blank.storage.home = self.home
        return blank

    def open_undefined(self, after: State) -> None:
        """Have a variable that has no value before the loop be as many as the body gives it.

        Raises:
            _Again: there is one that the body gives a tuple or another structure.
        """
        state = _with_structure(nest.pack(self.structure, self.leaves), after)
        leaves = nest.flatten(state)
        if len(leaves) > len(self.leaves):
            self.others = state
            self.rebound = set(range(len(state)))
            raise _Again

    def note_growth(self, after: State) -> None:
        """Have variables be lists of the graph whose lists the body makes longer or shorter.

        Raises:
            _Again: there is one.
        """
        if not self.grows:
            return
        for i, (old, new) in enumerate(
            zip(nest.pack(self.structure, self.leaves), after, strict=True)
        ):
            template = template_of(old, new)
            if template is not None:
                self.growing[i] = template
        if self.growing:
            raise _Again

    def settle_leaf(self, number: int, old: Any, new: Any) -> bool:
        """Whether a variable needs another form than it has."""
        new = new.value if isinstance(new, PartlyDefined) else new
        form = self.forms.get(number)
        if form is None and same(old, new):
            return False
        found = form_of(new)
        if found is None:
            raise NotStaged(
                f"A variable is {old!r} before an iteration of a loop in the graph and {new!r} "
                f"after it{at(user_origin())}"
            )
        if isinstance(old, Undefined) and form is None:
            # Zeros, which no program reads, of the shape that the body gives.
            self.forms[number] = found
            self.blanks[number] = self.blank(found, found.tensor(new).spec)
            return True
        known = form or self.form_before(old)
        if self.peels and known.kind == found.kind == ARRAY and known.dtype is not found.dtype:
            raise NotStaged(
                f"A variable is an array of {known.dtype.name} before an iteration of a loop and "
                f"one of {found.dtype.name} after it{at(user_origin())}"
            )
        try:
            wanted = joined(known, found)
        except NoForm as problem:
            raise NotStaged(f"A variable is {problem}{at(user_origin())}") from None
        self.forms[number] = wanted
        return wanted != form

    def form_before(self, old: Any) -> Form:
        form = form_of(old)
        if form is None:
            raise NotStaged(
                f"A variable begins as {old!r} and becomes a number or array in a loop in the "
                f"graph{at(user_origin())}"
            )
        return form


def _assigned(state: State) -> list[Storage]:
    """The storages of the arrays among the variables that a loop's body assigns, or whose items;
    and those of the generators that the function has drawn from before the loop."""
    arrays = [v.storage for v in state if isinstance(v, Array)] + states()
    return [s for s in dict.fromkeys(arrays) if type(s) is Storage and s not in listed.storages]


def _poured(old: Any, new: Any) -> Any:
    """`new` in the lists and dicts of `old`, which now hold the new values."""
    if isinstance(old, MaybeNone) and isinstance(new, MaybeNone):
        return MaybeNone(new.present, _poured(old.value, new.value))
    if type(old) is not type(new) or not isinstance(old, list | dict | tuple):
        return new
    if isinstance(old, dict):
        for key, value in new.items():
            old[key] = _poured(old[key], value)
        return old
    if len(old) != len(new) or type(old) not in (list, tuple):
        return new
    parts = [_poured(x, y) for x, y in zip(old, new, strict=True)]
    if isinstance(old, tuple):
        return tuple(parts)
    old[:] = parts
    return old


def _differ(a: Any, b: Any) -> bool:
    """Whether two values of one structure are not the same lists and dicts."""
    if type(a) in (list, dict):
        return a is not b
    if type(a) is tuple and type(b) is tuple:
        return any(_differ(x, y) for x, y in zip(a, b, strict=False))
    return False


def _opens(before: Any, after: Any) -> bool:
    """Whether a variable has a value on one side of an iteration and is, or may be, None on the
    other one, and is no variable that may be None yet."""
    if isinstance(before, MaybeNone | Undefined) or isinstance(after, Undefined):
        return False
    return isinstance(after, MaybeNone) or (before is None) is not (after is None)


def _forms_of_numbers(leaves: Sequence[Any]) -> dict[int, Form]:
    forms = {i: form_of(leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, Array)}
    return {i: form for i, form in forms.items() if form is not None}


def _with_structure(before: Any, after: Any) -> Any:
    """The values before a loop, where one that is undefined is as many as it becomes."""
    if isinstance(before, Undefined) and nest.is_nested(after):
        return nest.pack(after, [before] * len(nest.flatten(after)))
    if isinstance(before, MaybeNone):
        value = after.value if isinstance(after, MaybeNone) else after
        return MaybeNone(before.present, _with_structure(before.value, value))
    if type(before) is type(after) and type(before) in (tuple, list) and len(before) == len(after):
        return type(before)([_with_structure(x, y) for x, y in zip(before, after, strict=True)])
    return before


_CHANGED = (
    "a loop that depends on array values changes, which gives its variable others: give that a copy"
)
_MOST_TRACES = 12
_INT = Form(NUMBER, dtypes.int64)
