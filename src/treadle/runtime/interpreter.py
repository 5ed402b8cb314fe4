"""The reference interpreter: runs a graph node by node with the ops' NumPy implementations.

It is the oracle for passes and compiled programs, and the fallback where nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core import errors
from treadle.core.arrays import string_array
from treadle.core.context import context, recount
from treadle.core.interrupts import QUIET, numpy_errors
from treadle.core.origin import at, failed_at
from treadle.core.spec import ResourceSpec, TensorSpec, array_spec, spec_text
from treadle.core.tensor import from_array
from treadle.graph.ir import Graph, Node, Region, Value
from treadle.ops.collections.iterators import release_iterators
from treadle.ops.lowering import Structure
from treadle.ops.registry import computed, is_too_large
from treadle.ops.state import Variable
from treadle.runtime.scope import Scope

# What NumPy raises for operands it cannot handle.
_WRAPPED = (
    errors.OpError, ValueError, TypeError, ArithmeticError, IndexError, MemoryError, RuntimeError,
)  # fmt: skip

# What a graph value is while it runs: an ndarray, a Variable behind a handle, or a list value.
Runtime = Any


def run(graph: Graph, arrays: Sequence[Runtime], *, check_numerics: bool = False) -> list[Runtime]:
    """Run `graph` and return its results.

    Args:
        arrays: a value for every parameter, captures included: ndarrays, and Variables for
            resource handles.
        check_numerics: raise InvalidArgumentError at the first op that gives a NaN or infinity.

    Raises:
        InvalidArgumentError: an argument does not fit its parameter, or an op fails; the message
            names the op, the shapes and the user's line.
    """
    if len(arrays) != len(graph.params):
        raise errors.InvalidArgumentError(
            None, None, f"{graph.name} takes {len(graph.params)} values, got {len(arrays)}"
        )
    values = [_argument(graph, p, a) for p, a in zip(graph.params, arrays, strict=True)]
    interpreter = _Interpreter(check_numerics)
    outside = context.recorder, context.tapes, context.places
    before = numpy_errors.get()
    try:
        context.recorder, context.tapes, context.places = None, (), ()
        recount()
        numpy_errors.set(QUIET)
        return interpreter.region(graph, values, Scope())
    except BaseException:
        release_iterators(graph)
        raise
    finally:
        context.recorder, context.tapes, context.places = outside
        numpy_errors.set(before)
        recount()


def _argument(graph: Graph, param: Value, value: Runtime) -> Runtime:
    """`value` as what the parameter takes; its dtype is checked here, its shape when bound."""
    spec = param.spec
    if isinstance(spec, ResourceSpec):
        fits = isinstance(value, Variable) and value.dtype is spec.dtype
        given = repr(value)
    elif isinstance(spec, TensorSpec):
        value = np.asarray(value)
        fits = value.dtype == spec.dtype.np_dtype
        given = f"an array of dtype {value.dtype} and shape {value.shape}"
    else:
        return value
    if not fits:
        raise errors.InvalidArgumentError(
            None, None, f"{graph.name}: %{param.name} takes {spec_text(spec)}, got {given}"
        )
    return value


class _Interpreter:
    def __init__(self, check_numerics: bool) -> None:
        self.check_numerics = check_numerics

    def region(self, region: Region, args: Sequence[Runtime], scope: Scope) -> list[Runtime]:
        """Run a region on the values of its parameters."""
        env: dict[Value, Runtime] = {}
        for param, arg in zip(region.params, args, strict=True):
            _bind(scope, param, arg)
            env[param] = arg
        for node in region.nodes:
            inputs = [env[v] for v in node.inputs]
            outputs = self.node(node, inputs, scope)
            for value, result in zip(node.outputs, outputs, strict=True):
                env[value] = result
        return [env[v] for v in region.results]

    def node(self, node: Node, inputs: list[Runtime], scope: Scope) -> list[Runtime]:
        """The outputs of one node."""
        lower = node.op.lower
        structured = _STRUCTURED.get(lower) if isinstance(lower, Structure) else None
        if structured is not None:
            outputs = structured(self, node, inputs, scope)
        else:
            outputs = _run_op(node, inputs, scope)
        try:
            for value, result in zip(node.outputs, outputs, strict=True):
                _bind(scope, value, result)
        except errors.OpError as error:
            raise _failure(node, inputs, error) from None
        if self.check_numerics and node.inputs:  # a constant may well be infinite
            _check_finite(node, inputs, outputs)
        return outputs

    def cond(self, node: Node, inputs: list[Runtime], scope: Scope) -> list[Runtime]:
        branch = node.regions[0 if inputs[0] else 1]
        return self.region(branch, inputs[1:], scope.child())

    def loop(self, node: Node, inputs: list[Runtime], scope: Scope) -> list[Runtime]:
        condition, body = node.regions
        count = len(body.results)
        carried, invariant = inputs[:count], inputs[count:]
        while self.region(condition, [*carried, *invariant], scope.child())[0]:
            carried = self.region(body, [*carried, *invariant], scope.child())
        return carried

    def size(self, node: Node, inputs: list[Runtime], scope: Scope) -> list[Runtime]:
        """Its attributes mention the symbol that the result tells."""
        return [np.zeros(int(inputs[0]), np.bool_)]


_STRUCTURED = {
    Structure.COND: _Interpreter.cond,
    Structure.WHILE: _Interpreter.loop,
    Structure.SIZE: _Interpreter.size,
}


def _bind(scope: Scope, value: Value, actual: Runtime) -> None:
    if isinstance(value.spec, TensorSpec):
        scope.bind(value.spec, actual.shape)
    elif isinstance(value.spec, ResourceSpec) and value.spec.has_rank:
        scope.bind(value.spec, actual.current_spec.dims)


def _run_op(node: Node, inputs: list[Runtime], scope: Scope) -> list[Runtime]:
    """One plain op through its NumPy implementation."""
    op = node.op
    try:
        if op.lower is Structure.READ:
            return [_read(inputs[0])]
        if op.lower is Structure.ASSIGN:
            inputs[0]._assign_now(from_array(inputs[1]))
            return []
        if op.eager is None:
            raise errors.UnimplementedError(None, op, f"{op.name} has no NumPy implementation")
        attrs = {name: scope.resolve(attr) for name, attr in node.attrs.items()}
        result = computed(op, inputs, attrs)
    except _WRAPPED as error:  # a Python callback's own exceptions pass unchanged
        if isinstance(error, RuntimeError) and op.effect is not None:
            raise
        if "raises" in op.tags:  # what the user's ``raise`` says
            raise failed_at(node.origin, error) from None
        raise _failure(node, inputs, error) from error
    outputs = result if isinstance(result, tuple) else (result,)
    if len(outputs) != len(node.outputs):  # an op without outputs returns None or ()
        outputs = ()
    try:
        return [_as_value(node, v, r) for v, r in zip(node.outputs, outputs, strict=True)]
    except MemoryError as error:
        raise _failure(node, inputs, error) from error


def _read(variable: Variable) -> Runtime:
    """A snapshot: the variable copies its buffer before it next writes in place."""
    return variable._numpy()


def _as_value(node: Node, value: Value, result: Any) -> Runtime:
    """An op's result in the inferred dtype; an op that breaks its own rule is our bug."""
    if not isinstance(value.spec, TensorSpec):
        return result
    array = result if isinstance(result, np.ndarray) else _as_array(result)
    if array.dtype != value.spec.dtype.np_dtype:
        raise errors.InternalError(
            None,
            node.op,
            f"{node.op.name} gave dtype {array.dtype} where its shape rule says "
            f"{value.spec.dtype.name}{at(node.origin)}",
        )
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _as_array(result: Any) -> Any:
    return string_array(result) if type(result) is bytes else np.asarray(result)


