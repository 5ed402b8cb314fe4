"""Eager calls of functions that are made of several ops: programs, compiled in the background.

A call belongs to a family: the function, its Python values, and what is known of its tensors but
their dims. Each combination of dims has an entry, whose trace shares the family's programs. A
program on disk, or one of other dims that serves these, too, is used at the first call. Where there
is none the function runs op by op until a thread has compiled it; that begins when these calls have
taken a good part of the time that the compiler needs. A call that would take longer than the
compiler waits for its program.

Under a gradient tape a call is one operation with a forward and a backward program.

A program gives the bits that the function has in a function that is traced. Where it raises, the
function is called, whose error is the call's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from treadle.autodiff.tape import GradientTape
from treadle.core import locks, nest
from treadle.core.caches import clears
from treadle.core.composite_spec import CompositeTensor
from treadle.core.context import (
    context,
    executing_eagerly,
    home,
    placed_elsewhere,
    placing,
    watched,
)
from treadle.core.devices import HOST
from treadle.core.spec import TensorSpec
from treadle.core.switches import is_on, may_be_off
from treadle.core.tensor import Tensor
from treadle.ops.composed import NOT_RUN
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable
from treadle.runtime import compile_native, stored_native
from treadle.runtime.collections_paused import collections_paused
from treadle.runtime.devices import backend
from treadle.tracing import settings
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.eager_programs import PLAIN, typed
from treadle.tracing.gradient import prepare_taped, run_taped
from treadle.tracing.large_operations import COMPILING, WORTH_WAITING, elements_of, within_call
from treadle.tracing.programs import Programs
from treadle.tracing.signature import FunctionSignature
from treadle.tracing.trace import results_of, trace

ASKED = COMPILING / 5  # seconds that calls of a family take before it is worth a program
FEW = 16  # elements of integers that count by value, as they are sizes, axes or positions
MOST_FAMILIES, MOST_ENTRIES = 1024, 256  # that are kept; entries of one family
MOST_IN_VAIN = 8  # traces of a function for calls that did not come again; then it has to be asked

_families: dict[Hashable, _Family] = {}
_in_vain: dict[Any, int] = {}  # function -> how many traces were made since one has run
_lock = locks.lock()


class _Slot:
    """Stands for a tensor among arguments."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Parts:
    """Stands for a composite tensor of a type."""

    __slots__ = ("parts", "spec")

    def __init__(self, spec: Any, parts: list[Any]) -> None:
        self.spec, self.parts = spec, parts


class _Other(Exception):
    """An argument that no program takes."""


class _Given:
    """The arguments of a call, taken apart.

    Attributes:
        key: what calls of one family have in common.
        tensors: what their programs take.
        form: (args, kwargs) with slots for these.
    """

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        key: list[Any] = [function, len(args)]
        self.tensors: list[Tensor] = []
        taken = [self._take(value, key) for value in args]
        named = {}
        for name, value in kwargs.items():
            if name != "name":
                key.append(name)
                named[name] = self._take(value, key)
        self.key = tuple(key)
        self.form = taken, named

    def _take(self, value: Any, key: list[Any]) -> Any:
        """What stands for a value; appends what calls have to have in common."""
        kind = type(value)
        if kind is Tensor:
            array = value._numpy()
            if array.size > FEW or array.dtype.kind not in "iu" or _is_watched(value):
                return self._slot(value, key)
            return _constant(value, array, key)
        if kind is np.ndarray:
            if value.dtype.kind not in "biufc" and value.dtype.name != "bfloat16":
                raise _Other
            if value.size > FEW:
                return self._slot(convert_to_tensor(value), key)
            return _constant(value.copy(), value, key)
        if isinstance(value, Variable):
            return self._slot(convert_to_tensor(value), key)
        if kind is list or kind is tuple:
            key += [kind, len(value)]
            return kind([self._take(v, key) for v in value])
        if isinstance(value, np.generic):
            return _constant(value, np.asarray(value), key)
        if isinstance(value, PLAIN) and kind is not dict:
            key.append(typed(value))
            return value
        if isinstance(value, CompositeTensor):
            spec = value._type_spec
            key.append(spec)
            return _Parts(spec, [self._part(part, key) for _, part in nest.children(value) or ()])
        raise _Other

    def _part(self, value: Any, key: list[Any]) -> Any:
        if value is None:
            key.append(None)
            return None
        if isinstance(value, CompositeTensor):
            return self._take(value, key)
        return self._slot(value, key)

    def _slot(self, value: Any, key: list[Any]) -> _Slot:
        if type(value) is not Tensor:
            raise _Other
        array = value._numpy()
        key += [_Slot, array.dtype, array.ndim]
        self.tensors.append(value)
        return _Slot(len(self.tensors) - 1)


