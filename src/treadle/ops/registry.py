"""The op registry: one record per op, for eager execution, tracing, gradients and lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.arrays import string_array
from treadle.core.context import beginning, context, home, placed, ran, tell_watchers
from treadle.core.devices import HOST, Device
from treadle.core.interrupts import QUIET, numpy_errors
from treadle.core.list_value import ListValue
from treadle.core.origin import at, user_origin
from treadle.core.records import record
from treadle.core.refusals import NotYetKnown
from treadle.core.spec import Spec, TensorSpec, spec_text
from treadle.core.tensor import (
    DeviceTensor,
    StringTensor,
    Tensor,
    from_array,
    from_buffer,
    is_drawn,
    moved,
)
from treadle.ops.lowering import Compute, Library, Lowering, ProgramLoops, Rows
from treadle.ops.properties import (
    Neutral,
    OnDims,
    Part,
    PartKind,
    PartUse,
    Refusal,
    Relation,
    SameElements,
)
from treadle.ops.quiet import quiet
from treadle.ops.sizes import Sizes

Infer: TypeAlias = "Callable[..., Spec | tuple[Spec, ...]]"
Gradient: TypeAlias = "Callable[..., Sequence[Any] | Any]"
Batch: TypeAlias = "Callable[[Any], Any]"
Routines: TypeAlias = "Callable[[Op, Sequence[Any], Mapping[str, Any]], tuple[Any, ...] | None]"
OnDevice: TypeAlias = (
    "Callable[[Op, Sequence[Any], Mapping[str, Any], Device], tuple[Tensor, ...] | None]"
)


class OpCall(NamedTuple):
    """One executed or traced operation, as gradient rules see it."""

    op: Op
    inputs: tuple[Any, ...]  # Tensors and Variables
    attrs: Mapping[str, Any]
    outputs: tuple[Tensor, ...]
    needed: tuple[bool, ...] = ()  # which inputs' gradients are wanted; empty: all


@record(frozen=True, eq=False)
class Op:
    """Everything known about an op.

    Attributes:
        name: unique, snake case; what the graph printer shows.
        infer: ``infer(*input_specs, **attrs)`` gives the output spec, or a tuple of them; raises
            TypeError or InvalidArgumentError for what the op does not accept.
        eager: ``eager(*ndarrays, **attrs)`` computes with NumPy, exactly in the inferred dtype.
            It is the reference for the compiler. None only for ops that own regions.
        gradient: ``gradient(call, *output_grads)`` gives one gradient per input (None where there
            is none), written with public ops so that it can be traced and differentiated again.
            None: the op is not differentiable and stops gradients; see `no_gradient`.
        lower: how the compiler implements the op (see `treadle.ops.lowering`); None means that
            compiled programs call back into `eager`.
        parts: ``parts(call)`` computes the op on complex numbers from their real and imaginary
            parts (see `treadle.ops.complex_parts`); None: complex numbers are given to `eager`.
        effect: None for pure ops; "random", "read", "write" or "io" keep program order and are
            neither dropped nor merged ("read" may be dropped).
        tags: further properties, each a word of `treadle.ops.properties.TAGS`.
        sizes: pairs of dims that the op needs to be equal and whose equality `infer` cannot tell
            where they are symbols (see `treadle.ops.sizes`).
        sizes_differ: what is said where two of them differ, with places for both.
        regions: the names of the regions that the op's nodes own, as the printer shows them.
        part: which part of an array the op works on, and what it does with it.
        refuses: what the op refuses when it runs.
        relation: what a comparison asks.
        neutral: the numbers that change nothing as one of its two operands.
        on_dims: the op on sizes: programs know integers as dims where they can.
        same_elements: where the result has the elements of the first input, in the same order.
        of_nothing: ``of_nothing(dtype)``, for a reduction: the number that changes nothing in it.
        batch: ``batch(call)`` computes the op for all examples of a batch at once; `call` is a
            `treadle.ops.batching.call.BatchedCall`. The results have the examples along a new first
            axis, unless they are wrapped in `Same`. None: families of ops share rules (see
            `treadle.ops.batching.families`), others are run example by example.
        onnx: ``onnx(call)`` writes the op with ONNX's operators; `call` is a
            `treadle.ops.onnx.call.OnnxCall`. `treadle.onnx` gives ops these forms when it is
            imported. None: ONNX has no counterpart.
        callback: why compiled programs call `eager`, where they do; see `why_called`.
        no_gradient: why it has none, where its tags and the dtypes of its inputs and results do
            not tell (docs/ops.md shows it).
        takes_variables: whether variables among its inputs are read: a tape looks for those that
            it watches.
    """

    _original_op: ClassVar[None] = None  # TensorFlow's test cases ask an error's `op` for it

    name: str
    infer: Infer
    eager: Callable[..., Any] | None = None
    gradient: Gradient | None = None
    lower: Lowering | None = None
    effect: str | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
    sizes: Sizes | None = None
    sizes_differ: str = "sizes {} and {} of the operands differ"
    parts: Callable[..., Any] | None = None
    regions: tuple[str, ...] = ()
    part: Part | None = None
    refuses: Refusal | None = None
    relation: Relation | None = None
    neutral: Neutral | None = None
    on_dims: OnDims | None = None
    same_elements: SameElements | None = None
    of_nothing: Callable[[np.dtype[Any]], Any] | None = None
    batch: Batch | None = None
    onnx: Callable[[Any], Any] | None = None
    callback: str | None = None
    no_gradient: str | None = None
    takes_variables: bool = False

    @property
    def runs_user_code(self) -> bool:
        """Whether it calls Python code of the user, which may use any variable."""
        return self.effect == "io" and "quiet" not in self.tags and "asserts" not in self.tags

    @property
    def is_elementwise(self) -> bool:
        """Whether programs compute each element of its result from those at the same place of its
        operands, which broadcast."""
        return isinstance(self.lower, Compute) and self.lower.kind == "elementwise"

    @property
    def why_called(self) -> str | None:
        """Why compiled programs call `eager`, where they do."""
        if self.callback is None and "strings" in self.tags:
            return "strings are objects of Python"
        return self.callback

    @property
    def takes_strings(self) -> bool:
        """Whether its inputs or outputs may be strings."""
        return not self.tags.isdisjoint(_ON_STRINGS)

    def __repr__(self) -> str:
        return f"Op({self.name})"


_ON_STRINGS = frozenset({"any_elements", "strings", "control_flow"})

OPS: dict[str, Op] = {}
_BY_ROUTINE: set[Op] = set()  # ops for whose eager execution there may be a routine
_AS_PROGRAM: dict[Op, int] = {}  # ops that may be programs; from which of `large.elements` on
_ndarray = np.ndarray
_NOT_WORTH = frozenset({"alias", "as_is", "dynamic"})
_ON_PARTS: dict[tuple[PartKind, PartUse], Op] = {}


def register(op: Op) -> Op:
    """Add an op to the registry; ValueError for a name that is taken."""
    if op.name in OPS:
        raise ValueError(f"Op {op.name!r} is registered twice")
    OPS[op.name] = op
    if op.part is not None:
        _ON_PARTS[op.part.kind, op.part.use] = op
    if isinstance(op.lower, Rows) and op.lower.eagerly:
        _BY_ROUTINE.add(op)
    lower = op.lower
    if op.effect is None and op.eager is not None and _NOT_WORTH.isdisjoint(op.tags):
        if isinstance(lower, Library | ProgramLoops | Rows) and op not in _BY_ROUTINE:
            _AS_PROGRAM[op] = 0
        elif isinstance(lower, Compute) and not (lower.kind == "view" and "cheap" in op.tags):
            many = "formula" in op.tags or (lower.kind == "reduce" and "reduces" not in op.tags)
            _AS_PROGRAM[op] = 2 if "draws" in op.tags else int(many)
    return op


def is_program(op: Op) -> bool:
    """Whether eager operations of an op may be programs."""
    return op in _AS_PROGRAM


def many_calls(op: Op) -> bool:
    """Whether the NumPy form of an op that may be a program makes many calls: it is a formula, or
    no reduction of NumPy's, but contains some."""
    return _AS_PROGRAM[op] == 1


