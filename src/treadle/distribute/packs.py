"""How several tensors are added up together: small ones are sent as one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import treadle as td
from treadle.core.tensor import Tensor

# Gives the sum of arrays, one of each replica of this process: one for all of them, or, where they
# have a device each and nothing is traced, one for each.
Exchange = Callable[[Sequence[Tensor]], list[Tensor]]
Working = Callable[[int], AbstractContextManager[Any]]


def summed(
    tensors: Sequence[Sequence[Tensor]], bound: int, exchange: Exchange,
    working: Working = lambda number: nullcontext(),
) -> list[list[Tensor]]:  # fmt: skip
    """The sum of each tensor over all replicas. Those of one dtype are sent together, in packs of
    so many bytes, as one array each. Floats of 16 bits are added up as float32, complex numbers by
    their parts.

    Args:
        tensors: of each the value of every replica of this process.
        working: a block in which something is done where a replica is.

    Returns:
        Of each what `exchange` gives.
    """
    places = range(len(tensors[0]) if tensors else 0)
    sent = [[_at(working, i, _as_sent, t[i]) for i in places] for t in tensors]
    found: dict[int, list[Tensor]] = {}
    for pack in packs([t[0] for t in sent], bound):
        joined = [_at(working, i, _joined, [sent[n][i] for n in pack]) for i in places]
        totals = exchange(joined)
        packed, given = [sent[n][0] for n in pack], [tensors[n][0] for n in pack]
        where = working if len(totals) > 1 else _nowhere
        parts = [_at(where, i, _apart, total, packed, given) for i, total in enumerate(totals)]
        for place, n in enumerate(pack):
            found[n] = [p[place] for p in parts]
    return [found[n] for n in range(len(tensors))]


def _nowhere(number: int) -> AbstractContextManager[Any]:
    return nullcontext()


def _at(working: Working, number: int, function: Callable[..., Any], *args: Any) -> Any:
    with working(number):
        return function(*args)


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    flat = [td.reshape(t, [-1]) for t in tensors]
    return flat[0] if len(flat) == 1 else td.concat(flat, 0)


def _apart(total: Tensor, sent: Sequence[Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of a pack, as they were given, from their sum."""
    found, begin = [], 0
    for one, like in zip(sent, given, strict=True):
        size = one.shape.num_elements()
        if size is None:
            part = td.reshape(total, td.shape(one))
        else:
            part = total if len(sent) == 1 else total[begin : begin + size]
            part = td.reshape(part, one.shape)
            begin += size
        found.append(_as_given(part, like))
    return found


def _as_sent(tensor: Tensor) -> Tensor:
    """A tensor of a dtype that MPI adds up."""
    if tensor.dtype.is_complex:
        return td.stack([td.math.real(tensor), td.math.imag(tensor)])
    if tensor.dtype.is_floating and tensor.dtype.size == 2:
        return td.cast(tensor, td.float32)
    return tensor


def _as_given(total: Tensor, like: Tensor) -> Tensor:
    """A sum as a tensor of the dtype that was given."""
    if like.dtype.is_complex:
        return td.complex(total[0], total[1])
    return td.cast(total, like.dtype)


def packs(tensors: Sequence[Tensor], bound: int) -> list[list[int]]:
    """Which tensors are sent together: neighbours of one dtype, up to so many bytes. A tensor whose
    size is not known while tracing is sent alone."""
    open_packs: dict[Any, tuple[list[int], int]] = {}
    packs: list[list[int]] = []
    for i, tensor in enumerate(tensors):
        size = tensor.shape.num_elements()
        if size is None:
            packs.append([i])
            continue
        width = size * tensor.dtype.size
        pack, filled = open_packs.get(tensor.dtype, ([], 0))
        if not pack or filled + width > bound:
            pack, filled = [], 0
            packs.append(pack)
        pack.append(i)
        open_packs[tensor.dtype] = pack, filled + width
    return packs
