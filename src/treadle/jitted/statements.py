"""Conditions, branches and loops of a jitted function: Python's, or the graph's where array values
decide."""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from treadle.autograph.errors import UndefinedVariableError
from treadle.autograph.operators.logical import MOST_NESTED
from treadle.autograph.operators.places import content_place
from treadle.autograph.operators.rolled_items import use_up
from treadle.core import errors
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.jitted import iteration
from treadle.jitted.arrays import (
    ConcreteValueError,
    Scalar,
    Traced,
    TracedSequence,
    direct,
)
from treadle.jitted.becoming import BecomesOther, Grows, Lengthens, keeping, traced_again
from treadle.jitted.branches import branch, raise_in_branch
from treadle.jitted.chosen_lists import ChosenItems, alone, holders_in
from treadle.jitted.chosen_texts import ChosenText
from treadle.jitted.effects import ChangesOutside, found_by_name, left_alone
from treadle.jitted.errors import ChangesLength, NotStaged
from treadle.jitted.grown_lists import GrownList, own_copy
from treadle.jitted.iteration import Counted, as_counted, python_counted
from treadle.jitted.left import (
    check_names,
    current,
    follow,
    is_another,
    origin_of,
)
from treadle.jitted.loops import Loop
from treadle.jitted.opened import in_python, is_outermost, opened
from treadle.jitted.optional_values import MaybeNone
from treadle.jitted.pools import NeedsPool, NeedsRow, needs_pool
from treadle.jitted.recursion import check_doubts, check_tries, stacked
from treadle.jitted.rows import WidensRows
from treadle.jitted.storage import scopes
from treadle.ops.control.marks import RaisesAlways
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.elementwise.logic import logical_not
from treadle.ops.numbers.python_numbers import (
    SymbolicNumber,
    ValueNeededError,
    apply,
    symbolic_number,
)
from treadle.ops.shaping.creation import zeros
from treadle.ops.shaping.reshaping import reshape_to

State = tuple[Any, ...]
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
# A body that needs a value which only the run has raises one of these: the loop stays Python's.
UNSTAGED = (
    ConcreteValueError, ValueNeededError, NotStaged, RaisesAlways,
    errors.OperatorNotAllowedInGraphError,
)  # fmt: skip
_REFUSED = (*UNSTAGED, UndefinedVariableError)
# What a variable is that only the first iteration gives a value, as far as a trace of any iteration
# can tell.
_FIRST_ONLY = (NotStaged, UndefinedVariableError)


# -- truth ---------------------------------------------------------------------------------------


def truth(value: Any) -> Any:
    """``bool(value)``: a Python bool, or a bool tensor where only the run knows it."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TracedSequence):
        return truth(value.length != 0)
    if isinstance(value, ChosenText):
        return truth(value.of_each(bool))
    if isinstance(value, MaybeNone):
        return truth(and_(lambda: not_(value.is_none()), lambda: value.get()))
    if type(value) is SymbolicNumber:
        tensor = value.tensor()
    elif isinstance(value, Traced):
        tensor = value.tensor
    else:
        now = current(value)
        return bool(value) if now is value else truth(now)
    if tensor.ndim:
        if any(d != 1 for d in tensor.dims):
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() "
                f"or a.all(){at(user_origin())}"
            )
        tensor = reshape_to(tensor, ())
    return tensor if tensor.dtype.is_bool else not_equal(tensor, zeros((), tensor.dtype))


def not_(value: Any) -> Any:
    found = truth(value)
    return symbolic_number(logical_not(found)) if isinstance(found, Tensor) else not found


def and_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() and ...``: later operands are evaluated only if the earlier ones are true."""
    value = first()
    for i, other in enumerate(others):
        test = truth(value)
        if isinstance(test, Tensor):
            rest = others[i:]
            if len(rest) > MOST_NESTED:
                head = and_(lambda: value, *rest[:MOST_NESTED])  # noqa: B023
                return and_(lambda: head, *rest[MOST_NESTED:])  # noqa: B023
            last = _Last(value, False)
            return if_exp(value, lambda: last.given(and_(*rest)), last.instead)  # noqa: B023
        if not test:
            return value
        value = other()
    return value


def or_(first: Callable[[], Any], *others: Callable[[], Any]) -> Any:
    """``first() or ...``: later operands are evaluated only if the earlier ones are false."""
    value = first()
    for i, other in enumerate(others):
        test = truth(value)
        if isinstance(test, Tensor):
            rest = others[i:]
            if len(rest) > MOST_NESTED:
                head = or_(lambda: value, *rest[:MOST_NESTED])  # noqa: B023
                return or_(lambda: head, *rest[MOST_NESTED:])  # noqa: B023
            last = _Last(value, True)
            return if_exp(not_(value), lambda: last.given(or_(*rest)), last.instead)  # noqa: B023
        if test:
            return value
        value = other()
    return value