def op_on_part(kind: PartKind, use: PartUse) -> Op:
    """The op that does this with a part of an array; KeyError where there is none."""
    return _ON_PARTS[kind, use]


_routines: list[Routines] = []


def set_routines(routines: Routines) -> None:
    """Give eager execution routines: ``routines(op, arrays, attrs)`` gives the results of an op, or
    None where NumPy is to compute them."""
    _routines[:] = [routines]


def computed(op: Op, arrays: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What eager execution computes from arrays: by a routine, where NumPy's form is slow."""
    if op in _BY_ROUTINE and _routines:
        found = _routines[0](op, arrays, attrs)
        if found is not None:
            return found[0] if len(found) == 1 else found
    assert op.eager is not None
    return op.eager(*arrays, **attrs)


class _Large:
    """Eager execution of operations that may be programs, on arrays with many elements.

    Attributes:
        elements: from how many on of an operand `run` is asked: of ops that are about one call of
            NumPy, and of those whose NumPy form makes tens of calls. So few are not worth a program
            on any machine; what `run` knows of the machine takes their place. What draws random
            numbers tells by no operand how many there will be, and always asks.
        run: ``run(op, arrays, attrs)`` gives the result, a tuple of several, or None where NumPy is
            to compute it.
    """

    def __init__(self) -> None:
        self.elements = (1001, 101, 0)
        self.run: Callable[[Op, Sequence[Any], Mapping[str, Any]], Any] = lambda *call: None


large = _Large()
_on_devices: list[OnDevice] = []


def set_device_execution(execution: OnDevice) -> None:
    """Give eager execution on devices: ``execution(op, inputs, attrs, device)`` gives the results
    of an op there, or None where NumPy is to compute them on the host."""
    _on_devices[:] = [execution]


def set_gradient(op: Op, rule: Gradient) -> None:
    """Give an op its gradient rule from a layer above: that of ``cond`` and ``while``.

    Raises:
        ValueError: the op has one.
    """
    _tell("gradient", rule, (op,), "a gradient")


def set_parts(rule: Callable[..., Any], *ops: Op) -> None:
    """Tell how ops work on the parts of complex numbers.

    Raises:
        ValueError: it is known of one of them.
    """
    _tell("parts", rule, ops, "a rule for the parts of complex numbers")


def set_batching(rule: Batch, *ops: Op) -> None:
    """Tell how ops are computed for a batch of examples.

    Raises:
        ValueError: it is known of one of them.
    """
    _tell("batch", rule, ops, "a batching rule")


def set_onnx(form: Callable[[Any], Any], *ops: Op) -> None:
    """Tell how ops are written in ONNX.

    Raises:
        ValueError: it is known of one of them.
    """
    _tell("onnx", form, ops, "a form in ONNX")


def _tell(field: str, rule: Any, ops: Sequence[Op], what: str) -> None:
    """Set a field of ops that is None."""
    for op in ops:
        if getattr(op, field) is not None:
            raise ValueError(f"{op.name} has {what}")
        object.__setattr__(op, field, rule)


def add_tag(tag: str, *ops: Op) -> None:
    """Give ops one more tag."""
    for op in ops:
        object.__setattr__(op, "tags", op.tags | {tag})


def infer_outputs(op: Op, specs: Sequence[Spec], attrs: Mapping[str, Any]) -> tuple[Spec, ...]:
    """The output specs, with the op, its inputs and the user's line added to any error."""
    try:
        result = op.infer(*specs, **attrs)
    except errors.OpError as error:
        raise type(error)(None, op, _explain(op, specs, error.message)) from None
    except TypeError as error:
        raise errors.DtypeError(None, op, _explain(op, specs, str(error))) from None
    except NotYetKnown as error:
        raise NotYetKnown(_explain(op, specs, str(error)), error.dim) from None
    except ValueError as error:
        raise errors.InvalidArgumentError(None, op, _explain(op, specs, str(error))) from None
    outputs = result if isinstance(result, tuple) else (result,)
    if not op.takes_strings:
        for spec in (*specs, *outputs):
            if spec.dtype is dtypes.string:
                text = _explain(op, specs, "it does not work on strings")
                raise errors.DtypeError(None, op, text)
    if op.sizes is not None:
        _check_sizes(op, specs, outputs, attrs)
    return outputs


def _check_sizes(
    op: Op, specs: Sequence[Spec], outputs: Sequence[Spec], attrs: Mapping[str, Any]
) -> None:
    """Refuse sizes that are known and do not fit."""
    assert op.sizes is not None
    for a, b in op.sizes(specs, outputs, attrs):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            text = _explain(op, specs, f"sizes {a} and {b} of the operands differ")
            raise errors.InvalidArgumentError(None, op, text)


def _explain(op: Op, specs: Sequence[Spec], message: str) -> str:
    if "speaks_for_caller" in op.tags:  # the message names the call that the user wrote
        return f"{message}{at(user_origin())}"
    inputs = ", ".join(spec_text(s) for s in specs)
    return f"{op.name}({inputs}): {message}{at(user_origin())}"


def run(op: Op, *inputs: Any, **attrs: Any) -> Any:
    """Execute or trace an op. Inputs are Tensors (already converted) or Variables.

    Returns a Tensor, or a tuple of Tensors where the op has several outputs.
    """
    counted = context.counted
    if not counted:
        outputs = _run_eagerly(op, inputs, attrs)
    elif counted == 1 and context.tapes:  # and nothing else is at work
        outputs = _run_eagerly(op, inputs, attrs)
        for tape in context.tapes:
            tape.record(op, inputs, attrs, outputs)
    else:
        if context.recorder is None:
            device = placed() or _unplaced(op, inputs, attrs)
            since = beginning()
            outputs = _run_eagerly(op, inputs, attrs, device)
            there = outputs[0].spec.device if outputs else HOST
            ran(op.name, there)
            tell_watchers(op.name, there, since, (inputs, outputs))
        else:
            outputs = context.recorder.record(op, inputs, attrs)
        for tape in context.tapes:
            tape.record(op, inputs, attrs, outputs)
    return outputs[0] if len(outputs) == 1 else outputs


def _unplaced(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Device:
    """Where an operation in no scope runs: on the host where it has effects or takes a variable or
    list, and `home` where all of its tensors are on the host and one of them, or of its results, is
    drawn there. (`_run_eagerly` follows operands from the host to other devices.)"""
    device = home()
    if device is HOST or op.effect is not None:
        return HOST
    specs = [x.spec for x in inputs]
    if any(type(spec) is not TensorSpec or spec.device is not HOST for spec in specs):
        return HOST
    if any(is_drawn(spec.dtype) for spec in specs):
        return device
    try:
        results = infer_outputs(op, specs, attrs)
    except Exception:
        return HOST  # whose error says why
    return device if any(is_drawn(s.dtype) for s in results if type(s) is TensorSpec) else HOST


def run_with_regions(
    op: Op, inputs: Sequence[Any], regions: Sequence[Any], **attrs: Any
) -> tuple[Tensor, ...]:
    """Trace an op that owns regions (``cond``, ``while``)."""
    assert context.recorder is not None
    outputs = context.recorder.record(op, inputs, attrs, regions)
    for tape in context.tapes:
        tape.record(op, inputs, attrs, outputs)
    return outputs


def _run_eagerly(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], device: Device = HOST
) -> tuple[Tensor, ...]:
    """The NumPy implementation on the inputs' elements. The results are on the device of the
    innermost scope; outside of scopes on that of the first input that is not on the host. Inputs
    from elsewhere are copied, as TensorFlow does silently.

    Args:
        device: that of the scope, where it is not the host.
    """
    if op.eager is None:
        raise errors.UnimplementedError(None, op, f"{op.name} runs only inside a function")
    try:
        if device is not HOST and inputs and (made := _on_device(op, inputs, attrs, device)):
            return made
        arrays = []
        for t in inputs:
            if type(t) is Tensor:
                arrays.append(t._buffer)
            else:
                if type(t) is StringTensor and not op.takes_strings:
                    raise TypeError("it does not work on strings")
                if type(t) is DeviceTensor and device is HOST and placed() is None:
                    device = t.spec.device
                    if made := _on_device(op, inputs, attrs, device):
                        return made
                arrays.append(t._numpy())
                device = t.spec.device if device is HOST else device
        kind = _AS_PROGRAM.get(op)
        if kind is not None:
            result, least = None, large.elements[kind]
            for a in arrays:
                if a.size >= least:
                    result = large.run(op, arrays, attrs) if device is HOST else None
                    break
            if result is None:
                result = quiet.call(op.eager, *arrays, **attrs)
        elif op in _BY_ROUTINE:
            result = quiet.call(computed, op, arrays, attrs)
        elif op.effect is None:
            result = quiet.call(op.eager, *arrays, **attrs)
        else:  # may run the user's Python, which must see its own context
            before = numpy_errors.get()
            try:
                numpy_errors.set(QUIET)
                result = op.eager(*arrays, **attrs)
            finally:
                numpy_errors.set(before)
        if device is not HOST and (device := placed() or device) is not HOST:
            results = result if type(result) is tuple else (result,)
            return tuple(_wrap(r, device) for r in results)
        if type(result) is tuple:
            return tuple(_wrap(r) for r in result)
        return (from_array(result) if type(result) is _ndarray else _wrap(result),)
    except Exception as error:
        raise _eager_failure(op, inputs, attrs, error) from None


def _on_device(
    op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any], device: Device
) -> tuple[Tensor, ...] | None:
    """The results of an op as a device computes them; None where NumPy is to compute them."""
    return _on_devices[0](op, inputs, attrs, device) if _on_devices else None


