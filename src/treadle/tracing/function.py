"""`function`: turns a Python function into one that runs cached, compiled graphs."""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, overload

from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.ops.state import Variable
from treadle.tracing import settings
from treadle.tracing.calls import MISS, Plan, make_plan
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.programs import Programs
from treadle.tracing.retraces import Explanation, History, explain_retraces
from treadle.tracing.signature import Arguments, FunctionSignature, ObjectKey, display_name
from treadle.tracing.trace import trace
from treadle.tracing.tracebacks import show_user_frames

_F = TypeVar("_F", bound=Callable[..., Any])

_MOST_PLANS = 64  # fast paths tried one after another; further signatures use the cache's dict


class Function:
    """A function that is traced once per signature and then runs compiled.

    Made by `function`. Called like the Python function.

    Attributes:
        python_function: the function as written.
        input_signature: the specs given to `function`, or None.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: Any = None,
        autograph: bool = True,
        jit_compile: bool | None = None,
        reduce_retracing: bool = False,
        name: str | None = None,
    ) -> None:
        self.python_function = python_function
        self._autograph = autograph
        self._jit_compile = jit_compile
        self._reduce_retracing = reduce_retracing
        self._name = name or display_name(python_function)
        self._signature = FunctionSignature(python_function, input_signature, self._name)
        self._lock = threading.RLock()
        self._cache: dict[Any, ConcreteFunction] = {}
        self._plans: list[Plan] = []
        self._keyword_plans: dict[tuple[str, ...], list[Plan]] = {}
        self._programs = Programs()
        self._traces = 0
        self._history = History(self._name)
        self._general: list[tuple[Arguments, ConcreteFunction]] = []  # traces with open dims
        self._traced: list[Arguments] = []  # what reduce_retracing has seen
        self._traced_once = False
        self._tracing: set[Any] = set()
        self._converted: Callable[..., Any] | None = None
        self._bound: dict[int, tuple[Any, Function]] = {}
        functools.update_wrapper(self, python_function, updated=())

    @property
    def input_signature(self) -> Any:
        return self._signature.input_signature

    @property
    def name(self) -> str:
        return self._name

    # -- calling -----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:
                for plan in self._keyword_plans.get(tuple(kwargs), ()):
                    result = plan((*args, *kwargs.values()))
                    if result is not MISS:
                        return result
            else:
                for plan in self._plans:
                    result = plan(args)
                    if result is not MISS:
                        return result
            return self._call_slowly(args, kwargs)
        except Exception as error:
            show_user_frames(error)
            raise

    def _call_slowly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The general path: bind, look the trace up (or make it), run, and add a fast path."""
        if settings.run_eagerly:
            return self.python_function(*args, **kwargs)
        arguments = self._signature.bind(args, kwargs)
        concrete = self._lookup(arguments)
        leaves = [
            leaf for leaf, spec in zip(arguments.leaves, concrete.leaf_specs, strict=True) if spec
        ]
        result = concrete.call_flat(leaves)
        if context.recorder is None and not context.tapes:
            if concrete.was_called:  # a plan for one call would cost more than it saves
                self._add_plan(concrete, arguments, args, kwargs)
            concrete.was_called = True
        return result

    def _add_plan(
        self, concrete: ConcreteFunction, arguments: Arguments, args: Any, kwargs: dict[str, Any]
    ) -> None:
        plans = self._keyword_plans.setdefault(tuple(kwargs), []) if kwargs else self._plans
        if len(plans) >= _MOST_PLANS:
            return
        order = self._signature.canonical_order(arguments, len(args), tuple(kwargs))
        plan = make_plan(concrete, (*args, *kwargs.values()), order)
        if plan is not None:
            plans.append(plan)

    # -- the cache ---------------------------------------------------------------------------

    def _lookup(self, arguments: Arguments) -> ConcreteFunction:
        concrete = self._cached((arguments.key, self._enclosing()), arguments, False)
        aliased = concrete.captured_among(arguments.leaves)
        if aliased:  # an argument is also reached through a closure: a trace for these variables
            key = (arguments.key, self._enclosing(), tuple(ObjectKey(v) for v in aliased))
            concrete = self._cached(key, arguments, True)
        return concrete

    def _cached(self, key: Any, arguments: Arguments, these_variables: bool) -> ConcreteFunction:
        concrete = self._cache.get(key)
        if concrete is None:
            with self._lock:  # one trace per signature, whatever the number of threads
                concrete = self._cache.get(key)
                if concrete is None and not these_variables:
                    concrete = self._more_general(key, arguments)
                if concrete is None:
                    concrete = self._trace(key, arguments, these_variables)
        return concrete

    def _more_general(self, key: Any, arguments: Arguments) -> ConcreteFunction | None:
        """A trace with open dims that these arguments fit; noted for the next such call."""
        for general, concrete in self._general:
            if general.accepts(arguments) and key[1] is None:
                self._cache[key] = concrete
                return concrete
        return None

    def _enclosing(self) -> Any:
        """Inside another trace, traces that captured its tensors belong to it alone."""
        recorder: Any = context.recorder
        if recorder is None or not self._captures_symbols:
            return None
        return ObjectKey(recorder.graph)

    _captures_symbols = False

    def _trace(self, key: Any, arguments: Arguments, these_variables: bool) -> ConcreteFunction:
        if key in self._tracing:
            raise RecursionError(
                f"{self._name!r} calls itself with the same signature while it is being traced; "
                "the recursion would never end. Recurse on a Python value that changes, or use "
                f"a while loop{at(user_origin())}"
            )
        record = self._history.next_record(arguments)
        self._history.admit(record)
        if self._reduce_retracing:
            arguments = self._generalized(arguments)
        self._tracing.add(key)
        try:
            first = not self._traced_once
            traced = trace(self._target(), arguments, self._name, first, these_variables)
            self._traces += 1
            if traced.created_variables:  # once more: a later call must not create any
                traced = trace(self._target(), arguments, self._name, False, these_variables)
                self._traces += 1
        finally:
            self._tracing.discard(key)
        self._traced_once = True
        self._history.add(record)
        concrete = ConcreteFunction(traced, arguments, self._name, self._programs, record.number)
        if arguments.has_open_dims:
            self._general.append((arguments, concrete))
        if any(getattr(c, "is_symbolic", False) for c in traced.graph.captures):
            self._captures_symbols = True
            key = (key[0], self._enclosing(), *key[2:])
        self._cache[key] = concrete
        return concrete

    def _generalized(self, arguments: Arguments) -> Arguments:
        """The arguments with every dim open that differed from an earlier trace's."""
        for earlier in reversed(self._traced):
            arguments = arguments.generalized(earlier)
        self._traced.append(arguments)
        return arguments

    def _target(self) -> Callable[..., Any]:
        """The function to trace: converted by AutoGraph unless switched off."""
        if not self._autograph:
            return self.python_function
        if self._converted is None:
            from treadle.autograph import converted

            self._converted = converted(self.python_function)
        return self._converted

    # -- inspection --------------------------------------------------------------------------

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for arguments given as values or TensorSpecs, made if it does not exist.

        Without arguments, a function with an input_signature is traced for that.
        """
        if not args and not kwargs and self.input_signature is not None:
            args = self.input_signature
        try:
            return self._lookup(self._signature.bind(args, kwargs))
        except Exception as error:
            show_user_frames(error)
            raise

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function was traced."""
        return self._traces

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces, oldest first."""
        return list(dict.fromkeys(self._cache.values()))

    def explain(self) -> Explanation:
        """Why the function was traced: what each trace differed in from the nearest earlier one."""
        return explain_retraces(self)

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """One line per trace."""
        return "\n".join(c.pretty_signature() for c in self.concrete_functions)

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
        return f"<td.function {self._name} ({len(self.concrete_functions)} traces)>"

    # -- methods -----------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A function stored in a class: each instance gets its own traces, freed with it."""
        if instance is None:
            return self
        entry = self._bound.get(id(instance))
        if entry is not None and entry[0]() is instance:
            return entry[1]
        return self._bind_instance(instance)

    def _bind_instance(self, instance: Any) -> Function:
        address = id(instance)
        try:
            reference: Any = weakref.ref(instance, lambda _: self._bound.pop(address, None))
        except TypeError:

            def reference() -> Any:
                return instance

        bound = Function(
            _WeakMethod(self.python_function, reference),
            self._signature.input_signature,
            self._autograph,
            self._jit_compile,
            self._reduce_retracing,
            self._name,
        )
        self._bound[address] = (reference, bound)
        return bound