class _Last:
    """What ``value or rest`` and ``value and rest`` give: a number where the rest is one, else a
    truth.

    Args:
        value: the operand before the rest.
        truth: its truth where it is the result.
    """

    def __init__(self, value: Any, truth: bool) -> None:
        self.value, self.truth, self.is_number = value, _like_bools(value, truth), False

    def given(self, rest: Any) -> Any:
        """The rest, which is traced first."""
        rest = direct(rest)
        self.is_number = _is_number(rest) and not isinstance(self.value, TracedSequence)
        return rest if self.is_number else _truth_kept(rest)

    def instead(self) -> Any:
        """The value, where it is the result."""
        if not self.is_number:
            return self.truth
        value = direct(self.value)
        is_bool = type(value) is SymbolicNumber and value.kind is bool
        return apply(int, value) if is_bool else value


def _is_number(value: Any) -> bool:
    """Whether a value is a number, and no truth."""
    if type(value) is SymbolicNumber:
        return value.kind is not bool
    if isinstance(value, Scalar):
        return not value.tensor.dtype.is_bool
    return isinstance(value, int | float | complex) and type(value) is not bool


def _like_bools(value: Any, truth: bool) -> Any:
    """A truth in the type of an operand: a NumPy bool where that is one, else Python's."""
    return Scalar(convert_to_tensor(truth)) if _is_numpy_bool(value) else truth


def _truth_kept(value: Any) -> Any:
    return value if _is_numpy_bool(value) else truth_value(value)


def _is_numpy_bool(value: Any) -> bool:
    return isinstance(value, Scalar) and value.tensor.dtype.is_bool


def truth_value(value: Any) -> Any:
    """``bool(value)`` as a Python bool, or as a symbolic one."""
    found = truth(value)
    return symbolic_number(found) if isinstance(found, Tensor) else found


def pass_on() -> None:
    """Called where a handler of the user's begins: errors of the compiler's own go on."""
    error = sys.exc_info()[1]
    if isinstance(error, UNSTAGED):
        raise error


def assert_stmt(test: Any, message: Callable[[], Any] | None = None) -> None:
    """``assert test, message()``, when the program runs where only the run knows `test`."""

    def fail() -> None:
        raise AssertionError(*([] if message is None else [message()]))

    found = truth(test)
    if not isinstance(found, Tensor):
        if not found:
            fail()
        return
    raise_in_branch(logical_not(found), fail)


# -- lists that change their length --------------------------------------------------------------


def _with_others(statement: Callable[..., Any]) -> Callable[..., Any]:
    """A statement before which lists, dicts and sets become others that it needs."""

    @functools.wraps(statement)
    def call(*args: Any, **options: Any) -> Any:
        args, begun = tuple(current(alone(a)) for a in args), in_python.count
        check_names(args)
        problem: BecomesOther
        try:
            with opened(args):
                result = statement(*args, **options)
            follow(_several(result))
            return result
        except BecomesOther as found:
            problem = found
        except ChangesLength as found:
            problem = Lengthens(found)
            if not problem.is_here(args, begun):
                raise
        return traced_again(problem, call, args, options, begun, _REFUSED)

    return call


# -- branches ------------------------------------------------------------------------------------


@_with_others
def if_stmt(
    test: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *state: Any,
    places: Sequence[Any] = (), filled: bool = False,
) -> Any:  # fmt: skip
    """``then(*state)`` or ``otherwise(*state)``; both are traced where `test` is traced."""
    found = truth(test)
    if not isinstance(found, Tensor):
        with in_python():
            return then(*state) if found else otherwise(*state)
    try:
        return _if(found, then, otherwise, state, places)
    except Grows as problem:
        owner = problem.owner
        if any(value is owner for value in state):
            raise
        for holder in state:
            if type(holder) is list and any(v is owner for v in holder) and needs_pool(holder):
                raise NeedsPool(holder) from None
        raise NeedsRow(owner, problem.template, str(problem)) from None


def _if(
    found: Tensor, then: Callable[..., Any], otherwise: Callable[..., Any], state: State,
    places: Sequence[Any],
) -> Any:  # fmt: skip
    """A conditional of the graph."""
    return _with_holders(
        lambda holders: _merged(found, then, otherwise, state, places, holders), state
    )


