"""while and for statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from treadle.autograph.errors import (
    SharedElementsError,
    StagingError,
    StagingTypeError,
    StagingValueError,
)
from treadle.autograph.loop_notes import Refused
from treadle.autograph.operators.aliases import (
    Assignments,
    carry,
    share_with_others,
)
from treadle.autograph.operators.assigned import AssignedFlags
from treadle.autograph.operators.conditionals import Placeholder, staged_if
from treadle.autograph.operators.elements import elements_of, is_pulled
from treadle.autograph.operators.handlers import raised_under
from treadle.autograph.operators.iteration import NumberRange, as_staged
from treadle.autograph.operators.logical import and_, not_
from treadle.autograph.operators.outer import Cell, Global
from treadle.autograph.operators.owned import own
from treadle.autograph.operators.python_loops import (
    MOST_PEELED,
    OVER,
    PEEL,
    may_roll,
    rolled_for,
    rolled_while,
    symbolic_for,
)
from treadle.autograph.operators.streams import Numbered, Stream
from treadle.autograph.operators.undefined import Undefined, completed, made
from treadle.autograph.operators.values import (
    describe,
    filler,
    holds_tensors,
    is_staged,
    is_tensor_like,
    same,
)
from treadle.core import dtypes, errors, nest
from treadle.core.context import context, taping
from treadle.core.origin import at, user_origin
from treadle.core.shapes import TensorShape
from treadle.core.spec import Spec
from treadle.core.switches import is_on
from treadle.core.tensor import Tensor, lacks_rank
from treadle.ops.control import control_flow
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable

State = tuple[Any, ...]
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def while_stmt(
    test: Callable[..., Any],
    body: Callable[..., Any],
    *state: Any,
    until: Callable[..., Any] | None = None,
    places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:
    """Repeat ``state = body(*state)`` while ``test(*state)`` and not ``until(*state)``.

    Where the conditions are Python's the loop is rolled, or else runs in Python; from the
    iteration in which one becomes symbolic, the rest is a ``while`` node.

    Raises:
        StagingTypeError, StagingValueError: a variable changes its dtype or shape in the graph.
    """
    loop = _Loop(body, 0, places, options)
    attempts = 1 + MOST_PEELED if may_roll() and not options else 0
    while True:
        stop = False if until is None else until(*state)
        if is_staged(stop):
            break
        if stop:
            return loop.finish(state)
        go = test(*state)
        if is_staged(go):
            break
        if not go:
            return loop.finish(state)
        if attempts:
            state, outcome = rolled_while(loop, test, state, until)
            if outcome is OVER:
                return loop.finish(state)
            attempts = attempts - 1 if outcome is PEEL else 0
        state = loop.step(state)

    def proceed(*state: Any) -> Any:
        if until is None:
            return test(*state)
        return and_(lambda: not_(until(*state)), lambda: test(*state))

    return loop.finish(loop.staged(proceed, loop.step, state))


def for_stmt(
    iterable: Any,
    body: Callable[..., Any],
    *state: Any,
    until: Callable[..., Any] | None = None,
    places: Sequence[Any] = (),
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Any:
    """``state = body(item, *state)`` for each item, until ``until(*state)``.

    A symbolic tensor (or range of one) gives a ``while`` node over its first dimension; anything
    else is iterated by Python.
    """
    if isinstance(iterable, Stream | Numbered):
        return iterable.loop(for_stmt, body, state, until, places, options)
    loop = _Loop(body, 1, places, options)
    if isinstance(iterable, NumberRange) and is_on("rolled_loops"):
        try:
            return loop.finish(symbolic_for(loop, iterable, state, until))
        except Refused as why:
            iterable.refuse(str(why))
    if is_pulled(iterable):
        pulled = elements_of(iterable)
        zero = convert_to_tensor(0, dtypes.int64)
        result = _counted_for(loop, lambda _: pulled.more(), pulled.item, zero, state, until)
        pulled.close()
        return result
    over = as_staged(iterable)
    if over is None:
        return loop.finish(_python_for(loop, iterable, state, until))
    zero = convert_to_tensor(0, over.length.dtype)
    return _counted_for(loop, lambda i: i < over.length, over.item, zero, state, until)


def _counted_for(loop: _Loop, more: Any, item: Any, zero: Tensor, state: State, until: Any) -> Any:
    """A loop of the graph over ``item(0), item(1)`` and so on, while ``more(index)``."""

    def proceed(index: Any, *state: Any) -> Any:
        if until is None:
            return more(index)
        return and_(lambda: not_(until(*state)), lambda: more(index))

    def step(state: State) -> State:
        index, *rest = state
        return (index + 1, *loop.step(tuple(rest), item(index)))

    return loop.finish(loop.staged(proceed, step, (zero, *state), hidden=1)[1:])


def _python_for(loop: _Loop, iterable: Any, state: State, until: Any) -> State:
    def step(item: Any, state: State) -> tuple[State, bool]:
        state = _guarded_step(loop, item, state, until)
        stop = False if until is None else until(*state)
        return state, not is_staged(stop) and bool(stop)

    if not loop.options and may_roll():
        state, iterable = rolled_for(loop, iterable, state, until, step)
    for item in iterable:
        state, over = step(item, state)
        if over:
            break
    return state


def _guarded_step(loop: _Loop, item: Any, state: State, until: Any) -> State:
    """One iteration of a Python loop, run only if a symbolic `until` does not hold yet."""
    stop = False if until is None else until(*state)
    if not is_staged(stop):
        return loop.step(state, item)
    result = staged_if(
        stop, lambda: state, lambda: loop.step(state, item), loop.places, lambda: loop.names, state
    )
    return tuple(result)


class _Loop:
    """A loop's body, with the names of its variables (the parameters of the body)."""

    def __init__(
        self,
        body: Callable[..., Any],
        skip: int,
        places: Sequence[Any],
        options: Mapping[str, Any],
    ) -> None:
        code = body.__code__
        self.options = options
        self.body = body
        self.places = [p for p in places if p is not None]
        self.names = list(code.co_varnames[skip : code.co_argcount])

    def step(self, state: State, *item: Any) -> State:
        result = self.body(*item, *state)
        if len(self.names) == 1:
            return (result,)
        return tuple(result) if self.names else ()

    def finish(self, state: State) -> Any:
        if not self.names:
            return None
        return state[0] if len(self.names) == 1 else tuple(state)

    def staged(
        self,
        proceed: Callable[..., Any],
        step: Callable[[State], State],
        state: State,
        hidden: int = 0,
    ) -> State:
        """The loop as a ``while`` node. `hidden` leading variables are not the user's."""
        names = ["the loop counter"] * hidden + self.names
        state = tuple(map(completed, state))
        with raised_under("a loop over tensors"):
            owned = own(names, state, step, self.places)
        state, places = owned.state, [*self.places, *owned.places]
        variables = (p.name if isinstance(p, Cell | Global) else None for p in places)
        names += [name or "an attribute or item" for name in variables]
        start = (*state, *(p.get() for p in places))
        before = start[len(state) :]

        def opened(values: State) -> State:
            for place, value in zip(places, values[len(state) :], strict=True):
                place.set(value)
            return owned.opened(values[: len(state)])

        def step_all(values: State) -> State:
            inner = step(opened(values))
            return (*owned.closed(inner), *(p.get() for p in places))

        try:
            with raised_under("a loop over tensors"):
                typed = _with_types(start, step_all)
                flags = AssignedFlags(names, start, typed)
                names += ["whether it is assigned"] * len(flags.numbers)

                def record(values: State) -> State:
                    return _record(
                        names,
                        lambda v: proceed(*opened(flags.take(v))),
                        lambda v: flags.add(step_all(flags.take(v))),
                        (*values, *flags.initial),
                        self.options,
                    )

                result = flags.take(_with_wide_floats(record, step_all, typed))
        finally:
            for place, value in zip(places, before, strict=True):
                place.set(value)
        for place, value in zip(places, result[len(state) :], strict=True):
            checked = isinstance(place, Cell) and place.checked
            place.set(value if checked else made(value, place.label))
        return owned.opened(result[: len(state)])


