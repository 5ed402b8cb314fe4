"""Runs an op's lowering rule as a kernel through the NumPy evaluator of the loop-nest IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.kernel.ir import Axis, Buffer, Expr, Kernel, Load, as_index, const, load, store
from treadle.kernel.reference import evaluate
from treadle.kernel.verifier import verify
from treadle.ops.lowering import Compute
from treadle.ops.registry import OPS


class Call:
    """What a lowering rule sees: inputs read from buffers."""

    def __init__(
        self, arrays: Sequence[Any], out: TensorSpec, attrs: Mapping[str, Any], which: int
    ):
        self.out, self.attrs, self.which = out, attrs, which
        self.specs = [TensorSpec(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays]
        self.buffers = [
            Buffer(f"in{k}", spec.dtype, spec.dims) for k, spec in enumerate(self.specs)
        ]
        self.inputs = [self._access(b) for b in self.buffers]
        self.reduced: list[Axis] = []

    @staticmethod
    def _access(buffer: Buffer) -> Any:
        def read(index: Sequence[Any], valid: Expr | None = None, fill: Any = 0) -> Load:
            return load(buffer, *index, valid=valid, fill=fill)

        return read

    def axis(self, extent: Any) -> Axis:
        self.reduced.append(Axis(f"r{len(self.reduced)}", extent))
        return self.reduced[-1]


def run_lowered(name: str, *arrays: Any, which: int = 0, **attrs: Any) -> Any:
    """The op's value by its kernel expression."""
    op = OPS[name]
    arrays = tuple(np.asarray(a) for a in arrays)
    specs = [TensorSpec(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays]
    outs = op.infer(*specs, **attrs)
    out = outs[which] if isinstance(outs, tuple) else outs
    call = Call(arrays, out, attrs, which)
    axes = [Axis(f"o{i}", d) for i, d in enumerate(out.dims)]
    assert isinstance(op.lower, Compute)
    value = op.lower.rule(call, [as_index(a) for a in axes])
    assert value.dtype is out.dtype, (
        f"{name} computes {value.dtype}, its shape rule says {out.dtype}"
    )
    target = Buffer("out", out.dtype, out.dims)
    kernel = Kernel(
        (*axes, *call.reduced), (*call.buffers, target), (store(target, *axes, value=value),)
    )
    verify(kernel)
    return evaluate(kernel, dict(zip(call.buffers, arrays, strict=True)))[target]


def check_lowering(name: str, *arrays: Any, tolerance: float = 2e-6, **attrs: Any) -> Any:
    """The lowering rule gives what the NumPy implementation gives; returns that."""
    arrays = tuple(np.asarray(a) for a in arrays)
    with np.errstate(all="ignore"):
        expected = np.asarray(OPS[name].eager(*arrays, **attrs))  # type: ignore[misc]
    specs = [TensorSpec(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays]
    inferred = OPS[name].infer(*specs, **attrs)
    assert expected.shape == inferred.dims and dtypes.from_numpy(expected.dtype) is inferred.dtype
    actual = run_lowered(name, *arrays, **attrs)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
        )
    return expected


__all__ = ["check_lowering", "const", "run_lowered"]