def _with_holders(merged: Callable[[State], Any], state: State) -> Any:
    """What a conditional gives; `merged` is told which lists and dicts it may change that it finds
    by name."""
    holders: State = ()
    while True:
        try:
            return merged(holders)
        except ChangesOutside as problem:
            known = {id(h) for h in holders}
            new = [h for h in problem.holders if id(h) not in known]
            if not new or len(problem.holders) < len(problem.changed):
                raise
            holders = (*holders, *new)


def _merged(
    found: Tensor, then: Callable[..., Any], otherwise: Callable[..., Any], state: State,
    places: Sequence[Any], holders: State,
) -> Any:  # fmt: skip
    kept = [p for p in places if p is not None]
    before = [p.get() for p in kept]
    origins: list[list[Any]] = []

    def side(run: Callable[..., Any]) -> Callable[[], Any]:
        def traced() -> Any:
            with left_alone(run, (*holders, *holders_in(state)), "branch", state):
                try:
                    result = run(*map(own_copy, state))
                    origins.append([origin_of(v) for v in _several(result)])
                    return result, tuple(p.get() for p in kept)
                finally:
                    for place, value in zip(kept, before, strict=True):
                        place.set(value)

        return traced

    sides = side(then), side(otherwise)
    named = functools.partial(found_by_name, then, otherwise)
    result, placed = branch(found, *sides, (*state, *holders), named)
    for place, value in zip(kept, placed, strict=True):
        place.set(value)
    values = _several(result)
    if all(len(o) == len(values) for o in origins):  # else one variable has a tuple
        for value, *found_in in zip(values, *origins, strict=True):
            if any(o is not found_in[0] for o in found_in):
                is_another(value, found_in)
    return result


def _several(result: Any) -> tuple[Any, ...]:
    """The variables that a statement's body gives."""
    return result if type(result) is tuple else (result,)


