"""Fast calls: a Python function generated per signature that checks a call's arguments and runs
the compiled program, without building keys or walking structures.

A plan takes the arguments as one tuple and gives the result, or `MISS` where they do not match
exactly; then the next plan, and at last the general path, is tried. Plans only ever say MISS too
often, never too rarely. Its global ``used`` is set by a call; the cache looks at it before it
evicts a trace.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, TypeAlias

import numpy as np

from treadle.core import dtypes, nest
from treadle.core.arrays import own_copy
from treadle.core.composite_spec import CompositeTensor
from treadle.core.context import context, home, placed
from treadle.core.devices import HOST
from treadle.core.shapes import SymbolicDim, symbol_name
from treadle.core.spec import ListSpec, Spec, TensorSpec, is_static
from treadle.core.tensor import DeviceTensor, StringTensor, Tensor, buffer_of, from_buffer
from treadle.ops.state import Variable, values_are_substituted
from treadle.tracing import settings
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.signature import tells_no_more
from treadle.tracing.static_values import has_equality, is_mutable_value, reference_to
from treadle.tracing.trace import _Result, results_of

MISS: Any = object()
Plan: TypeAlias = Callable[[tuple[Any, ...]], Any]


def make_plan(concrete: ConcreteFunction, args: Sequence[Any], order: Sequence[int]) -> Plan | None:
    """A plan for calls like this one, or None where the arguments are of kinds it cannot check.

    Args:
        args: the values of a call; values of keywords come last.
        order: the places in `args` in the order of the function's parameters.
    """
    try:
        return _PlanWriter(concrete).write(args, order)
    except _NoPlan:
        return None


@functools.lru_cache(maxsize=1024)
def _compiled(source: str, filename: str) -> CodeType:
    """The code of a plan: plans of traces that differ in shapes have one text."""
    return compile(source, filename, "exec")


class _NoPlan(Exception):
    """The arguments or results need the general path."""


class _PlanWriter:
    """Writes the source of one plan. `names` are the constants that it closes over."""

    def __init__(self, concrete: ConcreteFunction) -> None:
        self.concrete = concrete
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "context": context, "settings": settings,
            "values_are_substituted": values_are_substituted, "MISS": MISS, "Tensor": Tensor,
            "ndarray": np.ndarray, "asarray": np.asarray, "own_copy": own_copy,
            "new": object.__new__, "placed": placed, "used": True,
        }  # fmt: skip
        self.device = concrete.graph.device
        self.params, self.told = iter(concrete.graph.arguments), iter(concrete.told)
        self.inputs: list[str] = []
        self.count = 0

    def write(self, args: Sequence[Any], order: Sequence[int]) -> Plan:
        self.scope()
        self.miss_if("settings.run_eagerly or values_are_substituted()")
        self.sequence("args", args, order)
        if next(self.params, None) is not None:
            raise _NoPlan  # an argument that was filled in by a default
        self.call()
        source = "def plan(args):\n" + "\n".join(f"    {line}" for line in self.lines)
        exec(_compiled(source, f"<treadle plan of {self.concrete.name}>"), self.names)
        plan: Plan = self.names["plan"]
        return plan

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def constant(self, value: Any, stem: str = "c") -> str:
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def miss_if(self, test: str) -> None:
        self.emit(f"if {test}:")
        self.emit("    return MISS")

    def scope(self) -> None:
        """No trace, no tape, and the device scope of this call. A scope of the host changes nothing
        where the program, its arguments and captures are there."""
        scope = placed()
        if (scope or home()) is HOST:
            self.miss_if("context.counted")
            if self.device is HOST and scope is None:
                return
        else:
            self.miss_if("context.counted != 1")
        self.miss_if(f"placed() is not {self.constant(scope)}")

    # -- arguments ---------------------------------------------------------------------------

    def argument(self, place: str, value: Any) -> None:
        """Checks for the argument held by the variable `place`, which now is `value`."""
        kind = type(value)
        if isinstance(value, Tensor | np.ndarray | np.generic):
            self.tensor(place, value)
        elif isinstance(value, Variable):
            self.variable(place, value)
        elif kind in (list, tuple):
            self.miss_if(f"type({place}) is not {kind.__name__}")
            self.sequence(place, value, range(len(value)))
        elif kind is dict:
            self.mapping(place, value)
        elif (taker := nest.taker_of(value)) is not None:
            self.registered(place, value, *taker)
        elif nest.is_nested(value):
            self.structure(place, value)
        else:
            self.python_value(place, value)

    def registered(self, place: str, value: Any, children: Any, static: Any) -> None:
        """An object that stands for tensors, such as a dataset."""
        self.miss_if(f"type({place}) is not {self.constant(type(value), 'K')}")
        self.miss_if(f"{self.constant(static)}({place}) != {self.constant(static(value))}")
        told = next(self.told) if isinstance(value, CompositeTensor) else None
        if any(size is not None for size in told or ()):
            fits = functools.partial(tells_no_more, told)
            self.miss_if(f"not {self.constant(fits)}({place}._told)")
        parts = children(value)
        inner = self.fresh("a")
        self.emit(f"{inner} = {self.constant(children)}({place})")
        self.sequence(inner, parts, range(len(parts)))

    def sequence(self, place: str, values: Sequence[Any], order: Sequence[int]) -> None:
        self.miss_if(f"len({place}) != {len(values)}")
        parts = [self.fresh("a") for _ in values]
        if parts:
            self.emit(f"{', '.join(parts)}, = {place}")
        for i in order:
            self.argument(parts[i], values[i])

    def mapping(self, place: str, value: dict[Any, Any]) -> None:
        self.miss_if(f"type({place}) is not dict or len({place}) != {len(value)}")
        try:
            keys = sorted(value)
        except TypeError:
            raise _NoPlan from None
        for key in keys:
            if not isinstance(key, str | int):
                raise _NoPlan
            part = self.fresh("a")
            self.emit(f"{part} = {place}.get({key!r}, MISS)")
            self.miss_if(f"{part} is MISS")
            self.argument(part, value[key])

    def structure(self, place: str, value: Any) -> None:
        """A named tuple, a dataclass or an object of an attrs class."""
        self.miss_if(f"type({place}) is not {self.constant(type(value))}")
        if isinstance(value, tuple):
            self.sequence(place, value, range(len(value)))
            return
        names = nest.field_names(value)
        if names is None:
            raise _NoPlan
        for name in names:
            part = self.fresh("a")
            self.emit(f"{part} = {place}.{name}")
            self.argument(part, getattr(value, name))

    def tensor(self, place: str, value: Any) -> None:
        param = next(self.params, None)
        if param is None or not isinstance(param.spec, TensorSpec):
            raise _NoPlan
        array = self.fresh("x")
        if any(c.name == param.name for c in self.concrete.changed):
            self.miss_if(f"type({place}) is ndarray")  # the general path refuses it with a message
        if param.spec.dtype is dtypes.string:
            self.strings(place, array, param.spec)
        elif self.device is not HOST:
            self.on_device(place, array, param.spec, value)
        elif type(value) is DeviceTensor:
            raise _NoPlan
        elif is_static(param.spec):
            self.exact(place, array, param.spec)
        else:
            self.open_dims(place, array, param.spec)
        self.inputs.append(array)

    def strings(self, place: str, array: str, spec: TensorSpec) -> None:
        """A tensor of strings; arrays of strings are converted on the general path."""
        self.miss_if(f"type({place}) is not {self.constant(StringTensor, 'K')}")
        self.emit(f"{array} = {place}._buffer")
        if any(isinstance(d, SymbolicDim) and symbol_name(d) is None for d in spec.dims):
            raise _NoPlan
        self.fits(array, spec)

    def on_device(self, place: str, buffer: str, spec: TensorSpec, value: Any) -> None:
        """A tensor of the device that is not the host, with this very spec; or, where `value` is on
        the host, a tensor or array there, which is copied to the device."""
        if not is_static(spec):
            raise _NoPlan  # the shape of a buffer is the storage's to tell
        if type(value) is DeviceTensor:
            if value.spec.device is not self.device:
                raise _NoPlan
            known = self.constant(spec.on(self.device), "S")
            kind = self.constant(DeviceTensor, "K")
            self.miss_if(f"type({place}) is not {kind} or {place}._spec is not {known}")
            self.emit(f"{buffer} = {place}._buffer")
        else:
            array = self.fresh("h")
            self.exact(place, array, spec)
            self.emit(f"{buffer} = {self.constant(self.device.storage.from_host)}({array})")

    def exact(self, place: str, array: str, spec: Spec) -> None:
        """A tensor with this very spec, or a contiguous array of its dtype and shape, or for a
        scalar spec a NumPy scalar of that dtype."""
        known = self.constant(spec, "S")
        dtype, dims = self.constant(spec.dtype.np_dtype, "D"), self.constant(spec.dims, "N")
        self.emit(f"if type({place}) is Tensor:")
        self.emit(f"    if {place}._spec is not {known} and {place}.spec is not {known}:")
        self.emit("        return MISS")
        self.emit(f"    {array} = {place}._buffer")
        self.emit(
            f"elif type({place}) is ndarray and {place}.dtype is {dtype} and "
            f"{place}.shape == {dims} and {place}.flags.c_contiguous:"
        )
        self.emit(f"    {array} = {self.array(place)}")
        if not spec.dims:
            self.emit(f"elif type({place}) is {self.constant(spec.dtype.np_dtype.type, 'K')}:")
            self.emit(f"    {array} = asarray({place})")
        self.emit("else:")
        self.emit("    return MISS")

    def open_dims(self, place: str, array: str, spec: Spec) -> None:
        """The dtype, rank and fixed dims of a spec with symbols, each symbol used once."""
        if any(isinstance(d, SymbolicDim) and symbol_name(d) is None for d in spec.dims):
            raise _NoPlan
        self.emit(f"if type({place}) is Tensor:")
        self.emit(f"    {array} = {place}._buffer")
        self.emit(f"elif type({place}) is ndarray and {place}.flags.c_contiguous:")
        self.emit(f"    {array} = {self.array(place)}")
        self.emit("else:")
        self.emit("    return MISS")
        self.fits(array, spec)

    def fits(self, array: str, spec: Spec) -> None:
        """The dtype, rank and fixed dims of a spec."""
        dtype = self.constant(spec.dtype.np_dtype, "D")
        shape = self.fresh("s")
        self.emit(f"{shape} = {array}.shape")
        fixed = [f"{shape}[{i}] != {d}" for i, d in enumerate(spec.dims) if isinstance(d, int)]
        tests = [f"{array}.dtype is not {dtype}", f"len({shape}) != {spec.rank}", *fixed]
        self.miss_if(" or ".join(tests))

    def array(self, place: str) -> str:
        """An array of the caller as the program may take it."""
        return place if self.concrete.reads_in_place else f"own_copy({place})"

    def variable(self, place: str, value: Variable) -> None:
        next(self.params, None)
        self.miss_if(f"{place} is not {self.constant(reference_to(value), 'v')}()")
        self.inputs.append(place)

    def python_value(self, place: str, value: Any) -> None:
        kind = type(value)
        if value is None or kind is bool:
            self.miss_if(f"{place} is not {value}")
        elif kind in (int, str, bytes):
            literal = self.constant(value)
            self.miss_if(
                f"{place} is not {literal} and (type({place}) is not {kind.__name__} "
                f"or {place} != {literal})"
            )
        elif kind is float:
            self.float_value(place, value)
        else:
            self.identity(place, value)

    def float_value(self, place: str, value: float) -> None:
        if math.isnan(value):
            raise _NoPlan
        test = f"type({place}) is not float or {place} != {self.constant(value)}"
        if value == 0:  # 0.0 == -0.0
            copysign = self.constant(math.copysign)
            test += f" or {copysign}(1.0, {place}) != {math.copysign(1.0, value)}"
        self.miss_if(test)

    def identity(self, place: str, value: Any) -> None:
        """An object, which the plan must not keep alive, or its equal."""
        if is_mutable_value(value):
            raise _NoPlan
        if type(value) is complex:  # by the text, as 0j == -0j
            shown = self.constant(repr(value))
            self.miss_if(f"type({place}) is not complex or repr({place}) != {shown}")
            return
        reference = self.constant(reference_to(value))
        if not has_equality(value):
            self.miss_if(f"{reference}() is not {place}")
            return
        try:
            kind, code = self.constant(type(value)), self.constant(hash(value))
        except TypeError:
            raise _NoPlan from None
        self.miss_if(
            f"type({place}) is not {kind} or hash({place}) != {code} "
            f"or (known := {reference}()) is None or known != {place}"
        )

    # -- the call and its results ------------------------------------------------------------

    def call(self) -> None:
        """Runs the program on the collected inputs and the captures."""
        captured = [
            self.constant(buffer_of(c, self.device))
            for c in self.concrete.graph.captures
            if not getattr(c, "is_symbolic", False)
        ]
        if len(captured) != len(self.concrete.graph.captures):
            raise _NoPlan
        self.emit("global used")
        self.emit("used = True")
        run = self.constant(self.concrete.executable.run)
        results = [self.fresh("r") for _ in self.concrete.outputs]
        target = f"{', '.join(results)}, = " if results else ""
        self.emit(f"{target}{run}([{', '.join([*self.inputs, *captured])}])")
        tensors = [
            self.wrap(r, spec) for r, spec in zip(results, self.concrete.outputs, strict=True)
        ]
        structure = self.concrete.result_structure
        kinds = functools.partial(self.constant, stem="K")
        self.emit(f"return {_result_source(structure, tensors, kinds)}")

    def wrap(self, array: str, spec: Spec) -> str:
        if isinstance(spec, ListSpec):
            raise _NoPlan
        tensor = self.fresh("t")
        if self.device is not HOST or spec.dtype is dtypes.string:
            made = functools.partial(from_buffer, device=self.device)
            self.emit(f"{tensor} = {self.constant(made)}({array})")
            return tensor
        known = self.constant(spec, "S") if is_static(spec) else "None"
        self.emit(f"{tensor} = new(Tensor)")
        self.emit(f"{tensor}._buffer = {array}")
        self.emit(f"{tensor}._spec = {known}")
        return tensor


def packer(structure: Any) -> Callable[[tuple[Any, ...]], Any]:
    """A function that makes the structured result of a tuple of tensors."""
    names: dict[str, Any] = {}

    def constant(value: Any) -> str:
        name = f"K{len(names)}"
        names[name] = value
        return name

    indices = [leaf.index for leaf in nest.flatten(structure) if isinstance(leaf, _Result)]
    try:
        tensors = [f"t[{i}]" for i in range(max(indices, default=-1) + 1)]
        source = f"lambda t: {_result_source(structure, tensors, constant)}"
    except _NoPlan:
        return lambda tensors: results_of(structure, tensors)
    made: Callable[[tuple[Any, ...]], Any] = eval(source, names)
    return made


def _result_source(
    structure: Any, tensors: Sequence[str], constant: Callable[[Any], str]
) -> str:
    """The source of the structured result."""

    def inner(part: Any) -> str:
        return _result_source(part, tensors, constant)

    if structure is None:
        return "None"
    if isinstance(structure, _Result):
        return tensors[structure.index]
    if type(structure) in (list, tuple):
        parts = [inner(s) for s in structure]
        if type(structure) is list:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)},)" if parts else "()"
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        parts = [inner(s) for s in structure]
        return f"{constant(type(structure))}({', '.join(parts)})"
    if type(structure) is dict and all(isinstance(k, str | int) for k in structure):
        pairs = [f"{k!r}: {inner(v)}" for k, v in structure.items()]
        return f"{{{', '.join(pairs)}}}"
    raise _NoPlan
