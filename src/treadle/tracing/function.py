"""Function: a Python function that runs as cached, compiled graphs."""

from __future__ import annotations

import copy
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

from treadle.autograph.api import converted
from treadle.core.caches import clears
from treadle.core.context import context, home, placed, placed_elsewhere, placing, watched
from treadle.core.devices import HOST
from treadle.core.interrupts import puts_modes_back
from treadle.core.living import Living
from treadle.core.origin import at, user_origin
from treadle.core.refusals import Claimed, NotYetKnown
from treadle.core.strategies import number_here
from treadle.core.switches import is_on
from treadle.ops.state import Variable, values_are_substituted
from treadle.runtime import expect_compilation
from treadle.runtime.collections_paused import collections_paused
from treadle.runtime.cpu.dispatch.native_type import Calls, is_native, native_type
from treadle.runtime.cpu.dispatch.self_check import works
from treadle.tracing import settings
from treadle.tracing.any_rank import AnyRankFunction
from treadle.tracing.array_arguments import refuse_changed_arrays
from treadle.tracing.cache import Entry, TraceCache
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.graph_size import operations, warn_of_unrolled_loop
from treadle.tracing.implementations import note_call
from treadle.tracing.locks import TraceLock
from treadle.tracing.methods import SignatureOfPython, WeakMethod
from treadle.tracing.plans import Plans
from treadle.tracing.programs import Programs
from treadle.tracing.python_plans import MISS, make_plan
from treadle.tracing.retraces import Explanation, History, explain_retraces
from treadle.tracing.signature import Arguments, FunctionSignature, display_name
from treadle.tracing.static_values import ObjectKey
from treadle.tracing.trace import Trace, trace
from treadle.tracing.tracebacks import show_user_frames

_functions: Living[Function] = Living()  # for clear_caches