def _wrap(result: Any, device: Device = HOST) -> Tensor:
    """What a NumPy implementation gave as a tensor on a device; lists remain on the host."""
    if isinstance(result, ListValue):
        return from_buffer(result)
    if type(result) is bytes:  # an element of an array of strings
        result = string_array(result)
    return moved(from_array(np.asarray(result)), device)


def is_too_large(error: Exception) -> bool:
    """Whether NumPy refuses an array of more bytes than it can count, which no memory has."""
    if isinstance(error, errors.OpError):
        return False
    words = ("too large", "too big", "Maximum allowed", "dimension size exceeded")
    kinds = ValueError, OverflowError
    return isinstance(error, kinds) and any(word in str(error) for word in words)


def _eager_failure(op: Op, inputs: Sequence[Any], attrs: Any, error: Exception) -> Exception:
    """The error to raise when the NumPy code failed: what the shape rule says, if it objects."""
    if any(getattr(t, "is_symbolic", False) for t in inputs):
        return error  # a symbolic tensor outside its trace explains itself
    specs = [t.spec for t in inputs]
    try:
        infer_outputs(op, specs, attrs)
    except Exception as explained:
        return explained
    if isinstance(error, MemoryError) or is_too_large(error):
        return errors.ResourceExhaustedError(None, op, _explain(op, specs, str(error)))
    if isinstance(error, errors.OpError):
        return type(error)(None, op, _explain(op, specs, error.message))
    return errors.InvalidArgumentError(None, op, _explain(op, specs, str(error)))
