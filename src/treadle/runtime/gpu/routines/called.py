"""Ops for which a processor's programs call NumPy, and a GPU's call functions of its library: the
arrays stay on the device.

The functions take memory of their own and wait where sizes or verdicts must be known, so calls with
them cannot be recorded. What they do not do, and what they refuse, the op's NumPy form does, as on
a processor: it raises the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.graph.ir import Node
from treadle.ops.elementwise.bitcast import BITCAST
from treadle.ops.linalg.eigenvalues import EIG
from treadle.ops.linalg.lu import LU
from treadle.ops.linalg.matrix_functions import PSEUDO_INVERSE
from treadle.ops.linalg.spectral_functions import EXPONENTIAL, exponential
from treadle.ops.registry import Op
from treadle.ops.special.neighbours import NEXTAFTER
from treadle.ops.statistics.uniques import UNIQUE
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.routines.arrays import order_of, ordered_keys
from treadle.runtime.gpu.routines.matrices import singular_values

Arrays = Sequence[Any]
# (device, operands, attributes of the node) -> results; None where NumPy is to be called
Form = Callable[[Driver, Arrays, Mapping[str, Any]], tuple[Any, ...] | None]


def has_form(op: Op) -> bool:
    """Whether nodes of an op may have such a function."""
    return op in _FORMS


def device_form(node: Node) -> Form | None:
    """What computes a node with arrays of the device; None where only NumPy does."""
    if node.op not in _FORMS:
        return None
    form, kinds, least = _FORMS[node.op]
    served = all(
        d.kind in kinds and (d.kind != "f" or d.itemsize >= least)
        for d in (v.spec.dtype.np_dtype for v in (*node.inputs, *node.outputs))
    )
    return form if served else None


# -- matrices --------------------------------------------------------------------------------------


def _lu(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """One matrix after the other: the library has no batches of them."""
    (x,), library = inputs, driver.library
    packed = library.empty(x.shape, x.dtype)
    order = library.empty(x.shape[:-1], attrs["out_idx"].np_dtype)
    for place in np.ndindex(x.shape[:-2]):
        rows, lower, upper = driver.triangles(x[place])
        packed[place] = library.tril(lower, -1) + upper
        order[place] = rows.argmax(0)
    pivots = library.diagonal(packed, 0, -2, -1)
    return (packed, order) if bool((pivots != 0).all()) else None


def _eig(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    (x,), library = inputs, driver.library
    if not bool(library.isfinite(x).all()):
        return None
    found = driver.eigenvectors(x)
    if found is None:
        return None
    values, vectors = found
    return (values, vectors) if attrs["vectors"] else (values,)


def _pseudo_inverse(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    (x, limit), library = inputs, driver.library
    u, s, vh = singular_values(library, x, full=False)
    kept = s > (limit * s.max(-1))[..., None]
    inverse = library.where(kept, 1 / library.where(kept, s, 1), 0)
    turned = library.swapaxes(vh.conj(), -1, -2) * inverse[..., None, :]
    return (library.matmul(turned, library.swapaxes(u.conj(), -1, -2)),)


def _exponential(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    (x,), library = inputs, driver.library
    found = library.full(x.shape, np.nan, x.dtype)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    finite = library.isfinite(wide).all((-2, -1))
    for place in np.ndindex(x.shape[:-2]):
        if bool(finite[place]):
            found[place] = exponential(library, wide[place])
    return (found,)


# -- elements --------------------------------------------------------------------------------------


def _unique(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Equal elements stand side by side in a sorted copy, the first of the vector in front."""
    (x,), library = inputs, driver.library
    integers = attrs["out_idx"].np_dtype
    x = x.view(np.uint8) if x.dtype.kind == "b" else x
    order = order_of(library, x)
    keys = ordered_keys(library, x)[order]
    begins = library.ones(x.shape, np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    if x.dtype.kind == "f":  # NaN equals nothing
        begins |= library.isnan(x[order])
    starts = library.nonzero(begins)[0]
    ends = library.append(starts[1:], x.shape[0])
    first = order[starts]
    as_they_come = library.argsort(first)
    rank = library.empty_like(as_they_come)
    rank[as_they_come] = library.arange(len(rank))
    places = library.empty(x.shape, integers)
    places[order] = rank[library.cumsum(begins, dtype=np.int64) - 1]
    return x[first[as_they_come]], places, (ends - starts)[as_they_come]


def _bitcast(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    (x,), dtype = inputs, attrs["dtype"].np_dtype
    narrower = x.dtype.itemsize - dtype.itemsize
    raw = x.reshape(-1).view(dtype)
    if not narrower:
        return (raw.reshape(x.shape),)
    return (raw.reshape((*x.shape, -1) if narrower > 0 else x.shape[:-1]),)


def _nextafter(driver: Driver, inputs: Arrays, attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """By the bits of the numbers: the library's own takes those below the normal ones for zeros."""
    library, (x, y) = driver.library, inputs
    kind = np.dtype(f"i{x.dtype.itemsize}")
    least, one, zero = kind.type(np.iinfo(kind).min), kind.type(1), kind.type(0)
    # Integers that rise as the numbers do; -0.0 is 0, too.
    start, end = (
        library.where(bits < 0, -(bits & ~least), bits) for bits in (x.view(kind), y.view(kind))
    )
    step = library.where(end > start, one, library.where(end < start, -one, zero))
    moved = start + step
    negative = (moved < 0) | (moved == 0) & (start < 0)
    bits = library.where(negative, -moved | least, moved)
    bits = library.where(step == 0, y.view(kind), bits)
    unknown = library.isnan(x) | library.isnan(y)
    return (library.where(unknown, x.dtype.type(np.nan), bits.view(x.dtype)),)


# op -> its function, the kinds of the dtypes that it serves, and the bytes of the shortest floats:
# the library computes no matrices of 16-bit floats.
_FORMS: dict[Op, tuple[Form, str, int]] = {
    LU: (_lu, "fci", 4),
    EIG: (_eig, "fc", 4),
    PSEUDO_INVERSE: (_pseudo_inverse, "fc", 4),
    EXPONENTIAL: (_exponential, "fc", 4),
    UNIQUE: (_unique, "fiub", 2),
    BITCAST: (_bitcast, "fiuc", 2),
    NEXTAFTER: (_nextafter, "f", 4),
}
