"""Routines written with the functions of the driver's library, for rows that one thread would take
too long for: long ones are sorted, counted and transformed by all threads of the device.

They take memory of their own, so they cannot be recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.shapes import Dim
from treadle.graph.ir import Node
from treadle.ops.lowering import Library, RowCall
from treadle.runtime.fusion.strided import View
from treadle.runtime.gpu.driver import Driver
from treadle.runtime.gpu.machine import Gpu
from treadle.runtime.gpu.routines.routine import Routine

Arrays = Sequence[Any]
Function = Callable[[Any, Arrays, Arrays, "ArrayRoutine"], None]


class ArrayRoutine(Routine):
    """A function of arrays of the device: (library, inputs, outputs, routine).

    Attributes:
        attrs: of the node.
    """

    replays = False

    def __init__(self, name: str, node: Node, function: Function, launches: int) -> None:
        self.name, self.function, self.launches = name, function, launches
        self.attrs = node.attrs

    def __call__(
        self, driver: Driver, inputs: Sequence[Any], outputs: Sequence[Any], workspace: int,
        symbols: Mapping[str, int],
    ) -> None:  # fmt: skip
        if any(array.size for array in outputs):
            with driver.computing():
                self.function(driver.library, inputs, outputs, self)


def array_routine(node: Node, name: str, call: RowCall, gpu: Gpu) -> Routine | None:
    """The routine for rows that are long; None for others."""
    found = _FUNCTIONS.get(name)
    if found is None:
        return None
    function, launches, length = found
    if _is_short(call.numbers[length], gpu):
        return None
    return ArrayRoutine(name, node, function, launches)


def _is_short(length: Dim, gpu: Gpu) -> bool:
    """Whether one thread does a row of so many elements soon enough."""
    return isinstance(length, int) and length <= gpu.block


# -- sorting ---------------------------------------------------------------------------------------


def _keys(library: Any, x: Any, zeros_equal: bool) -> Any:
    """Unsigned integers that rise as the elements do: NaN is the largest.

    Args:
        zeros_equal: whether zeros of both signs have one key.
    """
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    top = unsigned.type(1 << (8 * x.dtype.itemsize - 1))
    if x.dtype.kind == "u":
        return x
    if x.dtype.kind == "i":
        return x.view(unsigned) ^ top
    raw = library.where(library.isnan(x), x.dtype.type(np.nan), x).view(unsigned)
    if zeros_equal:  # by their bits: in arithmetic of the library small numbers are zeros, too
        raw = library.where(raw == top, unsigned.type(0), raw)
    return library.where((raw & top) != 0, ~raw, raw | top)


def _elements(library: Any, keys: Any, dtype: Any) -> Any:
    """The elements that keys were made of."""
    top = keys.dtype.type(1 << (8 * keys.dtype.itemsize - 1))
    if dtype.kind == "u":
        return keys
    if dtype.kind == "i":
        return (keys ^ top).view(dtype)
    return library.where((keys & top) != 0, keys ^ top, ~keys).view(dtype)


def ordered_keys(library: Any, x: Any) -> Any:
    """Unsigned integers that rise as the elements do, one for all that are equal and for NaN."""
    return _keys(library, x, zeros_equal=True)


def order_of(library: Any, x: Any, descending: bool = False) -> Any:
    """The places of the elements of rows in the order of a stable sort."""
    keys = ordered_keys(library, x)
    return library.argsort(~keys if descending else keys, axis=-1, kind="stable")


def _argsort(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    outputs[0][...] = order_of(library, inputs[0], routine.attrs["descending"])


def _sort(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    (x,) = inputs
    keys = library.sort(_keys(library, x, zeros_equal=False), axis=-1)
    rows = _elements(library, keys, x.dtype)
    outputs[0][...] = rows[..., ::-1] if routine.attrs["descending"] else rows


def _top_k(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    (x,), (values, places) = inputs, outputs
    found = order_of(library, x, True)[..., : values.shape[-1]]
    values[...] = library.take_along_axis(x, found, -1)
    places[...] = found


# -- counting --------------------------------------------------------------------------------------


def _count_positions(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    """How often each position occurs in a row; the verdict is 1 for rows with others."""
    (ids,), (counts, verdicts) = inputs, outputs
    rows, size = verdicts.shape[0], counts.shape[-1]
    places = ids.reshape(rows, -1).astype(np.int64)
    beyond = (places < 0) | (places >= size)
    verdicts[...] = beyond.any(axis=1)
    starts = library.arange(rows, dtype=np.int64)[:, None] * (size + 1)
    places = library.where(beyond, size, places) + starts
    found = library.zeros(rows * (size + 1), np.uint64)
    library.add.at(found, places.reshape(-1), np.uint64(1))
    counts[...] = found.reshape(rows, size + 1)[:, :size].reshape(counts.shape)


def _spread_true(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    """Rows at the true elements of a mask, zeros elsewhere."""
    (x, mask), (out,) = inputs, outputs
    if not x.shape[0]:
        out[...] = 0
        return
    places = library.clip(library.cumsum(mask, dtype=np.int64) - 1, 0, x.shape[0] - 1)
    chosen, raw = mask.reshape(-1, *[1] * (x.ndim - 1)), np.dtype(f"u{x.dtype.itemsize}")
    out.view(raw)[...] = library.where(chosen, x.view(raw)[places], raw.type(0))


# -- transforms ------------------------------------------------------------------------------------


def _joined(library: Any, real: Any, imag: Any) -> Any:
    joined = library.empty(real.shape, np.result_type(real.dtype, np.complex64))
    joined.real, joined.imag = real, imag
    return joined


def _transform(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    found = library.fft.fft(_joined(library, *inputs[:2]), axis=-1)
    outputs[0][...], outputs[1][...] = found.real, found.imag


def _real_transform(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    found = library.fft.rfft(inputs[0], axis=-1)
    outputs[0][...], outputs[1][...] = found.real, found.imag


def _to_real(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    joined, size = _joined(library, *inputs[:2]), outputs[0].shape[-1]
    outputs[0][...] = library.fft.irfft(joined, size, -1, "forward")


def _fourier(library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine) -> None:
    axis, (x,) = routine.attrs["axis"], inputs
    if routine.attrs["inverse"]:
        outputs[0][...] = library.fft.ifft(x, None, axis, "forward")
    else:
        outputs[0][...] = library.fft.fft(x, None, axis)


def _fourier_of_real(
    library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine
) -> None:
    outputs[0][...] = library.fft.rfft(inputs[0], None, routine.attrs["axis"])


def _fourier_to_real(
    library: Any, inputs: Arrays, outputs: Arrays, routine: ArrayRoutine
) -> None:
    axis = routine.attrs["axis"]
    size = outputs[0].shape[axis]
    outputs[0][...] = library.fft.irfft(inputs[0], size, axis, "forward")


def transform_routine(node: Node, views: Sequence[View], gpu: Gpu) -> Routine | None:
    """The routine for a transform of complex numbers, or to or from them."""
    lower = node.op.lower
    assert isinstance(lower, Library)
    return None if views else ArrayRoutine(lower.name, node, TRANSFORMS[lower.name], 3)


# The library's name of a transform -> its function.
TRANSFORMS: dict[str, Function] = {
    "fourier": _fourier,
    "fourier_of_real": _fourier_of_real,
    "fourier_to_real": _fourier_to_real,
}
# routine -> its function, about how many kernels that runs, and the number that is a row's length.
_FUNCTIONS: dict[str, tuple[Function, int, str]] = {
    "sorting.argsort": (_argsort, 6, "n"),
    "exchanges.sort": (_sort, 8, "n"),
    "sorting.top_k": (_top_k, 8, "n"),
    "counting.count_positions": (_count_positions, 10, "n"),
    "counting.spread_true": (_spread_true, 6, "n"),
    "fourier.transform": (_transform, 5, "n"),
    "fourier.real_transform": (_real_transform, 3, "n"),
    "fourier.to_real": (_to_real, 5, "n"),
}
