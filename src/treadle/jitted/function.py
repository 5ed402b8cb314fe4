"""Jitted: a function of NumPy arrays and Python numbers that runs as compiled programs.

A call turns its arguments into values that the program takes: arrays as they lie in memory, numbers
as scalars. Arrays that the function changes in place are handed over as variables whose buffers are
the caller's own memory, so that the caller sees the changes. Which arrays these are is found out by
tracing: the first trace takes all as values. Where storages were written, its operations are traced
again with variables for these arrays.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.autograph.config import numba_function
from treadle.core import errors, nest
from treadle.core.context import beginning, context, placing, ran, tell_watchers, watched
from treadle.core.devices import HOST
from treadle.core.interrupts import during, is_mode, puts_modes_back
from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor, buffer_of
from treadle.graph.ir import Graph, Region, Value
from treadle.graph.replay import replay
from treadle.jitted import operators
from treadle.jitted.arguments import ARRAY, NUMBER, SCALAR, STATIC, Bound, Kinds, Parameters
from treadle.jitted.arrays import Array, Scalar
from treadle.jitted.containers import Contents, have_two_places, received
from treadle.jitted.conversion import call as converted
from treadle.jitted.errors import CallsItself
from treadle.jitted.handed_out import check_copies, copies
from treadle.jitted.later import later
from treadle.jitted.listed_ints import check_growth, noted
from treadle.jitted.namespace import stand_in
from treadle.jitted.nested import call_with_tensors
from treadle.jitted.operations import call_ufunc
from treadle.jitted.plan import Plan
from treadle.jitted.plan_table import PlanTable
from treadle.jitted.random_numbers import GENERATORS
from treadle.jitted.recursion import MOST_TRIES, Codes, most_frequent, source_of, stacking
from treadle.jitted.reports import CHANGED, advise, describe
from treadle.jitted.results import Results, collect
from treadle.jitted.storage import Storage, assign_states, own_trace
from treadle.ops.control.marks import RaisesAlways, printed_marks
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.numbers.python_numbers import symbolic_number
from treadle.ops.state import Variable
from treadle.runtime.cpu.dispatch.native_type import native_type
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function
from treadle.tracing.retraces import Explanation, History, explain_retraces
from treadle.tracing.tracebacks import show_user_frames

later.operators = operators


class Jitted:
    """A function for NumPy arrays and numbers, compiled for each signature. Made by `jit`.

    Attributes:
        python_function: the function as written.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Jitted:
        """An object that CPython calls through native plans, where that is possible."""
        made: Jitted = object.__new__(native_type(cls))
        return made

    def __init__(self, python_function: Callable[..., Any], name: str | None = None) -> None:
        self.python_function = python_function
        self.__treadle_jitted__ = python_function
        self._parameters = Parameters(python_function)
        self._plans = PlanTable(self)
        self._traced = _Traces(self._body, name or self._parameters.name)
        self._traced.plans = self._plans
        self._stacked: Codes = frozenset()  # functions that become loops with a stack
        # For each trace the leaves of the arguments that it writes, and its results.
        self._found: weakref.WeakKeyDictionary[Graph, tuple[set[int], Results]]
        self._found = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    # -- calling -----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            bound = self._parameters.bind(args, kwargs)
            if context.recorder is not None or watched() or bound.has_tensors:
                return self._inside(bound)
            plan, bound = self.plan_for(bound)
            if plan.concrete.was_called:  # for one call a native plan costs more than it saves
                added = self._plans.add_native(plan, bound, len(args), tuple(kwargs))
                if added and bound.key is not None:
                    return self(*args, **kwargs)
            plan.concrete.was_called = True
            return self._run(plan, bound)
        except RaisesAlways:  # Python knows the text
            return self.python_function(*args, **kwargs)
        except Exception as error:
            show_user_frames(error)
            raise

    def _run(self, plan: Plan, bound: Bound) -> Any:
        plan.used = True
        captured = [buffer_of(c) for c in plan.concrete.graph.captures]
        if plan.written:
            overlap = bound.overlapping(plan.written, captured)
            if overlap:  # views of one memory: only NumPy knows the order of reads and writes
                return self.python_function(*bound.given[0], **bound.given[1])
        if plan.results.changed and have_two_places(bound.given):
            return self.python_function(*bound.given[0], **bound.given[1])
        operands, changed = bound.operands(plan.written)
        inputs = [operands[i] for i in plan.order]
        ran(f"__inference_{plan.concrete.name}_{plan.concrete.number}", HOST)
        since = beginning()
        found = plan.concrete.executable.run(inputs + captured)
        tell_watchers(plan.concrete.name, HOST, since, plan.concrete.graph)
        for variable, array in changed:
            found_there = variable._numpy()
            if found_there is not array:
                array[...] = found_there
        made = plan.results.pack(found, bound.leaves)
        return received(bound.given, plan.results.changed, made)

    @puts_modes_back
    def _inside(self, bound: Bound) -> Any:
        """A call with tensors, under a tape or in a function that is being traced."""
        return call_with_tensors(self, bound)

    # -- tracing -----------------------------------------------------------------------------

    def plan_for(self, bound: Bound) -> tuple[Plan, Bound]:
        """The plan for calls with arguments of this form, traced where they are new; and the
        arguments as the program takes them."""
        plan = self._plans.find(bound.key)
        if plan is not None and (plan.written == () or bound.are_writable(plan.written)):
            return plan, bound
        try:
            return self._new_plan(bound), bound
        except Exception:
            found = self._with_constants(bound)
            if found is None:
                raise
            return found

    def _with_constants(self, bound: Bound) -> tuple[Plan, Bound] | None:
        """As `plan_for` where tracing needs the value of an int that varies, such as an axis: there
        is a program for each of its values. None where tracing fails with the values too."""
        ints = bound.varying_ints()
        tries = [[i] for i in ints] + ([ints] if len(ints) > 1 else [])
        for numbers in tries:
            fixed = bound.with_pinned(numbers)
            try:
                return self._plans.find(fixed.key) or self._new_plan(fixed), fixed
            except Exception:
                bound.parameters.unpin(numbers)
        return None

    def _new_plan(self, bound: Bound) -> Plan:
        """A plan of a new trace. Functions that call themselves for ever in a trace become loops
        with a stack, which may be refused, too: then the trace follows all calls that it can."""
        problem: Exception | None = None
        while True:
            try:
                with contextlib.ExitStack() as modes:
                    for mode in stacking(self._stacked, tries=0):
                        modes.enter_context(mode)
                    return self._traced_plan(bound)
            except CallsItself as error:
                problem, code = error, source_of(error)
                if code is None or code in self._stacked:
                    break
                self._stacked |= {code}
            except Exception as error:
                if not self._stacked:
                    raise
                problem = error
                break
        tried, self._stacked = self._stacked, frozenset()
        try:
            with contextlib.ExitStack() as modes:
                for mode in stacking(frozenset(), MOST_TRIES):
                    modes.enter_context(mode)
                return self._traced_plan(bound)
        except Exception:
            self._stacked = tried
            raise problem from None

    def _traced_plan(self, bound: Bound) -> Plan:
        """A plan of one trace. A trace that fails has not changed the caller's deques, which it
        works on: another one may follow."""
        held = [(leaf, leaf.copy()) for leaf in bound.leaves if type(leaf) is collections.deque]
        try:
            return self._one_plan(bound)
        except Exception:
            for leaf, content in held:
                leaf.clear()
                leaf.extend(content)
            raise

    @puts_modes_back
    def _one_plan(self, bound: Bound) -> Plan:
        bound.check()
        written: set[int] = set()
        first: Written | None = None
        while True:
            with during(_traces, "first", first), during(_traces, "last", None):
                concrete = self._concrete(bound, written)
                first = _traces.last
            if concrete.graph.device is not HOST:
                raise errors.UnimplementedError(
                    None, None,
                    f"{concrete.name}: td.jit computes on the host, and a tensor or variable that "
                    f"the function uses is on {concrete.graph.device}: use td.function"
                    f"{at(user_origin())}",
                )  # fmt: skip
            found, results = self._found[concrete.graph]
            bound.check_writable(sorted(found))
            if found <= written or bound.has_tensors:
                written = found
                break
            written |= found
        plan = Plan(concrete, sorted(written), results, bound)
        self._plans.add(bound.key, plan, self._parameters.varying)
        return plan

    def _concrete(self, bound: Bound, written: set[int]) -> ConcreteFunction:
        kinds, leaves = bound.traced(written)
        with placing(None, stays=True):  # arrays are the host's
            return self._traced._lookup(self._traced._signature.bind((kinds,), leaves))

    def _body(self, kinds: Any, /, **leaves: Any) -> Any:
        """The function that is traced: the user's, on stand-ins for its arguments."""
        given = list(leaves.values())
        builder: Any = context.recorder
        if _traces.first is not None:
            return self._repeated(_traces.first, Kinds(kinds).flat, leaves)
        with own_trace(call_ufunc), printed_marks(), copies(), during(noted, "values", set()):
            signature = Kinds(kinds)
            values, storages = _stand_ins(signature.flat, leaves)
            args, kwargs = signature.pack(values)
            before = Contents((args, kwargs))
            try:
                result = converted(self.python_function)(*args, **kwargs)
            except RecursionError as error:
                name = self.python_function.__name__
                raise CallsItself(name, most_frequent(error), at(user_origin())) from None
            check_copies()
            arrays = {s: i for i, (s, _) in storages.items()}
            results, tensors = collect(result, arrays, before.changed())
            written = {i: s.tensor for i, (s, before) in storages.items() if s.tensor is not before}
            for i, tensor in written.items():
                if isinstance(given[i], Variable):
                    given[i].assign(tensor)
            assign_states()
            check_growth(builder.graph)
        self._found[builder.graph] = set(written), results
        elements = {i: builder.use(tensor).value for i, tensor in written.items()}
        _traces.last = Written(builder.graph, elements)
        return tensors

    def _repeated(self, first: Written, kinds: Sequence[str], leaves: dict[str, Any]) -> Any:
        """The trace in which the arrays that the function changes are variables: the operations of
        the first trace, which has told which arrays these are."""
        graph, names = first.graph, list(leaves)
        given: dict[str, Tensor] = {}  # each array once, as in the first trace
        for kind, (name, leaf) in zip(kinds, leaves.items(), strict=True):
            same = kind.removeprefix(ARRAY) if kind.startswith(ARRAY) else ""
            if kind != STATIC:
                given[name] = given[names[int(same)]] if same else convert_to_tensor(leaf)
        region = Region()
        region.params, region.nodes = graph.params, graph.nodes
        region.results = [*graph.results, *first.elements.values()]
        made = replay(region, [*(given[n] for n in sorted(given)), *graph.captures])
        for number, tensor in zip(first.elements, made[len(graph.results) :], strict=True):
            leaves[names[number]].assign(tensor)
        builder: Any = context.recorder
        self._found[builder.graph] = self._found[graph]
        return made[: len(graph.results)]

    # -- inspection --------------------------------------------------------------------------

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for some arguments, made if it does not exist.

        A `TensorSpec` stands for an array of its shape and dtype, or for a NumPy number.

        Raises:
            TypeError: a `TensorSpec` has a dim that is not known.
        """
        args, kwargs = nest.map_structure(_example, (args, kwargs))
        return self.plan_for(self._parameters.bind(args, kwargs))[0].concrete

    def explain(self) -> Explanation:
        """Why the function was traced: what each trace differed in from the nearest earlier one."""
        return explain_retraces(self)

    @property
    def _history(self) -> History:
        return self._traced._history

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces that are kept, oldest first."""
        return self._traced.concrete_functions

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was traced."""
        return self._traced.experimental_get_tracing_count()

    # -- copies ------------------------------------------------------------------------------

    def __reduce__(self) -> str:
        """Pickled by name, as Python functions are; copied as itself."""
        name: str = self.__dict__.get("__qualname__", self._parameters.name)
        return name

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        """Without traces."""
        return Jitted(copy.deepcopy(self.python_function, memo))

    def __repr__(self) -> str:
        return f"<jitted {self._parameters.name}>"


class Written(NamedTuple):
    """What a trace has written: for arguments that the function changes, by number, their elements
    at the end of the graph."""

    graph: Graph
    elements: dict[int, Value]


class _OfThread(threading.local):
    """The traces of a function of this thread.

    Attributes:
        first: the trace whose operations the next one repeats.
        last: what the last trace of Python code has written.
    """

    first: Written | None = None
    last: Written | None = None


_traces = is_mode(_OfThread())


class _Traces(Function):
    """The traces of a jitted function; its plans go with them."""

    plans: PlanTable

    def __init__(self, body: Callable[..., Any], name: str) -> None:
        super().__init__(body, autograph=False, name=name)
        self._signature.hidden = 1
        self._history = History(name, describe, advise, CHANGED)

    def _was_called(self, concrete: ConcreteFunction) -> bool:
        return self.plans.were_called(concrete)

    def _forget(self, gone: list[ConcreteFunction]) -> None:
        super()._forget(gone)
        self.plans.remove(gone)


def _stand_ins(
    kinds: Sequence[str], leaves: dict[str, Any]
) -> tuple[list[Any], dict[int, tuple[Storage, Tensor]]]:
    """The stand-ins that the user's function gets for each leaf, and the storages of arrays, by
    their number, with the tensors that they begin with."""
    values: list[Any] = []
    storages: dict[int, tuple[Storage, Tensor]] = {}
    for i, (kind, (name, leaf)) in enumerate(zip(kinds, leaves.items(), strict=True)):
        if kind.startswith(ARRAY):
            same = int(kind.removeprefix(ARRAY) or i)
            if same == i:
                tensor = convert_to_tensor(leaf)
                storages[i] = Storage(tensor, name), tensor
                values.append(Array(storages[i][0]))
            else:
                values.append(values[same])
        elif kind.startswith(NUMBER):
            values.append(symbolic_number(convert_to_tensor(leaf)))
        elif kind == SCALAR:
            values.append(Scalar(convert_to_tensor(leaf)))
        else:
            leaf = set(leaf) if type(leaf) is set else leaf  # as lists: the caller's changes later
            values.append(stand_in(leaf) if isinstance(leaf, GENERATORS) else leaf)
    return values, storages


def _example(value: Any) -> Any:
    """An argument that a `TensorSpec` stands for; anything else itself."""
    if not isinstance(value, TensorSpec):
        return value
    dims = value.shape.as_list()
    if None in dims:
        raise TypeError(
            f"{value}: td.jit traces a function for arrays of known shapes, and serves others with "
            f"the same program where it can: give a number for every dim{at(user_origin())}"
        )
    empty: Any = np.zeros(dims, value.dtype.np_dtype)
    return empty if empty.ndim else empty[()]


def jit(func: Callable[..., Any] | None = None) -> Any:
    """Compile a function written for NumPy; usable as a decorator.

    Arrays and numbers go in, arrays and numbers come out, with NumPy's promotion rules, views and
    in-place changes, which the caller sees in its own arrays. The function is traced and compiled
    once for each combination of dtypes and shapes; ints among the arguments are constants of the
    program until a second value comes, floats never are.

    Args:
        func: the function; without it a decorator is returned.

    Raises:
        TypeError: `func` is not callable.
    """

    def decorate(fn: Any) -> Any:
        if isinstance(fn, Jitted):
            return fn
        if isinstance(fn, Function):
            fn = fn.python_function
        fn = numba_function(fn) or fn
        if not callable(fn):
            raise TypeError(f"jit() needs a callable, got {fn!r}{at(user_origin())}")
        return Jitted(fn)

    return decorate if func is None else decorate(func)