def _constant(value: Any, array: Any, key: list[Any]) -> Any:
    key += [type(value), array.dtype, array.shape, array.tobytes()]
    return value


def _is_watched(tensor: Tensor) -> bool:
    return any(tape.watches(tensor) for tape in context.tapes)


def _filled(form: Any, tensors: Sequence[Any]) -> Any:
    """What a form stands for, with tensors in the slots."""
    kind = type(form)
    if kind is _Slot:
        return tensors[form.number]
    if kind is _Parts:
        parts = [_filled(part, tensors) for part in form.parts]
        return nest.rebuild(form.spec, parts)
    if kind is list or kind is tuple:
        return kind([_filled(part, tensors) for part in form])
    return form


class _Family:
    """The calls of a function with some Python values.

    Attributes:
        seconds: that its calls took which had no program.
    """

    def __init__(self, function: Callable[..., Any], form: Any) -> None:
        args, kwargs = form

        def called(*tensors: Any) -> Any:
            named = {name: _filled(value, tensors) for name, value in kwargs.items()}
            return function(*[_filled(value, tensors) for value in args], **named)

        self.function, self.name = function, function.__name__
        self.programs = Programs(compile_native)
        self.entries: dict[Hashable, _Entry] = {}
        self.seconds = 0.0
        self._called = called
        self._signature = FunctionSignature(called, None, self.name)
        self._traces = 0

    def traced(self, specs: Sequence[TensorSpec]) -> ConcreteFunction:
        """The function for tensors of some specs.

        Raises:
            ValueError: it has effects, or holds what may change.
        """
        with placing(None), collections_paused:
            arguments = self._signature.bind(tuple(specs), {})
            found = trace(self._called, arguments, self.name, False)
        self._traces += 1
        graph = found.graph
        if any(n.op.effect is not None and "asserts" not in n.op.tags for n in graph.walk()):
            raise ValueError("it has effects")
        if graph.device is not HOST or not all(type(c) is Tensor for c in graph.captures):
            raise ValueError("it is not on the host, or reads variables")
        return ConcreteFunction(
            found, arguments, self._signature, self.programs, number=self._traces
        )


class _Entry:
    """The calls of a family with tensors of some dims, of which some are watched.

    Attributes:
        concrete: the trace; None where there is none yet.
        is_ready: whether its programs are there.
        met, asked: how many calls came without them; how many of these would have them made.
        failure: why there are none; the function is called op by op.
        waits: for its program, as its ops would take longer.
    """

    __slots__ = (
        "asked", "concrete", "failure", "family", "is_ready", "met", "needs", "specs", "waits",
    )  # fmt: skip

    def __init__(self, family: _Family, specs: Sequence[TensorSpec], needs: tuple[bool, ...]):
        self.family, self.specs, self.needs = family, specs, needs
        self.concrete: ConcreteFunction | None = None
        self.is_ready = self.waits = False
        self.failure: Exception | None = None
        self.met = self.asked = 0

    def trace(self) -> ConcreteFunction | None:
        """The trace, made where there is none. It does not raise."""
        if self.concrete is None and self.failure is None:
            try:
                self.concrete = self.family.traced(self.specs)
                self.waits = _work(self.concrete) >= WORTH_WAITING
            except Exception as error:  # it asks for elements, or is refused
                self.failure = error
        return self.concrete

    def find(self) -> None:
        """Use what is on disk, or serves other dims, too."""
        concrete = self.concrete
        if concrete is not None and not any(self.needs):
            self.is_ready = concrete.use(stored_native(concrete.graph))

    def compile(self) -> None:
        """Make the programs, unless somebody has. It does not raise."""
        if self.is_ready or self.failure is not None:
            return
        concrete = self.trace()
        if concrete is None:
            return
        try:
            if any(self.needs):
                prepare_taped(concrete, (*self.needs, *[False] * len(concrete.graph.captures)))
            else:
                concrete.executable  # noqa: B018  (compiles)
            self.is_ready = True
        except Exception as error:  # the compiler has no form for it
            self.failure = error

    def run(self, tensors: Sequence[Tensor]) -> Any:
        """The result by the programs."""
        concrete = self.concrete
        assert concrete is not None
        inputs = [*tensors, *concrete.graph.captures]
        run = run_taped if any(self.needs) else ConcreteFunction.execute
        return results_of(concrete.result_structure, run(concrete, inputs))