def _with_wide_floats(
    record: Callable[[State], State], step: Callable[[State], State], start: State
) -> State:
    """``record(start)``, where Python floats take the dtype that they have after an iteration:
    ``total = 0.0`` before a loop that adds float64 numbers is float64.

    An iteration is traced with the floats as they are, as Python would run it, where they do not
    fit as float32.
    """
    while True:
        try:
            return record(start)
        except (TypeError, errors.InvalidArgumentError):
            found = _wider(start, step)
            if found is None:
                raise
            start = found


def _wider(start: State, step: Callable[[State], State]) -> State | None:
    """`start` with tensors for the floats that an iteration gives another dtype; None if none."""
    flat = nest.flatten(start)
    floats = [i for i, v in enumerate(flat) if type(v) is float]
    if not floats:
        return None
    try:
        after = _after_one(start, step)
        nest.assert_same_structure(start, after)
    except Exception:  # the loop itself raises the error to show
        return None
    changed = False
    for i, spec in enumerate(nest.flatten(after)):
        dtype = getattr(spec, "dtype", None)
        if i in floats and dtype is not None and dtype is not dtypes.float32:
            if not (dtype.is_floating or dtype.is_complex):
                return None
            flat[i], changed = convert_to_tensor(flat[i], dtype), True
    return tuple(nest.pack(start, flat)) if changed else None