class Function:
    """A function that is traced once per signature and then runs compiled.

    Made by `function`. Called like the Python function.

    Attributes:
        python_function: the function as written.
        input_signature: the specs given to `function`, or None.
    """

    __signature__ = SignatureOfPython()

    def __new__(cls, *args: Any, **kwargs: Any) -> Function:
        """An object that CPython calls through native plans, where that is possible."""
        made: Function = object.__new__(native_type(cls))
        return made

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        name: str | None = None,
        max_traces: int | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.python_function = python_function
        self._attributes = attributes or {}
        self._autograph = autograph
        self._jit_compile = jit_compile
        self._reduce_retracing = reduce_retracing
        self._name = name or display_name(python_function)
        self._max_traces = None if max_traces is None else settings.checked_bound(max_traces)
        self._signature = FunctionSignature(python_function, input_signature, self._name)
        self._lock = TraceLock()
        self._cache = TraceCache()
        self._plans = Plans()
        self._front = self._plans.front  # read at every call
        self._native: Calls | None = None  # plans that native code tries before those
        self._keyword_plans: dict[tuple[str, ...], Plans] = {}
        self._programs = Programs()
        self._traces = 0
        self._unranked: set[Any] = set()  # signatures of unknown ranks that were traced for one
        self._asked: dict[Any, Arguments] = {}  # signatures of unknown ranks that were asked for
        self._history = History(self._name)
        self._traced: dict[Any, Arguments] = {}  # for reduce_retracing, by family
        self._traced_once = False
        self._tracing: set[Any] = set()
        self._converted: Callable[..., Any] | None = None
        self._bound: dict[int, tuple[Any, Function]] = {}
        functools.update_wrapper(self, python_function, updated=())
        if getattr(python_function, "__isabstractmethod__", False):
            self.__isabstractmethod__ = True
        _functions.add(self)

    @property
    def input_signature(self) -> Any:
        return self._signature.input_signature

    @property
    def name(self) -> str:
        return self._name

    def __getattr__(self, name: str) -> Any:
        """What was set on the Python function, or on the object that is called as one."""
        given = vars(self).get("python_function")
        if name in getattr(given, "__dict__", ()):
            return vars(given)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # -- calling -----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                for plan in self._front:
                    result = plan(args)
                    if result is not MISS:
                        return result
            return self._call_further(args, kwargs)
        except Exception as error:
            show_user_frames(error)
            raise

    def _call_further(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that no plan at the front accepts."""
        if kwargs:
            plans = self._keyword_plans.get(tuple(kwargs))
            result = MISS if plans is None else plans.call((*args, *kwargs.values()))
        else:
            result = self._plans.further(args)
        return self._call_slowly(args, kwargs) if result is MISS else result

    def _as_called(self) -> Callable[..., Any]:
        """What takes the arguments of `_call_slowly`."""
        return self

    @puts_modes_back
    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The general path: bind, look the trace up (or make it), and run it. A trace that was
        called before gets a plan for such calls, which would cost one call more than it saves."""
        if settings.run_eagerly or values_are_substituted():
            return self.python_function(*args, **kwargs)
        if self._signature.is_unbound and args:  # Class.method(instance, ...)
            return self.__get__(args[0])(*args[1:], **kwargs)
        try:
            arguments = self._signature.bind(args, kwargs)
        except (Claimed, NotYetKnown) as error:  # a tensor of a graph; a rank, in another trace
            return error.take(self._as_called(), args, kwargs)
        concrete = self._lookup(arguments)
        if concrete.changed:
            refuse_changed_arrays(concrete, arguments)
        is_plain = not concrete.follows_ranks and not arguments.trace_types
        is_plain = is_plain and not concrete.graph.devices
        if is_plain and context.recorder is None and not watched():
            if concrete.was_called and self._add_plan(concrete, arguments, args, kwargs):
                return self._as_called()(*args, **kwargs)  # from the beginning
            concrete.was_called = True
        leaves = [
            leaf for leaf, spec in zip(arguments.leaves, concrete.leaf_specs, strict=True) if spec
        ]
        result = concrete.call_flat(leaves)
        if self._attributes:
            note_call(self._attributes, leaves, result)
        return result

    def _add_plan(
        self, concrete: ConcreteFunction, arguments: Arguments, args: Any, kwargs: dict[str, Any]
    ) -> bool:
        """Make a plan for calls of this form: for native code if that can check them; else, or
        where the native plan has refused this call, a Python function.

        Returns:
            Whether it is for native code: this call may take it.
        """
        values = (*args, *kwargs.values())
        order = self._signature.canonical_order(arguments, len(args), tuple(kwargs))
        if arguments.scope is None and self._add_native_plan(
            concrete, values, order, tuple(kwargs)
        ):
            return True
        plans = self._plans
        if kwargs:
            plans = self._keyword_plans.setdefault(tuple(kwargs), Plans())
        plans.add(
            concrete, values, concrete.has_open_dims, lambda: make_plan(concrete, values, order)
        )
        return False

    def _add_native_plan(
        self, concrete: ConcreteFunction, values: tuple[Any, ...], order: Sequence[int],
        names: tuple[str, ...],
    ) -> bool:  # fmt: skip
        """Whether there is a native plan now that was not there before."""
        if not (is_native(self) and is_on("native_calls") and works()):
            return False
        if concrete.graph.device is not HOST or placed_elsewhere() is not None:
            return False
        if self._native is None:
            self._native = Calls(self)
        form = (len(values), names)
        if not self._native.wants(concrete, form):
            return False
        from treadle.tracing.native_plans import native_plan

        plan = native_plan(concrete, values, order, names)
        return self._native.add(concrete, plan, form)

    # -- the cache ---------------------------------------------------------------------------

    def _lookup(self, arguments: Arguments, for_any_variables: bool = False) -> ConcreteFunction:
        """The trace for arguments; where calls may give it other variables than these, one that
        takes variables that the function captures to be others, if there can be one."""
        if placed() is not HOST:
            return self._found(arguments, for_any_variables)
        if home() is not HOST:
            arguments.within(HOST)
            return self._found(arguments, for_any_variables)
        with placing(None):  # most traces run on the host without being told to
            concrete = self._found(arguments, for_any_variables)
        if concrete.graph.device is HOST:
            return concrete
        arguments.within(HOST)
        return self._found(arguments, for_any_variables)

    def _found(self, arguments: Arguments, for_any_variables: bool = False) -> ConcreteFunction:
        concrete = self._cached((arguments.key, self._enclosing()), arguments)
        fixed = concrete.fixed_among(arguments.leaves)
        if fixed and (concrete.told_apart or not for_any_variables):
            # Such as one that is also reached through a closure: a trace for these variables.
            key = self._key_of_variables(arguments, fixed)
            concrete = self._cached(key, arguments, fixed)
            return self._for_ranks(key, concrete, arguments, fixed)
        return self._for_ranks((arguments.key, self._enclosing()), concrete, arguments)

    def _for_ranks(
        self, key: Any, concrete: ConcreteFunction, arguments: Arguments,
        fixed: Sequence[Variable] = (),
    ) -> ConcreteFunction:  # fmt: skip
        """The trace for the ranks that the captured variables of unknown rank have now."""
        while (ranks := concrete.other_ranks) is not None:
            key = (*key, ranks)
            concrete = self._cached(key, arguments, fixed)
        return concrete

    def _key_of_variables(self, arguments: Arguments, fixed: Sequence[Variable]) -> Any:
        identities = tuple(ObjectKey(v, by_identity=True) for v in fixed)
        return (arguments.key, self._enclosing(), identities)

    def _cached(
        self, key: Any, arguments: Arguments, fixed: Sequence[Variable] = ()
    ) -> ConcreteFunction:
        entry = self._cache.get(key)
        if entry is None:
            with self._lock.held():  # one trace per signature, also where several threads call
                self._lock.is_owned()
                entry = self._cache.get(key)
                if entry is None and not fixed:
                    entry = self._more_general(key, arguments)
                if entry is None:
                    entry = self._trace(key, arguments, fixed)
        return entry.concrete

    def _more_general(self, key: Any, arguments: Arguments) -> Entry | None:
        """A trace with open dims that these arguments fit; noted for the next call of this form."""
        plain = len(key) == 2 and key[1] is None
        entry = self._cache.open_entry(arguments) if plain else None
        if entry is not None:
            self._cache.add_key(key, entry)
        return entry

    def _enclosing(self) -> Any:
        """Inside another trace, traces that captured its tensors belong to it alone, and traces
        for one of several devices to that device."""
        recorder: Any = context.recorder
        number = None if recorder is None else number_here()
        if recorder is None or not self._captures_symbols:
            return number
        return ObjectKey(recorder.graph), number

    _captures_symbols = False

    def _trace(self, key: Any, arguments: Arguments, fixed: Sequence[Variable]) -> Entry:
        running = (threading.get_ident(), key)
        if running in self._tracing:
            raise RecursionError(
                f"{self._name!r} calls itself with the same signature while it is being traced; "
                "the recursion would never end. Recurse on a Python value that changes, or use "
                f"a while loop{at(user_origin())}"
            )
        record = self._history.next_record(arguments)
        self._history.admit(record)
        if self._reduce_retracing:
            arguments = self._generalized(arguments)
        expect_compilation()
        try:
            self._tracing.add(running)
            with collections_paused:
                traced, told_apart = self._traced_twice(arguments, bool(fixed))
        finally:
            self._tracing.discard(running)
        self._traced_once = True
        size = operations(traced.graph)
        warn_of_unrolled_loop(traced.graph, size)
        self._history.add(record, size)
        if told_apart:
            fixed = [leaf for leaf in arguments.leaves if isinstance(leaf, Variable)]
        concrete = ConcreteFunction(
            traced, arguments, self._signature, self._programs, record.number, told_apart, fixed
        )
        concrete.attributes = self._attributes
        if concrete.has_open_dims:
            concrete.retrace = self._retracing(arguments, record.number)
        if any(getattr(c, "is_symbolic", False) for c in traced.graph.captures):
            self._captures_symbols = True
            key = (key[0], self._enclosing(), *key[2:])
        entry = self._cache.add(key, concrete, arguments)
        if told_apart:
            self._cache.add_key(self._key_of_variables(arguments, fixed), entry)
        self._evict(entry)
        return entry

    def _retracing(
        self, arguments: Arguments, number: int
    ) -> Callable[[Sequence[Any]], ConcreteFunction]:
        """See `ConcreteFunction.retrace`. It keeps neither an argument nor this object alive."""
        bare, target, signature = arguments.without_values(), self._target(), self._signature
        name, programs = self._name, self._programs

        def retrace(specs: Sequence[Any]) -> ConcreteFunction:
            these = bare.of_specs(specs)
            traced = trace(target, these, name, False)
            return ConcreteFunction(traced, these, signature, programs, number)

        return retrace

    def adopt(self, concrete: ConcreteFunction, arguments: Arguments) -> None:
        """Take a trace that was made elsewhere for calls with such arguments."""
        with self._lock.held():
            self._lock.is_owned()
            self._cache.add((arguments.key, None), concrete, arguments)

    def _traced_twice(self, arguments: Arguments, these_variables: bool) -> tuple[Trace, bool]:
        """The trace, and whether it is for these variables only: the function asked which ones they
        are, or one is of a class that a program derived, which may do what it likes. Where the
        first trace creates variables, the second one is given."""
        first = not self._traced_once
        own = any(isinstance(x, Variable) and x._is_of_program() for x in arguments.leaves)
        these_variables = these_variables or own
        traced = trace(self._target(), arguments, self._name, first, these_variables)
        told_apart = traced.told_apart
        unranked = arguments.unranked and arguments.unranked.key
        if unranked is None or unranked not in self._unranked:
            self._traces += 1
            self._unranked.add(unranked)
        if traced.created_variables or told_apart:  # once more: a later call must not create any
            these_variables = these_variables or told_apart
            traced = trace(self._target(), arguments, self._name, False, these_variables)
            self._traces += 1
        return traced, told_apart or own

    def _evict(self, newest: Entry) -> None:
        """Let go of traces that cannot be called any more, and of those beyond the bound."""
        gone = self._cache.out_of_reach()
        if gone:
            self._forget(gone)
            self._history.unreachable([c.number for c in gone])
        gone = self._cache.excess(self.max_traces, newest, self._was_called)
        if gone:
            self._forget(gone)
            self._history.evicted([c.number for c in gone], self.max_traces)

    def _was_called(self, concrete: ConcreteFunction) -> bool:
        asked = [p.were_called(concrete) for p in self._all_plans()]  # all of them
        if self._native is not None:
            asked.append(self._native.were_called(concrete))
        return any(asked)

    def _forget(self, gone: list[ConcreteFunction]) -> None:
        self._cache.remove(gone)
        for plans in self._all_plans():
            plans.remove(gone)
        if self._native is not None:
            self._native.remove(gone)

    def _all_plans(self) -> list[Plans]:
        return [self._plans, *list(self._keyword_plans.values())]

    def clear_traces(self) -> None:
        """Forget all traces and their programs; later calls trace again.

        Variables that the function made stay, and the count of traces goes on.
        """
        with self._lock.held():
            self._lock.is_owned()
            gone = self._cache.concrete_functions
            self._forget(gone)
            self._history.cleared([c.number for c in gone])
            self._traced.clear()
            self._converted = None

    @property
    def max_traces(self) -> int:
        """How many traces are kept; `td.config.set_max_traces` unless given to `function`."""
        return self._max_traces or settings.max_traces

    def _generalized(self, arguments: Arguments) -> Arguments:
        """The arguments with every dim open that differed from an earlier trace's."""
        earlier = self._traced.get(arguments.family)
        if earlier is not None:
            arguments = arguments.generalized(earlier)
        self._traced[arguments.family] = arguments.without_values()
        return arguments

    def _decorate(self, decorator: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Trace ``decorator(function)`` in place of the function. Libraries written for TensorFlow
        wrap the methods of their classes so.

        Raises:
            RuntimeError: it was traced before.
        """
        if self._traced_once:
            raise RuntimeError(f"{self._name!r} was traced: it cannot be decorated any more")
        given = self._signature.input_signature
        self.python_function = decorator(self.python_function)
        self._signature = FunctionSignature(self.python_function, given, self._name)
        self._converted = None

    def _target(self) -> Callable[..., Any]:
        """The function to trace: converted by AutoGraph unless switched off."""
        if not self._autograph:
            return self.python_function
        if self._converted is None:
            self._converted = converted(self.python_function)
        return self._converted

    # -- inspection --------------------------------------------------------------------------

    def get_concrete_function(
        self, *args: Any, **kwargs: Any
    ) -> ConcreteFunction | AnyRankFunction:
        """The trace for arguments given as values or TensorSpecs, made if it does not exist. Where
        a rank is unknown, a function that makes a trace for each rank.

        Without arguments, a function with an input_signature is traced for that.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        try:
            if self._signature.is_unbound:
                raise TypeError(
                    f"{self._name}() is a method with an input_signature: take the concrete "
                    f"function of an object's method, not of its class{at(user_origin())}"
                )
            arguments = self._signature.bind(args, kwargs)
            if arguments.has_ranks:
                return self._lookup(arguments, for_any_variables=True)
            self._asked[arguments.key] = arguments
            return self._of_any_rank(arguments)
        except Exception as error:
            show_user_frames(error)
            raise

    @property
    def of_any_rank(self) -> list[AnyRankFunction]:
        """What `get_concrete_function` gave for signatures in which ranks are unknown."""
        return [self._of_any_rank(arguments) for arguments in self._asked.values()]

    def _of_any_rank(self, arguments: Arguments) -> AnyRankFunction:
        return AnyRankFunction(
            arguments, self._signature, self._lookup, lambda: self._cache.concrete_functions
        )

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was traced; for a signature of unknown ranks once, whatever
        ranks its calls have."""
        return self._traces

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces that are kept, oldest first."""
        return self._cache.concrete_functions

    def _listed(self) -> list[ConcreteFunction | AnyRankFunction]:
        """The traces as the user knows them: one for a signature in which ranks are unknown."""
        found: dict[Any, ConcreteFunction | AnyRankFunction] = {}
        for concrete in self.concrete_functions:
            if concrete.unranked is None:
                found[concrete] = concrete
            elif concrete.unranked.key not in found:
                found[concrete.unranked.key] = self._of_any_rank(concrete.unranked)
        return list(found.values())

    def explain(self) -> Explanation:
        """Why the function was traced: what each trace differed in from the nearest earlier one."""
        return explain_retraces(self)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The types of all traces; once for all of a signature in which ranks are unknown.

        Args:
            verbose: a line for each parameter, result and capture; else a line for each trace.
        """
        parts = [c.pretty_printed_signature(verbose) for c in self._listed()]
        return ("\n\n" if verbose else "\n").join(parts)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that any trace captured, each once."""
        found: dict[int, Variable] = {}
        for concrete in self.concrete_functions:
            found.update((id(v), v) for v in concrete.variables)
        return tuple(found.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    def __repr__(self) -> str:
        return f"<td.function {self._name} ({len(self._listed())} traces)>"

    # -- copies ------------------------------------------------------------------------------

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickled by name, as Python functions are; where that is the name of the Python function,
        with that and the options."""
        name: str = self.__dict__.get("__qualname__", self._name)
        found: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        return self._reduced() if found is self.python_function else name

    def _reduced(self) -> tuple[Any, ...]:
        options = (
            self._signature.input_signature, self._autograph, self._jit_compile,
            self._reduce_retracing, self._name, self._max_traces, self._attributes,
        )  # fmt: skip
        return Function, (self.python_function, *options)

    def __copy__(self) -> Function:
        """Itself, as copies of Python functions are."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """Without traces. That of an object's method is one of the object's copy."""
        made: Function = self._like(copy.deepcopy(self.python_function, memo))
        return made

    def _like(self, python_function: Callable[..., Any], kind: Any = None) -> Any:
        """A function with the same options, without traces."""
        _, (_, *options) = self._reduced()
        return (kind or Function)(python_function, *options)

    # -- methods -----------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A function stored in a class: each instance gets its own traces, freed with it.

        The result is a bound method, whose attributes are those of the instance's function.
        """
        if instance is None:
            return self
        entry = self._bound.get(id(instance))
        if entry is not None and entry[0]() is instance:
            return MethodType(entry[1], instance)
        return MethodType(self._bind_instance(instance), instance)

    def _bind_instance(self, instance: Any) -> BoundFunction:
        address = id(instance)
        try:
            reference: Any = weakref.ref(instance, lambda _: self._bound.pop(address, None))
        except TypeError:

            def reference() -> Any:
                return instance

        method = WeakMethod(self.python_function, reference)
        bound: BoundFunction = self._like(method, BoundFunction)
        self._bound[address] = (reference, bound)
        return bound


class BoundFunction(Function):
    """The function of one instance. Called as a method, with the instance first, which keeps it
    alive for the call; otherwise it is known only weakly."""

    def __call__(self, instance: Any, /, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)

    def _as_called(self) -> Callable[..., Any]:
        return MethodType(self, self.python_function.__self__)  # type: ignore[attr-defined]


@clears
def clear_all_traces() -> None:
    """Forget the traces of every function."""
    for made in _functions:
        made.clear_traces()


ConcreteFunction.as_function = staticmethod(lambda fn: Function(fn, autograph=False))