def _work(concrete: ConcreteFunction) -> int:
    """About how many elements NumPy would compute, all ops together."""
    return sum(map(elements_of, concrete.graph.walk()))


def run_composed(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of a call by its program; `NOT_RUN` where the function is to be called, which
    this has asked for then."""
    if (may_be_off() and not is_on("eager_programs")) or within_call.depth:
        return NOT_RUN
    if settings.check_numerics or not executing_eagerly() or backend().eager_elements is None:
        return NOT_RUN
    if placed_elsewhere() is not None or home() is not HOST:
        return NOT_RUN
    tapes = context.tapes if watched() else ()
    try:
        given = _Given(function, args, kwargs)
        needs = tuple([any(t.watches(x) for t in tapes) for x in given.tensors]) if tapes else ()
        if not given.tensors or (any(needs) and not _is_simple(tapes)):
            return NOT_RUN
        entry = _entry(function, given, needs if any(needs) else ())
    except (_Other, TypeError):  # an argument that no program takes, or without a hash
        return NOT_RUN
    if not entry.is_ready:
        _ask(entry)
        if not entry.is_ready:
            return _op_by_op(entry, function, args, kwargs)
    _in_vain[function] = 0
    try:
        return entry.run(given.tensors)
    except Exception:
        return NOT_RUN  # the call tells why


def _is_simple(tapes: Sequence[Any]) -> bool:
    """Whether a call is differentiated once: its forward program keeps what that needs."""
    return len(tapes) == 1 and type(tapes[0]) is GradientTape and not tapes[0]._persistent


def _entry(function: Callable[..., Any], given: _Given, needs: tuple[bool, ...]) -> _Entry:
    family = _families.get(given.key)
    if family is None:
        with _lock:
            if len(_families) >= MOST_FAMILIES:
                for old in list(_families)[: MOST_FAMILIES // 4]:
                    del _families[old]
            family = _families.setdefault(given.key, _Family(function, given.form))
    dims = (*[x._numpy().shape for x in given.tensors], needs)
    entry = family.entries.get(dims)
    if entry is None:
        specs = [TensorSpec(x.spec.dims, x.spec.dtype) for x in given.tensors]
        with _lock:
            if len(family.entries) >= MOST_ENTRIES:
                for dim in list(family.entries)[: MOST_ENTRIES // 4]:
                    del family.entries[dim]
            entry = family.entries.setdefault(dims, _Entry(family, specs, needs))
    return entry


def _ask(entry: _Entry) -> None:
    """Look for the program of a call, or have it made."""
    if entry.failure is not None:
        return
    family = entry.family
    entry.met += 1
    if entry.met == 1 and _in_vain.get(family.function, 0) < MOST_IN_VAIN:
        _in_vain[family.function] = _in_vain.get(family.function, 0) + 1
        entry.trace()
        entry.find()
        if entry.is_ready:
            return
    if entry.waits or settings.wait_for_eager_programs:
        entry.compile()
    elif entry.met > 1 and family.seconds >= ASKED and (concrete := entry.trace()) is not None:
        entry.asked += 1
        if not entry.asked & entry.asked - 1:  # a fork drops what waits: ask again
            label = f"{family.name} {id(entry)}"
            backend().compile_later(label, entry.compile, concrete.graph)


def _op_by_op(entry: _Entry, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What the function gives; from how long it takes follows whether it is worth a program. Its
    ops have programs of their own only where the whole has none."""
    if entry.failure is not None:
        return NOT_RUN
    begun = time.thread_time()
    within_call.depth += 1
    try:
        result = function(*args, **kwargs)
    finally:
        within_call.depth -= 1
    seconds = time.thread_time() - begun
    entry.family.seconds += seconds
    entry.waits = entry.waits or seconds >= COMPILING
    return result


@clears
def _forget() -> None:
    """Forget the calls and their programs."""
    with _lock:
        _families.clear()
        _in_vain.clear()