def if_exp(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    found = truth(test)
    if not isinstance(found, Tensor):
        return then() if found else otherwise()

    def side(run: Callable[[], Any], holders: State) -> Callable[[], Any]:
        def traced() -> Any:
            with left_alone(run, holders, "branch"):
                return run()

        return traced

    def merged(holders: State) -> Any:
        sides = side(then, holders), side(otherwise, holders)
        return branch(found, *sides, holders, lambda: found_by_name(then, otherwise))

    return _with_holders(merged, ())


# -- loops ---------------------------------------------------------------------------------------


class _Body:
    """A loop's body as a function from state to state, attributes and items included."""

    def __init__(self, body: Callable[..., Any], skip: int, places: Sequence[Any]) -> None:
        code = body.__code__
        self.body = body
        self.places = [p for p in places if p is not None]
        self.count = code.co_argcount - skip
        self.depth, self.rebound = len(scopes.open), set[int]()
        self.holders: State = ()  # lists that the body may change, which it finds by name

    def begin(self, state: State) -> State:
        self.begun = state
        return (*state, *(p.get() for p in self.places))

    def step(self, state: State, *item: Any) -> State:
        self.set_places(state)
        is_traced = len(scopes.open) > self.depth
        # Of each trace it is known before the loop writes its arrays, which nothing takes back.
        kept: Any = contextlib.nullcontext()
        if is_traced:
            kept = left_alone(self.body, self.holders, others=state[: self.count])
        with kept:
            result = self.body(*item, *state[: self.count])
            placed = [p.get() for p in self.places]
            if is_traced:
                self.set_places(state)
        values = (result,) if self.count == 1 else tuple(result) if self.count else ()
        if is_traced:
            pairs = zip(values, state, strict=False)
            self.rebound = {  # as the last trace of the body found
                i for i, (v, s) in enumerate(pairs) if origin_of(v) is not origin_of(s)
            }
        return (*values, *placed)

    def staged(self, values: State, run: Callable[[State], State]) -> State:
        """The loop in the graph: ``run(values)``. Lists that the body changes and finds by name are
        variables of it, too."""
        places = self.places
        holders = _chosen_holders(values)
        try:
            while True:
                added: list[Any] = [_HeldContent(h) for h in holders]
                begun = [p.get() for p in added]
                self.places, self.holders = [*places, *added], holders
                try:
                    with left_alone(self.body, holders):
                        ended = run((*values, *begun))
                        self.set_places((*values, *begun))
                    return ended
                except ChangesOutside as problem:
                    new = [h for h in problem.holders if type(h) is list]
                    if not new or len(new) < len(problem.changed):
                        raise
                    holders = (*holders, *new)
                finally:
                    for place, content in zip(added, begun, strict=True):
                        place.set(content)
        except Exception:
            self.places = places
            raise

    def named(self) -> Sequence[Any]:
        """The lists and dicts that the body finds by name."""
        return found_by_name(self.body)

    def set_places(self, state: State) -> None:
        for place, value in zip(self.places, state[self.count :], strict=True):
            place.set(value)

    def end(self, state: State) -> Any:
        self.set_places(state)
        begun = [origin_of(self.begun[number]) for number in self.rebound]
        for number in self.rebound:
            is_another(state[number], begun)
        if not self.count:
            return None
        return state[0] if self.count == 1 else tuple(state[: self.count])


class _HeldContent:
    """What a list holds that a loop's body finds by name, as a variable of the loop."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.place: Any = content_place(owner)

    def get(self) -> Any:
        return self.place.get()

    def set(self, value: Any) -> None:
        """
        Raises:
            NeedsRow: it grows, as only a list does that all names mean.
        """
        if isinstance(value, GrownList) and type(self.owner) is list:
            why = "A list grows in a loop that depends on array values and finds it by name"
            raise NeedsRow(self.owner, value.template, why + at(user_origin()))
        self.place.set(value)


def _chosen_holders(values: State) -> State:
    """The lists and dicts that variables are one of, and that are no variables themselves."""
    own = {id(h) for h in holders_in(v for v in values if not isinstance(v, ChosenItems))}
    found = {id(h): h for h in holders_in(v for v in values if isinstance(v, ChosenItems))}
    return tuple(h for number, h in found.items() if number not in own)


@_with_others
def while_stmt(
    test: Callable[..., Any], body: Callable[..., Any], *state: Any,
    until: Callable[..., Any] | None = None, places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:  # fmt: skip
    """Repeat ``state = body(*state)`` while ``test(*state)`` and not ``until(*state)``."""
    loop = _Body(body, 0, places)
    count = loop.count

    def proceed(values: State) -> Any:
        loop.set_places(values)
        own = values[:count]
        if until is None:
            return truth(test(*own))
        return truth(and_(lambda: not_(until(*own)), lambda: test(*own)))

    values = loop.begin(state)
    steps = 0
    while True:
        go = proceed(values)
        if not isinstance(go, Tensor) and not go:
            return loop.end(values)
        if isinstance(go, Tensor) or steps < _PEELED:
            try:
                grows = isinstance(go, Tensor)
                ended = loop.staged(
                    values,
                    functools.partial(_staged, proceed, loop.step, grows=grows, named=loop.named),
                )
                return loop.end(ended)
            except UNSTAGED as problem:
                _check_owner(problem)
                if isinstance(go, Tensor):
                    raise _explained(problem) from None
        elif steps > _MOST_UNROLLED:
            raise _too_long()
        loop.set_places(values)
        doubts = len(stacked.doubts)
        with in_python():
            values = loop.step(values)
        check_doubts(doubts)
        steps += 1


def _staged(
    proceed: Any, step: Any, values: State, peels: bool = False, grows: bool = False,
    named: Callable[[], Sequence[Any]] = list,
) -> State:  # fmt: skip
    def test(state: State) -> Any:
        return convert_to_tensor(proceed(state))

    return Loop(test, step, values, peels, grows, named=named).run()


@_with_others
def for_stmt(
    iterable: Any, body: Callable[..., Any], *state: Any,
    until: Callable[..., Any] | None = None, places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:  # fmt: skip
    """``state = body(item, *state)`` for each item, until ``until(*state)``."""
    iterable, loop = direct(iterable), _Body(body, 1, places)
    values = loop.begin(state)
    counted, live = as_counted(iterable), None
    if counted is None and (until is None or iter(iterable) is not iterable):
        counted = python_counted(iterable)
        live = iter(iterable)  # Python reads an item when its iteration begins
    with contextlib.ExitStack() as kept:
        for held in _iterated(iterable, 0) if live is not None else ():
            kept.enter_context(keeping(held))
        return _for(loop, iterable, counted, live, values, until)


def _iterated(iterable: Any, depth: int) -> Iterator[Any]:
    """The lists that an iterator of Python's goes through, such as that of ``enumerate(x)``."""
    if type(iterable) is list:
        yield iterable
    elif isinstance(iterable, Iterator) and depth < _DEEPEST:
        for part in gc.get_referents(iterable):
            yield from _iterated(part, depth + 1)


def _for(
    loop: _Body, iterable: Any, counted: Counted | None, live: Any, values: State, until: Any
) -> Any:
    if counted is None:
        return loop.end(_python_for(loop, iterable if live is None else live, values, until))
    size = counted.size
    if size is not None and iteration.is_short(size):
        with iteration.unrolled(size):
            return loop.end(_python_for(loop, live or counted.items(), values, until))
    for peeled in range(_PEELED + 1):
        peels = size is not None and peeled < _PEELED
        try:
            run = functools.partial(_counted_for, loop, counted, until=until, peels=peels)
            ended = loop.staged(values, run)
            if live is not None:
                use_up(iterable, None)
            return loop.end(ended)
        except (*UNSTAGED, UndefinedVariableError) as problem:
            _check_owner(problem)
            if size is None:
                raise _explained(problem) from None
            if not peels or not isinstance(problem, _FIRST_ONLY):
                if size > _MOST_UNROLLED:
                    own = isinstance(problem, ChangesLength | UndefinedVariableError)
                    raise (problem if own else _too_long()) from problem
                break
        # The first iteration may be the one that is unlike the others.
        first = counted.item(0) if live is None else next(live)
        values = _python_for(loop, [first], values, until)
        counted = counted.rest()
    return loop.end(_python_for(loop, live or counted.items(), values, until))


def _counted_for(loop: _Body, counted: Counted, values: State, until: Any, peels: bool) -> State:
    """The loop in the graph, over positions 0, 1, 2 and so on."""

    def proceed(state: State) -> Any:
        index, *rest = state
        more = index < counted.length
        if until is None:
            return truth(more)
        loop.set_places(tuple(rest))
        own = rest[: loop.count]
        return truth(and_(lambda: not_(until(*own)), lambda: more))

    def step(state: State) -> State:
        index, *rest = state
        position = symbolic_number(index.tensor(), (0, _last(counted.length)))
        return (index + 1, *loop.step(tuple(rest), counted.item(position)))

    grows = counted.size is None or counted.size > _MOST_APPENDING
    return _staged(proceed, step, (0, *values), peels, grows, loop.named)[1:]


def staged_for(counted: Counted, body: Callable[..., Any], *state: Any) -> Any:
    """``state = body(item, *state)`` for each item, as a loop of the graph.

    Raises:
        TypeError: one of `UNSTAGED`: it cannot be one.
    """
    loop = _Body(body, 1, ())
    return loop.end(_counted_for(loop, counted, loop.begin(state), None, False))


def _last(length: Any) -> int:
    """The last position of so many, or its upper bound where only the run knows the number."""
    interval = (length, length) if type(length) is int else getattr(length, "interval", None)
    return min(max(interval[1] - 1, 0), _FARTHEST) if interval else _FARTHEST


_FARTHEST = 2**62


def _python_for(loop: _Body, iterable: Any, values: State, until: Any) -> State:
    """Iterations one by one; from the one in which a `break` depends on array values, guarded."""
    for one in iterable:
        if until is not None:
            loop.set_places(values)
            stop = truth(until(*values[: loop.count]))
            if isinstance(stop, Tensor):
                values = _unless(stop, loop, values, one)
                continue
            if stop:
                break
        with in_python():
            values = loop.step(values, one)
    return values


def _unless(stop: Tensor, loop: _Body, values: State, one: Any) -> State:
    """One iteration, if the loop has not ended before."""
    found: State = branch(stop, lambda: values, lambda: loop.step(values, one), values)
    return found


def _check_owner(problem: Exception) -> None:
    """Raise a problem with a variable of this statement or one around, which has to be another list
    or dict before: iterations that Python runs first would change it. And a function that calls
    itself for ever, which is to become a loop."""
    check_tries(problem)
    inner = isinstance(problem, BecomesOther) and not is_outermost(problem.owner)
    if inner or isinstance(problem, WidensRows | NeedsRow):
        raise problem


def _explained(problem: Exception) -> Exception:
    if isinstance(problem, ChangesLength | UndefinedVariableError):
        return problem
    return NotStaged(
        f"A loop that depends on array values cannot become one of the graph: {problem}"
    )


def _too_long() -> Exception:
    return NotStaged(
        f"A loop of more than {_MOST_UNROLLED} iterations needs Python values of its variables in "
        f"every iteration, and is too long to be written out{at(user_origin())}"
    )


_DEEPEST = 4  # iterators inside of one another
_PEELED = 2
_MOST_UNROLLED = 2000
_MOST_APPENDING = 64  # iterations that are written out where they make a list longer