def _after_one(start: State, step: Callable[[State], State]) -> State:
    """The variables after an iteration that begins with Python's own floats: specs where they are
    tensors."""
    builder: Any = context.recorder
    flat = nest.flatten(start)
    moving = [i for i, v in enumerate(flat) if isinstance(v, Tensor) and not lacks_rank(v)]
    found: list[Any] = []

    def run(*params: Any) -> list[Any]:
        values = dict(zip(moving, params, strict=True))
        inside = nest.pack(start, [values.get(i, v) for i, v in enumerate(flat)])
        with taping(()):
            for value in step(tuple(inside)):
                found.append(
                    nest.map_structure(lambda x: x.spec if isinstance(x, Tensor) else x, value)
                )
        return []

    builder.trace_region(run, [flat[i].spec for i in moving])
    return tuple(found)


def _with_types(start: State, step: Callable[[State], State]) -> State:
    """`start` with zeros for variables without a value, of the types the body gives them."""
    if not any(isinstance(v, Undefined) for v in start):
        return start
    builder: Any = context.recorder
    trial = tuple(Placeholder(v.name) if isinstance(v, Undefined) else v for v in start)
    flat = nest.flatten(_as_tensors(trial))
    moving = [i for i, v in enumerate(flat) if isinstance(v, Tensor) and not lacks_rank(v)]
    found: list[Any] = []

    def run(*params: Any) -> list[Any]:
        values = dict(zip(moving, params, strict=True))
        inside = nest.pack(trial, [values.get(i, v) for i, v in enumerate(flat)])
        with taping(()):
            found.extend(step(tuple(inside)))
            for i, value in enumerate(found):
                if not isinstance(value, Undefined) and holds_tensors(value):
                    found[i] = nest.map_structure(lambda x: convert_to_tensor(x).spec, value)
        return []

    builder.trace_region(run, [flat[i].spec for i in moving])
    return tuple(
        nest.map_structure(lambda x: filler(builder, x), now)
        if isinstance(v, Undefined) and all(isinstance(x, Spec) for x in nest.flatten(now))
        else v
        for v, now in zip(start, found, strict=True)
    )


def _as_tensors(values: State) -> State:
    """Python numbers as tensors, which they are inside a staged loop."""
    return tuple(
        nest.map_structure(lambda x: convert_to_tensor(x) if is_tensor_like(x) else x, v)
        for v in values
    )


def _record(
    names: list[str],
    proceed: Callable[[State], Any],
    step: Callable[[State], State],
    start: State,
    options: Mapping[str, Any],
) -> State:
    """A ``while`` node whose loop variables are the tensors in `start`."""
    flat = nest.flatten(start)
    moving = [i for i, v in enumerate(flat) if is_tensor_like(v) or _is_list(v)]

    def pack(tensors: Sequence[Any]) -> State:
        values = list(flat)
        for i, tensor in zip(moving, tensors, strict=True):
            values[i] = tensor
        return tuple(nest.pack(start, values))

    def run_test(*tensors: Any) -> Any:
        go = convert_to_tensor(proceed(pack(tensors)))
        return go if go.dtype is dtypes.bool else go != 0

    def run_body(*tensors: Any) -> Any:
        carry(tensors, initial)
        assignments = Assignments()
        after = iterate(tensors)
        if assignments:
            _refuse_sharing_later(after, iterate, [t.spec for t in tensors], initial)
        return after

    def iterate(tensors: Sequence[Any]) -> State:
        return _checked(names, pack(tensors), step(pack(tensors)), fixed)

    invariants = _invariants(names, start, moving, options.get("shape_invariants"))
    shapes = (i.shape if isinstance(i, Spec) else i for i in invariants or [None] * len(moving))
    fixed = dict(zip(moving, shapes, strict=True))
    initial = [convert_to_tensor(flat[i]) if is_tensor_like(flat[i]) else flat[i] for i in moving]
    result = control_flow.staged_loop(
        run_test,
        run_body,
        tuple(initial),
        invariants,
        options.get("maximum_iterations"),
        widen=True,
        checkpoint=options.get("checkpoint", False),
    )
    return pack(result)


