"""How ops work on the real and imaginary parts of complex numbers.

Compiled programs compute with parts: a pass (`graph.passes.complex_parts`) replaces every op on
complex tensors by what its record's `parts` says, ops on real tensors (`ops.complex_pairs`). Most
ops do the same to each part; functions of complex numbers are ops of their own with two outputs,
whose kernels `ops.elementwise.complex_functions` writes down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.shapes import broadcast, product
from treadle.core.spec import TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Expr
from treadle.ops import broadcasting, conversion, dims, requirements  # noqa: F401  (the ops that have rules)
from treadle.ops.broadcasting import broadcast_dims
from treadle.ops.complex_pairs import Pair, PartsCall, Rule, each, first, moved, of_parts
from treadle.ops.elementwise import (  # noqa: F401
    arithmetic,
    casting,
    comparison,
    complex_numbers,
    selection,
    unary,
)
from treadle.ops.elementwise import complex_functions as functions
from treadle.ops.elementwise.arithmetic import atan2
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import not_equal
from treadle.ops.elementwise.logic import logical_and, logical_or
from treadle.ops.indexing import basic, gather, index, scatter, updates  # noqa: F401
from treadle.ops.linalg import matrices  # noqa: F401
from treadle.ops.lowering import LowerCall, elementwise_rule
from treadle.ops.reductions import reduction, scan  # noqa: F401
from treadle.ops.registry import OPS, Op, add_tag, register, run, set_parts
from treadle.ops.shaping import (  # noqa: F401
    creation,
    joining,
    padding,
    permuting,
    reshaping,
    slicing,
)
from treadle.ops.shaping.creation import ones_like, zeros_like
from treadle.ops.shaping.joining import concat
from treadle.ops.shaping.permuting import permute
from treadle.ops.shaping.reshaping import reshape_to

# -- functions: ops with two outputs -------------------------------------------------------------


def _function(op: Op, build: Callable[..., Any], real_result: bool = False) -> Op:
    """Register the op on parts that computes `op`, and make it the rule for parts."""

    def infer(*parts: TensorSpec) -> Any:
        spec = TensorSpec(broadcast(*(p.dims for p in parts)), parts[0].dtype)
        return spec if real_result else (spec, spec)

    def eager(*arrays: NDArray) -> Any:
        assert op.eager is not None
        result = np.asarray(op.eager(*functions.joined(arrays)))
        if real_result:
            return result
        return result.real.copy(), result.imag.copy()

    def element(call: LowerCall, *parts: Expr) -> Expr:
        result = build(*functions.parts_of(parts))
        return (result if real_result else result[call.which]).expr  # type: ignore[no-any-return]

    on_parts = register(Op(f"complex_{op.name}", infer, eager, None, elementwise_rule(element)))

    def rule(call: PartsCall) -> Any:
        result = run(on_parts, *(part for pair in call.inputs for part in pair))
        return result if real_result else Pair(*result)

    set_parts(rule, op)
    return on_parts


def _times(z: Any, w: Any) -> Any:
    return z * w


def _over(z: Any, w: Any) -> Any:
    return z / w


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "multiply": _times, "divide": _over, "pow": functions.power,
    "squared_difference": functions.squared_difference,
    "divide_no_nan": functions.divide_no_nan,
} | {
    name: getattr(functions, name)
    for name in (
        "sign", "square", "sqrt", "rsqrt", "reciprocal", "exp", "expm1", "log", "log1p", "sin",
        "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        "sigmoid",
    )
}  # fmt: skip


# -- other rules ---------------------------------------------------------------------------------


def _join(call: PartsCall) -> Pair:
    real, imag = (broadcast_dims(x, call.outputs[0].dims) for x in call.inputs)
    return Pair(real, imag)


def _real(call: PartsCall) -> Tensor:
    return call.inputs[0].real  # type: ignore[no-any-return]


def _imag(call: PartsCall) -> Tensor:
    return call.inputs[0].imag  # type: ignore[no-any-return]


def _conj(call: PartsCall) -> Pair:
    real, imag = call.inputs[0]
    return Pair(real, -imag)


def _angle(call: PartsCall) -> Tensor | None:
    (pair,) = call.inputs
    return atan2(pair.imag, pair.real)


def _is_nonzero(x: Pair) -> Tensor:
    return logical_or(not_equal(x.real, 0), not_equal(x.imag, 0))


def _cast(call: PartsCall) -> Any:
    (x,), target = call.inputs, call.attrs["dtype"]
    if not isinstance(x, Pair):
        real = cast(x, target.real_dtype)
        return Pair(real, zeros_like(real))
    if target.is_bool:
        return _is_nonzero(x)
    if not target.is_complex:
        return cast(x.real, target)
    return Pair(cast(x.real, target.real_dtype), cast(x.imag, target.real_dtype))


def _equal(call: PartsCall) -> Tensor:
    x, y = call.inputs
    merge = logical_and if call.op.name == "equal" else logical_or
    return merge(run(call.op, x.real, y.real), run(call.op, x.imag, y.imag))


def _const(call: PartsCall) -> Pair:
    value = call.attrs["value"]
    return Pair(
        run(call.op, value=np.ascontiguousarray(value.real).reshape(value.shape)),
        run(call.op, value=np.ascontiguousarray(value.imag).reshape(value.shape)),
    )


def _pad(call: PartsCall) -> Pair:
    (x,), value = call.inputs, complex(call.attrs["value"])
    real, imag = (
        run(call.op, part, **{**call.attrs, "value": number})
        for part, number in zip(x, (value.real, value.imag), strict=True)
    )
    return Pair(real, imag)


def _eye(call: PartsCall) -> Pair:
    ones = run(call.op, **{k: of_parts(v) for k, v in call.attrs.items()})
    return Pair(ones, zeros_like(ones))


def _nonzero(call: PartsCall) -> Tensor:
    return run(call.op, _is_nonzero(call.inputs[0]))  # type: ignore[no-any-return]


def _matmul(call: PartsCall) -> Pair:
    """Four real products."""
    (a, b), (c, d) = call.inputs

    def product(x: Tensor, y: Tensor) -> Any:
        return run(call.op, x, y, **call.attrs)

    return Pair(product(a, c) - product(b, d), product(a, d) + product(b, c))


def _prod(call: PartsCall) -> Pair | None:
    """Products of halves until one element is left; None where the number is not known."""
    (x,), axes = call.inputs, call.attrs["axis"]
    count = product(x.real.dims[a] for a in axes)
    if not isinstance(count, int):
        return None
    kept = [a for a in range(x.real.ndim) if a not in axes]
    shape = (count, *(x.real.dims[a] for a in kept))
    rows = Pair(*(reshape_to(permute(part, [*axes, *kept]), shape) for part in x))
    if not count:
        one = ones_like(run(OPS["reduce_sum"], x.real, **call.attrs))
        return Pair(one, zeros_like(one))
    while count > 1:
        half = count // 2
        low, high, rest = (
            Pair(*(part[place] for part in rows))
            for place in (slice(half), slice(half, 2 * half), slice(2 * half, count))
        )
        found = run(OPS["complex_multiply"], *low, *high)
        odd = count % 2
        rows = Pair(*(concat([p, r], 0) if odd else p for p, r in zip(found, rest, strict=True)))
        count = half + odd
    return Pair(*(reshape_to(part, call.outputs[0].dims) for part in rows))


def define() -> Op:
    """Put the rules on the records of the ops; gives the op of magnitudes."""
    for name, build in _FUNCTIONS.items():
        _function(OPS[name], build)
    magnitude = _function(OPS["abs"], functions.magnitude, real_result=True)
    for rule, names in _RULES.items():
        set_parts(rule, *(OPS[n] for n in names.split()))
    # Kernels move complex numbers as they join them and take them apart.
    add_tag("complex_parts", *(OPS[n] for n in _RULES[moved].split()))
    return magnitude


_RULES: dict[Rule, str] = {
    each: """
        add subtract add_n negative identity stop_gradient where fill
        index_grad index_update slice_update sum_to strided_slice_grad
        dynamic_slice dynamic_slice_grad dynamic_slice_update scatter_nd
        tensor_scatter_nd_update tensor_scatter_nd_add unsorted_segment_sum expand_masked
        reduce_sum reduce_mean cumsum
        """,
    moved: """
        broadcast_to concat ensure_shape gather gather_nd index reshape reverse stack
        strided_slice transpose require_sizes of_size
        """,
    first: "shape dim",
    _join: "complex", _real: "real", _imag: "imag", _conj: "conj", _angle: "angle", _cast: "cast",
    _equal: "equal not_equal", _const: "const", _eye: "eye", _pad: "pad", _nonzero: "nonzero",
    _matmul: "matmul", _prod: "reduce_prod",
}  # fmt: skip

MAGNITUDE = define()