def _failure(node: Node, inputs: Iterable[Runtime], error: Exception) -> Exception:
    """The exception to raise for a node that failed: TF's type, the op, the shapes, the line."""
    message = error.message if isinstance(error, errors.OpError) else str(error)
    kind = type(error) if isinstance(error, errors.OpError) else errors.InvalidArgumentError
    if isinstance(error, MemoryError) or is_too_large(error):
        kind = errors.ResourceExhaustedError
    operands = ", ".join(map(_describe, inputs))
    what = "" if "speaks_for_caller" in node.op.tags else f"{node.op.name}({operands}): "
    text = f"{what}{message}{at(node.origin)}"
    return failed_at(node.origin, kind(None, node.op, text))


def _describe(value: Runtime) -> str:
    if isinstance(value, np.ndarray):
        return spec_text(array_spec(value))
    return spec_text(value.spec) if isinstance(value, Variable) else repr(value)


def _check_finite(node: Node, inputs: Sequence[Runtime], outputs: Sequence[Runtime]) -> None:
    for number, array in enumerate(outputs):
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fcV":
            continue
        finite = np.isfinite(array)
        if not finite.all():
            raise _not_finite(node, inputs, number, array, finite)


def _not_finite(
    node: Node, inputs: Sequence[Runtime], number: int, array: Any, finite: Any
) -> errors.InvalidArgumentError:
    first = tuple(int(i) for i in np.argwhere(~finite)[0])
    what = "NaN" if np.isnan(array[first]) else "infinity"
    which = f" (output {number})" if len(node.outputs) > 1 else ""
    operands = ", ".join(map(_describe, inputs))
    text = (
        f"{node.op.name}({operands}){which} gave {what} at index {list(first)}, "
        f"{int(np.size(finite) - np.count_nonzero(finite))} of {finite.size} elements are not "
        f"finite{at(node.origin)}"
    )
    return failed_at(node.origin, errors.InvalidArgumentError(None, node.op, text))
