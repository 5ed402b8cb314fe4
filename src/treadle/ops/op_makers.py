"""Makers of op families: one line per elementwise op gives its record and its public function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from treadle.core import dtypes
from treadle.core.devices import HOST
from treadle.core.dtypes import DType
from treadle.core.shapes import broadcast_and_told
from treadle.core.spec import TensorSpec, buffer_spec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.broadcasting import unbroadcast
from treadle.ops.conversion import common_dtype, convert_to_tensor
from treadle.ops.lowering import Compute, elementwise
from treadle.ops.registry import Gradient, Op, OpCall, register, run

Public: TypeAlias = Callable[..., Tensor]
Result: TypeAlias = Callable[[DType], DType]
Lower: TypeAlias = "str | Compute | None"

_KINDS = {
    "f": "floating", "i": "signed integer", "u": "unsigned integer", "b": "bool", "c": "complex",
    "s": "string",
}  # fmt: skip
ANY_KIND = "fiubc"


def same(dtype: DType) -> DType:
    """Result rule: the operands' dtype."""
    return dtype


def boolean(dtype: DType) -> DType:
    """Result rule: bool."""
    return dtypes.bool


def real(dtype: DType) -> DType:
    """Result rule: the dtype of the real part."""
    return dtype.real_dtype


def require_kinds(kinds: str, *specs: TensorSpec) -> None:
    """TypeError unless every dtype is of one of `kinds` and all are equal."""
    for spec in specs:
        if spec.dtype.kind not in kinds:
            listed = ", ".join(_KINDS[k] for k in kinds)
            raise TypeError(f"dtype {spec.dtype.name} is not supported; it must be {listed}")
        if spec.dtype is not specs[0].dtype:
            raise TypeError(f"dtypes {specs[0].dtype.name} and {spec.dtype.name} differ")


def guard(kinds: str, eager: Callable[..., Any]) -> Callable[..., Any]:
    """`eager` for the dtype kinds of the op only: NumPy would accept more, in other dtypes."""
    # NumPy's kind of bfloat16 is V, that of strings O.
    allowed = frozenset(kinds + ("V" if "f" in kinds else "") + ("O" if "s" in kinds else ""))

    def checked(x: NDArray, *rest: Any, **attrs: Any) -> Any:
        if x.dtype.kind not in allowed:
            raise TypeError(f"dtype {x.dtype} is not supported")
        return eager(x, *rest, **attrs)

    return eager if set(ANY_KIND) <= set(kinds) else checked


def inferred(infer: Callable[..., Any], eager: Callable[..., Any]) -> Callable[..., Any]:
    """`eager` for inputs that `infer` takes only: NumPy would accept more, in other shapes or
    dtypes. Strings have forms of their own."""

    def checked(*arrays: NDArray, **attrs: Any) -> Any:
        if not any(array.dtype.kind == "O" for array in arrays):
            infer(*(buffer_spec(array, HOST) for array in arrays), **attrs)
        return eager(*arrays, **attrs)

    return checked


def needs(call: OpCall, position: int) -> bool:
    """Whether the gradient with respect to an input is wanted."""
    return not call.needed or call.needed[position]


def unary_op(
    name: str,
    eager: Callable[..., Any],
    kinds: str,
    lower: Lower,
    gradient: Callable[[Tensor, Tensor, Tensor], Any] | None = None,
    result: Result = same,
    **known: Any,
) -> Op:
    """Register an elementwise op of one input; ``gradient(x, y, dy)`` gives dx.

    `known`: further fields of the record.
    """

    def infer(x: TensorSpec) -> TensorSpec:
        require_kinds(kinds, x)
        return TensorSpec(x.dims, result(x.dtype))

    def grad(call: OpCall, dy: Tensor) -> list[Any]:
        assert gradient is not None
        return [gradient(call.inputs[0], call.outputs[0], dy)]

    rule: Gradient | None = grad if gradient is not None else None
    return register(Op(name, infer, guard(kinds, eager), rule, _lowering(lower), **known))


def binary_op(
    name: str,
    eager: Callable[..., Any],
    kinds: str,
    lower: Lower,
    gradient: Callable[[Tensor, Tensor, Tensor, Tensor], Any] | None = None,
    result: Result = same,
    every: bool = False,
    **known: Any,
) -> Op:
    """Register an elementwise op of two inputs that broadcast.

    ``gradient(x, y, z, dz)`` gives two functions that compute dx and dy in z's shape (or None).
    `every`: its result tells all sizes that may differ. `known`: further fields of the record.
    """

    def infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        require_kinds(kinds, x, y)
        return TensorSpec(broadcast_and_told(x.dims, y.dims, every=every), result(x.dtype))

    def grad(call: OpCall, dz: Tensor) -> list[Any]:
        assert gradient is not None
        x, y = call.inputs
        parts = gradient(x, y, call.outputs[0], dz)
        return [
            unbroadcast(part(), operand) if part is not None and needs(call, i) else None
            for i, (part, operand) in enumerate(zip(parts, call.inputs, strict=True))
        ]

    rule: Gradient | None = grad if gradient is not None else None
    return register(Op(name, infer, guard(kinds, eager), rule, _lowering(lower), **known))


def _lowering(lower: Lower) -> Compute | None:
    return elementwise(lower) if isinstance(lower, str) else lower


def unary(op: Op, doc: str) -> Public:
    """The public function of an op of one tensor."""

    def function(x: Any, name: str | None = None) -> Tensor:
        return run(op, convert_to_tensor(x))  # type: ignore[no-any-return]

    return _named(function, op.name, doc)


def binary(op: Op, doc: str) -> Public:
    """The public function of an op of two tensors; a Python number takes the tensor's dtype."""

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        a, b = common_dtype(op.name, x, y)
        return run(op, a, b)  # type: ignore[no-any-return]

    return _named(function, op.name, doc)


def _named(function: Public, name: str, doc: str) -> Public:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