class _WeakMethod:
    """A bound method that does not keep its instance alive."""

    def __init__(self, function: Callable[..., Any], reference: Callable[[], Any]) -> None:
        self.__func__ = function
        self.reference = reference
        functools.update_wrapper(self, function, updated=())
        del self.__wrapped__  # type: ignore[attr-defined]  # its signature has `self`
        self.__signature__ = _without_self(function)

    @property
    def __self__(self) -> Any:
        return self.reference()

    def method(self) -> types.MethodType:
        instance = self.reference()
        if instance is None:
            raise ReferenceError(f"The object of the method {self.__func__!r} no longer exists")
        return types.MethodType(self.__func__, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.method()(*args, **kwargs)


def _without_self(function: Callable[..., Any]) -> Any:
    import inspect

    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


@overload
def function(func: _F) -> Function: ...


@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Callable[[Callable[..., Any]], Function]: ...


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Compile a Python function into graphs, one per signature; usable as a decorator.

    The first call with a new signature traces the function: it runs once in Python with symbolic
    tensors, its operations are recorded and compiled to native code. Later calls with that
    signature run the compiled program. Python side effects therefore happen once per trace.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: nested `TensorSpec`s that every call is converted to: one trace. None in
            a shape stands for any size.
        autograph: whether Python `if`, `while`, `for` on tensors become graph control flow.
        jit_compile: accepted for TensorFlow programs; treadle always compiles.
        reduce_retracing: let dims that differ between calls become symbolic instead of retracing.
        experimental_*: accepted for TensorFlow programs.

    Raises:
        TypeError: `func` is not callable or `input_signature` does not fit it.
    """
    reduce_retracing = bool(reduce_retracing or experimental_relax_shapes)

    def decorate(fn: Callable[..., Any]) -> Function:
        if isinstance(fn, Function):
            fn = fn.python_function
        if not callable(fn):
            raise TypeError(f"function() needs a callable, got {fn!r}")
        return Function(fn, input_signature, autograph, jit_compile, reduce_retracing)

    return decorate if func is None else decorate(func)