def _refuse_sharing_later(
    after: State, iterate: Callable[[State], State], specs: Sequence[Spec], initial: Sequence[Any]
) -> None:
    """Where an iteration lets variables share elements, trace the next ones, too, so that their
    assignments are checked.

    Raises:
        SharedElementsError: an iteration after the first changes a part of a variable that another
            one then shares.
    """
    sharing = share_with_others(after)
    if not sharing:
        return

    def follow(*params: Any) -> list[Any]:
        carry(params, initial)
        with taping(()):
            values, seen = iterate(params), frozenset[tuple[int, int]]()
            while sharing := share_with_others(values) - seen:  # the next one may let more share
                values, seen = iterate(values), seen | sharing
        return []

    builder: Any = context.recorder
    try:
        builder.trace_region(follow, specs)
    except SharedElementsError:
        raise
    except (StagingError, TypeError, ValueError, errors.InvalidArgumentError):
        pass  # the loop's own trace raises it, where it is a fault of the user's


def _invariants(
    names: list[str], start: State, moving: list[int], given: Mapping[str, Any] | None
) -> list[Any] | None:
    """For each moving value its shape invariant, or None where it keeps its shape."""
    if not given:
        return None
    flat: list[Any] = []
    for name, value in zip(names, start, strict=True):
        shape = given.get(name)
        if shape is not None and not isinstance(shape, TensorShape | Spec):
            shape = TensorShape(shape)
        flat += [shape] * len(nest.flatten(value))
    return [flat[i] for i in moving]


def _is_list(value: Any) -> bool:
    return type(value).__name__ == "ListTensor"


def _checked(
    names: list[str], before: State, after: State, moving: Mapping[int, TensorShape | None]
) -> State:
    """The tensors of `after`, which must have the types they had before the iteration.

    `moving`: the numbers of the tensors, and the shape invariants that say how they may change.
    """
    result: list[Any] = []
    number = 0
    for name, old, new in zip(names, before, after, strict=True):
        try:
            nest.assert_same_structure(old, new)
        except (TypeError, ValueError):
            raise _changed(StagingTypeError, name, old, new) from None
        for a, b in zip(nest.flatten(old), nest.flatten(new), strict=True):
            if number in moving:
                result.append(_same_type(name, a, b, moving[number]))
            elif not same(a, b):
                raise _changed(StagingTypeError, name, a, b)
            number += 1
    return tuple(result)


def _same_type(name: str, old: Any, new: Any, declared: TensorShape | None) -> Any:
    if isinstance(new, Undefined) or not (is_tensor_like(new) or isinstance(new, Tensor)):
        raise _changed(StagingTypeError, name, old, new)
    if not isinstance(new, Tensor | Variable):
        try:
            new = convert_to_tensor(new, old.dtype)
        except (TypeError, ValueError):
            raise _changed(StagingTypeError, name, old, new) from None
    new = convert_to_tensor(new)
    if not isinstance(old, Tensor) or type(old.spec) is not type(new.spec):
        return new
    if old.dtype is not new.dtype:
        raise _changed(StagingTypeError, name, old, new)
    if lacks_rank(old) or lacks_rank(new) or hasattr(old.spec, "element"):
        return new  # lists learn their element shape; ranks that only a run knows are left open
    if old.ndim == new.ndim and not declared:
        return new  # dims that change are left open
    if not _dims_fit(old, new, declared):
        raise _changed(StagingValueError, name, old, new)
    return new


def _dims_fit(old: Tensor, new: Tensor, declared: TensorShape | None) -> bool:
    """Whether `new` is allowed by the shape invariant that `old` has."""
    if declared is not None and declared.rank is None:
        return True
    return old.ndim == new.ndim and all(
        a == b for a, b in zip(old.dims, new.dims, strict=True) if isinstance(a, int)
    )


def _changed(kind: type[Exception], name: str, old: Any, new: Any) -> Exception:
    advice = "Give it one dtype and rank before the loop"
    if kind is StagingValueError and getattr(old, "ndim", None) == getattr(new, "ndim", None):
        advice = "Its shape invariant needs None for the dims that change"
    return kind(
        f"The variable {name!r} changes its type in a loop over tensors: it is {describe(old)} "
        f"before an iteration and {describe(new)} after it. {advice}{at(user_origin())}"
    )
