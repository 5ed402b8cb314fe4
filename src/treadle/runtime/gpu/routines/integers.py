"""Products of matrices of integers, which cuBLAS has not: a kernel that adds up products."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.kernel.ir import Affine, Axis, Buffer, Kernel, Reduce, affine, apply, load, store
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.kernel import KernelRoutine
from treadle.runtime.gpu.routines.routine import Routine


def integer_product(node: Node, gpu: Gpu) -> Routine:
    """The routine for a matmul of integers, which wrap around."""
    out, dtype = node.outputs[0].spec.dims, node.outputs[0].spec.dtype
    axes = [Axis(f"i{n}", extent) for n, extent in enumerate(out)]
    first = node.inputs[0].spec.dims[-2 if node.attrs["transpose_a"] else -1]
    second = node.inputs[1].spec.dims[-1 if node.attrs["transpose_b"] else -2]
    over = Axis("k", first if isinstance(first, int) else second)
    factors = []
    pairs = ((axes[-2], over), (over, axes[-1]))
    buffers = []
    for name, value, pair in zip("ab", node.inputs, pairs, strict=True):
        dims = value.spec.dims
        matrix = pair[::-1] if node.attrs[f"transpose_{name}"] else pair
        buffers.append(Buffer(name, dtype, dims))
        factors.append(load(buffers[-1], *_batch(dims[:-2], axes[:-2]), *matrix))
    total = Reduce("sum", (over,), apply("mul", *factors))
    result = Buffer("out", dtype, out)
    stored = store(result, *axes, value=total)
    return KernelRoutine("product", Kernel((*axes, over), (*buffers, result), (stored,)), gpu)


def _batch(dims: Sequence[Dim], axes: Sequence[Axis]) -> list[Affine]:
    """The place in an operand's batch."""
    own = axes[len(axes) - len(dims) :]
    return [affine([]) if d == 1 else affine([(a, 1)]) for d, a in zip(dims, own, strict=True)]
