"""Loops over Python values as loops of the program.

The body is traced once, with a symbolic Python number for the counter. Where that has the meaning
of all iterations one by one, the trace becomes the body of a ``while`` node; otherwise nothing has
happened, and the loop runs in Python as it always did.

The loop carries the leaves of its variables:

- tensors are its loop variables, and must keep dtype and shape;
- Python numbers that are computed from numbers alone stay Python's: their values in all iterations
  are found without the graph, and after the loop they are plain numbers again;
- a number that becomes a tensor (``s = 0.0; s += x[i]``) starts as a tensor of that dtype;
- anything else must stay as it is.

A first iteration that differs from the others is left to Python (`Peel`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from treadle.autograph.analysis.effects import refusal_of_code
from treadle.autograph.errors import StagingTypeError
from treadle.autograph.loop_notes import SHORT, Peel, Refused
from treadle.autograph.operators.aliases import Assignments, carry, share_elements
from treadle.autograph.operators.conditionals import Placeholder
from treadle.autograph.operators.journal import changes, is_owner
from treadle.autograph.operators.rolled_items import Items
from treadle.autograph.operators.rolled_numbers import (
    Counter,
    Counting,
    Iterations,
    Started,
    depends_only_on,
)
from treadle.autograph.operators.rolled_state import (
    Form,
    Opened,
    closed_over,
    differ,
    equal,
    is_plain_number,
    may_follow,
)
from treadle.autograph.operators.undefined import Undefined, assigned_flag, completed
from treadle.autograph.operators.values import dims_known_to, is_staged, same
from treadle.core import dtypes
from treadle.core.context import context, taping
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trials import RefusedError, trial
from treadle.ops.control.control_flow import record_while
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import (
    ValueNeededError,
    evaluator,
    is_symbolic_number,
    kind_of,
    number_from,
)
from treadle.ops.numbers.tabulated import TabulatedArray, listed
from treadle.ops.shaping.creation import zeros
from treadle.ops.state import Variable

State = tuple[Any, ...]
FEWEST = 6  # iterations of a loop that is rolled, as in `analysis.evident`
COUNTING = 2  # operations of a body that only count
MOST_ITERATIONS = 1 << 20  # whose numbers are computed while tracing


def is_rollable(loop: Any, test: Any = None) -> None:
    """Look at a loop's body, and the condition of a `while`, before they run.

    Raises:
        Refused: it does more than to give a result.
    """
    body = loop.body
    if not isinstance(body, types.FunctionType):
        raise Refused("it goes over a generator")
    if not body.__code__.co_filename.startswith("<autograph of "):
        raise Refused("its body is a library's")
    reason = refusal_of_code(body) or (test and refusal_of_code(test))
    if reason is not None:
        raise Refused(reason)


def roll(
    loop: Any, items: Items, taken: int, state: State, until: Any, is_worth: Callable[[int], bool]
) -> tuple[State, Any]:
    """The loop as a ``while`` node; gives the variables after it, and the number of iterations.

    Args:
        items: the items that it goes through.
        taken: how many of them Python has gone through already.
        is_worth: whether to do it for a body that records so many operations in all iterations.

    Raises:
        Refused: the loop would not mean the same as its iterations one by one.
        Peel: it may be once the first iteration is done.
    """
    try:
        items.prepare()
    except ValueNeededError as why:
        raise Refused(_brief(why)) from None
    made = _Roll(loop, items, taken, state, until)
    return made.run(is_worth), made.counting.trips


class _Traced:
    """One trace of the body."""

    def __init__(self) -> None:
        self.builder: Any = None
        self.forms: list[Form] | None = None  # where they are others than asked for
        self.numbers: dict[int, Any] = {}  # leaf -> the number that the body was given
        self.results: list[Any] = []
        self.stop: Any = False
        self.counter: Any = None
        self.iterations: Any = None
        self.moving: list[int] = []  # leaves that are loop variables, in order
        self.shares = False  # whether it assigns parts, and leaves two variables one tensor
        self.given: list[Any] = []


class _Roll:
    def __init__(self, loop: Any, items: Items, taken: int, state: State, until: Any) -> None:
        self.loop, self.items, self.until = loop, items, until
        self.counting: Counting = items.counting(taken)
        self.state = tuple(map(completed, state))
        self.structure = tuple(Opened(v) for v in self.state)
        self.leaves: list[Any] = [leaf for part in self.structure for leaf in part.leaves]
        self.recorder: Any = context.recorder

    def run(self, is_worth: Callable[[int], bool]) -> State:
        forms = [self.form(v) for v in self.leaves]
        for _ in range(5):
            counting = self.counting
            traced = self.traced(forms)
            better = self.refined(forms, traced)
            known = self.counting is counting or not self.items.is_open
            if known and all(a == b for a, b in zip(forms, better, strict=True)):
                operations = sum(1 for _ in traced.builder.region.walk()) - COUNTING
                trips = self.counting.trips
                if self.items.is_open and trips < FEWEST:
                    raise Refused(SHORT)
                if not is_worth(operations if is_symbolic_number(trips) else operations * trips):
                    raise Refused(SHORT)
                if traced.shares:
                    self.check_next(forms)
                return self.record(forms, traced)
            forms = better
        raise Refused("the numbers that it carries do not settle")

    def form(self, leaf: Any) -> Form:
        if isinstance(leaf, Tensor):
            if assigned_flag(leaf) is not None:
                raise Refused("a variable may have no value before it")
            return Form("tensor", convert_to_tensor(leaf).spec)
        if isinstance(leaf, Undefined):
            return Form("unset")
        if is_plain_number(leaf):
            return Form("started")
        return Form("fixed")

    # -- tracing ---------------------------------------------------------------------------------

    def traced(self, forms: list[Form]) -> _Traced:
        try:
            return self.trace(forms)
        except (RefusedError, Refused) as error:
            if "variable" in str(error) and "creates" in str(error):
                raise Peel(str(error)) from None
            raise Refused(str(error)) from None
        except Peel:
            raise
        except Exception as error:
            if any(f.kind == "started" for f in forms) and isinstance(error, ValueNeededError):
                # Perhaps a number that stays as it is, or counts.
                settled = [Form("constant") if f.kind == "started" else f for f in forms]
                return self.traced_again(settled, error)
            if any(f.kind == "unset" for f in forms):
                raise Peel(_brief(error)) from None
            raise Refused(_brief(error)) from None

    def check_next(self, forms: list[Form]) -> None:
        """See that an iteration assigns no part of a tensor that the one before has left to two
        variables: NumPy would change it for both.

        Raises:
            Refused: it does.
        """
        try:
            self.trace(forms, twice=True)
        except StagingTypeError as error:
            raise Refused(_brief(error)) from None
        except Exception:  # two iterations in a row may be refused for other reasons than one
            return

    def traced_again(self, forms: list[Form], error: Exception) -> _Traced:
        try:
            found = self.trace(forms)
        except Exception:
            raise Peel(_brief(error)) from None
        for k, form in enumerate(forms):
            if form.kind != "constant":
                continue
            before, after = self.leaves[k], found.results[k]
            if not equal(before, after):
                if type(before) is not int or type(after) is not int:
                    raise Refused(_brief(error))
                forms[k] = Form("linear", after - before)
        if all(f.kind != "linear" for f in forms):
            found.forms = forms
            return found
        if self.items.is_open:
            self.counting = self.counting.shortened(self.trips_of(forms))
        try:
            found = self.trace(forms)
        except Exception:
            raise Refused(_brief(error)) from None
        found.forms = forms
        return found

    def trips_of(self, forms: list[Form]) -> int:
        """After how many iterations a loop ends whose numbers stay or grow evenly."""
        for trips in range(1, self.counting.trips):
            leaves = [
                leaf + trips * form.value if form.kind == "linear" else leaf
                for form, leaf in zip(forms, self.leaves, strict=True)
            ]
            stop = self.until(*self.packed(leaves))
            if is_staged(stop):
                break
            if stop:
                return trips
        raise Refused("its condition does not depend on numbers alone")

    def trace(self, forms: list[Form], twice: bool = False) -> _Traced:
        """The trace of the body; `twice`: of two iterations one after the other."""
        traced = _Traced()
        traced.moving = [k for k, f in enumerate(forms) if f.kind == "tensor"]
        specs = [TensorSpec((), dtypes.int64), *(forms[k].value for k in traced.moving)]
        size = self.counting.known
        traced.iterations = Iterations(self.counting, 0 if size is None else len(size))

        def body(counter: Any, *params: Any) -> list[Any]:
            values = dict(zip(traced.moving, params, strict=True))
            carry(params, [self.initial(forms[k], k) for k in traced.moving])
            source = Counter(counter, traced.iterations)
            source.tentative = any(f.kind == "started" for f in forms)
            traced.counter = number_from(source, int, self.counting.interval)
            traced.iterations.counter = traced.counter
            for k, leaf in enumerate(self.leaves):
                if k not in values:
                    values[k] = self.stand_in(forms[k], leaf, traced)
                    traced.numbers[k] = values[k]
            traced.given = [values[k] for k in range(len(self.leaves))]
            with taping(()):
                item = self.items.item(traced.iterations)
                after = self.loop.step(self.packed(traced.given), *item)
                traced.results = self.flat(after)
                if twice:
                    self.loop.step(after, *item)
                traced.shares = bool(assignments) and share_elements(traced.results)
                if self.until is not None:
                    traced.stop = self.until(*after)
                return [counter + self.counting.step, *self.closed(forms, traced)]

        assignments = Assignments()
        watched = [*self.state, *closed_over(self.loop.body)]
        before = [p.get() for p in self.loop.places]
        with trial() as made:
            try:
                with changes([v for v in watched if is_owner(v)]) as journal:
                    traced.builder = self.recorder.trace_region(body, specs)
                placed = [p.get() for p in self.loop.places]
            finally:
                for place, value in zip(self.loop.places, before, strict=True):
                    if place.get() is not value:
                        place.set(value)
        if made.refusal is not None:
            raise Refused(made.refusal)
        if any(a is not b for a, b in zip(before, placed, strict=True)):
            raise Refused("it changes an attribute, an item or a global")
        if any(differ(journal.before[k], v) for k, v in journal.after.items()):
            raise Refused("it changes a list, dict or another object")
        if any(_holds_number(n.attrs) for n in traced.builder.region.walk()):
            raise Refused("the number of the iteration is an attribute of an operation")
        return traced

    def stand_in(self, form: Form, leaf: Any, traced: _Traced) -> Any:
        iterations = traced.iterations
        if form.kind == "unset":
            return Placeholder(leaf.name)
        if form.kind == "started":
            return number_from(Started(leaf), kind_of(leaf))
        if form.kind == "listed":
            return listed(form.value, iterations)
        if form.kind == "linear":
            return leaf + iterations.number() * form.value
        return leaf

    def closed(self, forms: list[Form], traced: _Traced) -> list[Tensor]:
        """The results that are loop variables, and after them those that had no value before."""
        found: list[Tensor] = []
        for k in traced.moving:
            result = traced.results[k]
            if (
                _is_staged_stop(traced.stop)
                and is_plain_number(result)
                and not forms[k].value.rank
            ):
                result = convert_to_tensor(result, forms[k].value.dtype)
            found.append(self.checked(forms[k], k, result))
        for k, form in enumerate(forms):
            result = traced.results[k]
            if form.kind == "unset" and isinstance(result, Tensor | Variable):
                tensor = convert_to_tensor(result)
                if assigned_flag(tensor) is not None:
                    raise Refused("it assigns a variable in some iterations only")
                builder: Any = context.recorder
                builder.parameter(tensor.spec)
                traced.moving.append(k)
                found.append(tensor)
        return found

    def checked(self, form: Form, k: int, result: Any) -> Tensor:
        if not isinstance(result, Tensor | Variable):
            raise Peel("a tensor becomes something else")
        tensor = convert_to_tensor(result)
        if assigned_flag(tensor) is not None:
            raise Refused("it assigns a variable in some iterations only")
        if tensor.spec is not form.value and tensor.spec != form.value:
            raise Peel(f"a tensor changes from {form.value} to {tensor.spec}")
        return tensor

    # -- numbers ---------------------------------------------------------------------------------

    def refined(self, forms: list[Form], traced: _Traced) -> list[Form]:
        """The forms of the leaves, by their values after the body."""
        forms = list(traced.forms or forms)
        staged = _is_staged_stop(traced.stop)
        if self.items.is_open and not is_symbolic_number(traced.stop):
            raise (Peel if staged else Refused)("its condition does not depend on numbers alone")
        recurring: list[int] = []
        better = list(forms)
        for k, form in enumerate(forms):
            result = traced.results[k]
            if form.kind == "started":
                better[k] = self.started(k, traced)
                if better[k].kind == "listed":
                    recurring.append(k)
            elif (
                form.kind == "constant"
                and not equal(result, self.leaves[k])
                or form.kind == "linear"
                and not equal(result - traced.given[k], form.value)
            ):
                raise Refused("a number changes that must be known")
            elif form.kind == "fixed" and not same(self.leaves[k], result):
                raise Peel("a variable becomes another object")
            elif form.kind == "unset" and not may_follow(result):
                raise Peel("it makes objects that are read after it")
            elif form.kind == "unset" and staged and is_plain_number(result):
                raise Peel("it ends by a tensor and gives a number")
        if staged and any(f.kind in ("listed", "linear") for f in better):
            raise Peel("a number changes in a loop that ends by a tensor")
        if recurring or is_symbolic_number(traced.stop):
            self.iterate(forms, better, recurring, traced)
        elif not staged and traced.stop:
            raise Refused("it ends in the first iteration")
        for k in recurring:
            if better[k].kind == "listed" and better[k].value is None:
                raise Refused("a number changes in a way that only the running program knows")
        return better

    def started(self, k: int, traced: _Traced) -> Form:
        before, result = traced.given[k], traced.results[k]
        source: Any = before.source
        if result is before:
            return Form("constant")
        if isinstance(result, Tensor):
            boolean = kind_of(before) is bool and result.dtype is dtypes.bool
            fits = not source.computed and source.taken <= {result.dtype}
            if result.ndim or not (boolean or fits):
                raise Peel("a number becomes a tensor")
            if not is_symbolic_number(self.leaves[k]):
                self.representable(self.leaves[k], result.dtype)
            return Form("tensor", TensorSpec((), result.dtype))
        if not is_plain_number(result):
            raise Peel("a number becomes something else")
        if self.counting.known is None:
            grown = result - before if kind_of(result) is kind_of(before) is int else None
            if type(grown) is not int:
                raise Refused("a number changes in a way that only the running program knows")
            return Form("linear", grown)
        return Form("listed")

    def representable(self, value: Any, dtype: Any) -> None:
        try:
            held = np.asarray(value).astype(dtype.np_dtype)
        except (TypeError, ValueError, OverflowError):
            raise Peel("a number becomes a tensor") from None
        if held != value and value == value:
            raise Peel("a number becomes a tensor that cannot hold it")
        if dtype.is_integer and isinstance(value, float):
            raise Peel("a number becomes a tensor of another kind")

    def iterate(
        self, forms: list[Form], better: list[Form], recurring: list[int], traced: _Traced
    ) -> None:
        """Find the values that the numbers have in all iterations, and where the loop ends."""
        known = self.counting.known
        stop = traced.stop if is_symbolic_number(traced.stop) else False
        if known is None or len(known) > MOST_ITERATIONS:
            raise Refused("numbers change or end it, and the number of iterations is not known")
        counter = traced.counter.source
        sources = [traced.given[k].source for k in recurring]
        wanted = [*(traced.results[k] for k in recurring), stop]
        extra = [
            s for w in wanted for s in _sources(w)
            if s is not counter and s.values is not None and s.domain is traced.iterations
        ]  # fmt: skip
        if not all(depends_only_on(w, [counter, *sources, *extra]) for w in wanted):
            raise Refused("a number is computed from what only the running program knows")
        run = evaluator(wanted, [counter, *sources, *extra])
        starts = [self.leaves[k] for k in recurring]
        if any(map(is_symbolic_number, starts)):
            raise Refused("a number changes in a way that only the running program knows")
        now, values, trips = list(starts), [[] for _ in recurring], len(known)  # type: ignore[var-annotated]
        stopped = False
        for t, number in enumerate(known):
            for column, value in zip(values, now, strict=True):
                column.append(value)
            *now, stopped = run(number, *now, *(s.values[t] for s in extra))
            if stopped:
                trips = t + 1
                break
        if any(type(v) is not type(c[0]) for c in values for v in c):
            raise Peel("a number changes its type")
        if trips == len(known) and self.items.is_open:
            if not stopped:
                raise Refused(f"it does not end within {trips} iterations")
        elif trips < len(known):
            self.counting = self.counting.shortened(trips)
            if trips < 2:
                raise Refused("it ends in the first iterations")
            for k, form in enumerate(better):
                if form.kind == "listed" and form.value is not None:
                    better[k] = Form("listed", form.value[:trips])
            self.ends = True
        for k, column in zip(recurring, values, strict=True):
            better[k] = Form("listed", column)

    ends = False

    # -- recording -------------------------------------------------------------------------------

    def record(self, forms: list[Form], traced: _Traced) -> State:
        forms = list(traced.forms or forms)
        trips = self.counting.trips
        certain = not is_symbolic_number(trips) or (trips.interval or (0, 0))[0] > 0
        added = traced.moving[sum(f.kind == "tensor" for f in forms) :]
        names = [k for k, f in enumerate(forms) if f.kind == "unset"]
        if names and not certain:
            raise Refused("it may run no iteration, and assigns variables that have no value")
        starts: list[Any] = [convert_to_tensor(self.counting.start, dtypes.int64)]
        for k in traced.moving:
            if k in added:
                starts.append(self.filler(traced.results[k].spec))
            else:
                starts.append(self.initial(forms[k], k))
        specs = [TensorSpec((), dtypes.int64),
                 *(forms[k].value if k not in added else s.spec
                   for k, s in zip(traced.moving, starts[1:], strict=True))]  # fmt: skip
        condition = self.recorder.trace_region(self.condition(forms, traced, added), specs)
        outputs = record_while(self.recorder, starts, condition, traced.builder)
        final = dict(zip(traced.moving, outputs[1:], strict=True))
        for k, form in enumerate(forms):
            if k not in final:
                final[k] = self.final(form, k, traced)
        return self.packed([final[k] for k in range(len(self.leaves))])

    def condition(
        self, forms: list[Form], traced: _Traced, added: Sequence[int]
    ) -> Callable[..., list[Any]]:
        upwards = self.counting.step > 0
        staged = _is_staged_stop(traced.stop)

        def proceed(counter: Any, *params: Any) -> list[Any]:
            limit = convert_to_tensor(self.counting.stop, dtypes.int64)
            go = counter < limit if upwards else counter > limit
            if not staged:
                return [go]
            values = dict(zip(traced.moving, params, strict=True))
            leaves = [values[k] if k in values and k not in added else v
                      for k, v in enumerate(self.leaves)]  # fmt: skip
            with taping(()):
                stop = convert_to_tensor(self.until(*self.packed(leaves)))
                return [go & ~stop]

        return proceed

    def initial(self, form: Form, k: int) -> Tensor:
        leaf = self.leaves[k]
        return leaf if isinstance(leaf, Tensor) else convert_to_tensor(leaf, form.value.dtype)

    def filler(self, spec: Spec) -> Tensor:
        """Zeros in place of a variable that the first iteration assigns."""
        if not isinstance(spec, TensorSpec) or dims_known_to(self.recorder, spec) != list(
            spec.dims
        ):
            raise Refused("a variable gets a size in it that differs between iterations")
        return zeros(spec.dims, spec.dtype)

    def final(self, form: Form, k: int, traced: _Traced) -> Any:
        """A number or object after the loop."""
        leaf, result = self.leaves[k], traced.results[k]
        if form.kind in ("constant", "fixed"):
            return leaf
        if form.kind == "linear":
            return leaf + self.counting.trips * form.value
        known = self.counting.known
        if type(result) is TabulatedArray and result.domain is traced.iterations and known:
            return result.at(len(known) - 1)
        if not is_symbolic_number(result):
            return leaf if isinstance(result, Placeholder) else result
        if known is None:
            if result is not traced.counter and type(result - traced.counter) is not int:
                raise Refused("a number that it gives is not known")
            return self.counting.after(self.counting.trips - 1) + (result - traced.counter)
        sources = list(result.sources().values())
        if any(s.values is None or s.domain is not traced.iterations for s in sources):
            raise Refused("a number that it gives is computed from those of a loop around")
        last = len(known) - 1
        return evaluator([result], sources)(*(s.values[last] for s in sources))[0]

    # -- structure -------------------------------------------------------------------------------

    def flat(self, state: State) -> list[Any]:
        if len(state) != len(self.structure):
            raise Refused("it gives another number of variables")
        found: list[Any] = []
        for part, value in zip(self.structure, state, strict=True):
            found += part.closed(completed(value))
        return found

    def packed(self, leaves: Sequence[Any]) -> State:
        found, place = [], 0
        for part in self.structure:
            count = len(part.leaves)
            found.append(part.packed(leaves[place : place + count]))
            place += count
        return tuple(found)


def _is_staged_stop(stop: Any) -> bool:
    """Whether a tensor ends the loop."""
    return is_staged(stop) and not is_symbolic_number(stop)


def _sources(number: Any) -> Iterable[Any]:
    return number.sources().values() if is_symbolic_number(number) else ()


def _holds_number(value: Any) -> bool:
    if is_symbolic_number(value):
        return True
    if isinstance(value, dict):
        return any(map(_holds_number, value.values()))
    if hasattr(value, "values") and hasattr(value, "keys"):
        return any(map(_holds_number, value.values()))
    return isinstance(value, tuple | list) and any(map(_holds_number, value))


def _brief(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) < 200 else text[:197] + "..."
