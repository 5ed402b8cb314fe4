"""The forms in which layers keep a table of floats in fewer bits: 8, or 4 with two in a byte.

A form makes the variables of a layer, says what they are to be for given floats, and gives the
floats back. It is an object of a moment: all that lasts is in the layer.
"""

from __future__ import annotations

import math
from typing import Any

import treadle as td
from treadle.keras import quantizers
from treadle.keras.quantizers import IN_4_BITS, AbsMaxQuantizer, in_blocks


class Sharing:
    """Which elements of a table have one scale: those along some axes.

    Scales are kept without these axes, and stand beside the table with axes of 1 in their place.
    """

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape in which scales are kept, for that of the table."""
        return tuple(size for axis, size in enumerate(shape) if axis not in self.axes)

    def kept(self, scale: td.Tensor) -> td.Tensor:
        """Scales with axes of 1 beside the table, as they are kept."""
        return td.squeeze(scale, list(self.axes))

    def beside(self, scales: td.Tensor) -> td.Tensor:
        """Scales as they are kept, with axes of 1 beside the table."""
        for axis in sorted(self.axes):
            scales = td.expand_dims(scales, axis)
        return scales


class Form:
    """How a layer keeps a table.

    Args:
        layer: whose attributes `name`, ``f"{name}_scale"`` and the like the variables are.
        name: of the table.
        quantizer: rounds floats; None: that of the form.
    """

    def __init__(self, layer: Any, name: str, quantizer: Any) -> None:
        self.layer, self.name, self.quantizer = layer, name, quantizer

    def build(self) -> None:
        """Make the variables, which a file or `assign` fills."""
        raise NotImplementedError

    def values(self, floats: td.Tensor) -> dict[str, td.Tensor]:
        """What the variables are to be for these floats, by their attributes."""
        raise NotImplementedError

    def whole(self) -> td.Tensor:
        """The table as whole numbers."""
        raise NotImplementedError

    def floats(self) -> td.Tensor:
        """The table as floats."""
        raise NotImplementedError

    def rows(self, numbers: td.Tensor) -> td.Tensor:
        """Rows of the table as floats."""
        raise NotImplementedError

    def assign(self, floats: td.Tensor) -> None:
        """Keep these floats."""
        for name, value in self.values(floats).items():
            vars(self.layer)[name].assign(value)

    def variables(self) -> list[td.Variable]:
        """Those there are, the table first, in the order of files."""
        names = (self.name, f"{self.name}_scale", f"{self.name}_zero", "g_idx")
        held = vars(self.layer)
        return [held[name] for name in names if name in held]

    def _make(self, ending: str, shape: tuple[int, ...], start: str, dtype: Any = None) -> Any:
        name = f"{self.name}{ending}"
        found = self.layer._new_weight(
            shape, start, dtype, trainable=False, autocast=False, name=name
        )
        setattr(self.layer, name, found)
        return found

    def _read(self, ending: str = "") -> td.Tensor:
        found: td.Tensor = vars(self.layer)[f"{self.name}{ending}"].read_value()
        return found

    def _computed(self, floats: td.Tensor) -> td.Tensor:
        return td.cast(floats, self.layer.compute_dtype)


class InBytes(Form):
    """Numbers of 8 bits, and what they are multiples of.

    Args:
        shape: of the table.
        sharing: which of its elements have one scale.
    """

    def __init__(
        self, layer: Any, name: str, quantizer: Any, shape: tuple[int, ...], sharing: Sharing
    ) -> None:
        super().__init__(layer, name, quantizer or AbsMaxQuantizer())
        self.shape, self.sharing = shape, sharing

    def build(self) -> None:
        self._make("", self.shape, "zeros", "int8")
        self._make("_scale", self.sharing.sizes(self.shape), "ones")

    def values(self, floats: td.Tensor) -> dict[str, td.Tensor]:
        whole, scale = self.quantizer(floats, axis=self.sharing.axes)
        return {self.name: whole, f"{self.name}_scale": self.sharing.kept(scale)}

    def whole(self) -> td.Tensor:
        return self._read()

    def scales(self) -> td.Tensor:
        """What the table was multiplied by, with axes of 1 beside it."""
        return self.sharing.beside(self._read("_scale"))

    def floats(self) -> td.Tensor:
        scales = self.scales()
        return self._computed(td.cast(self.whole(), scales.dtype) / scales)

    def rows(self, numbers: td.Tensor) -> td.Tensor:
        scales = self._computed(td.gather(self._read("_scale"), numbers))
        return self._computed(td.gather(self.whole(), numbers)) / td.expand_dims(scales, -1)


class InHalfBytes(Form):
    """Numbers of 4 bits of a matrix, two in a byte.

    Args:
        shape: of the table, which is taken for a matrix.
        matrix: its sizes as a matrix.
        axis: of the matrix along which neighbours share a scale.
        packed: the axis of the matrix along which two numbers are in a byte.
        block: how many neighbours have a scale and a zero of their own; None: all share one scale.
        zeros: the dtype in which files have these zeros; that of scales when omitted.
    """

    def __init__(
        self, layer: Any, name: str, quantizer: Any, shape: tuple[int, ...],
        matrix: tuple[int, int], axis: int, packed: int, block: int | None,
        zeros: str | None = "int8",
    ) -> None:  # fmt: skip
        super().__init__(layer, name, quantizer or AbsMaxQuantizer(value_range=IN_4_BITS))
        self.shape, self.matrix, self.axis, self.packed = shape, matrix, axis, packed
        self.block, self.zeros = block if in_blocks(block) else None, zeros

    def build(self) -> None:
        sizes = list(self.matrix)
        sizes[self.packed] = -(-sizes[self.packed] // 2)
        self._make("", tuple(sizes), "zeros", "int8")
        if self.block is None:
            self._make("_scale", (self.matrix[1 - self.axis],), "ones")
            return
        scales = list(self.matrix)
        scales[self.axis] = -(-scales[self.axis] // self.block)
        self._make("_scale", tuple(scales), "ones")
        self._make("_zero", tuple(scales), "zeros", self.zeros)
        if "g_idx" not in vars(self.layer):
            self._make_groups(self.block)

    def _make_groups(self, block: int) -> None:
        """The number of the group of each place, which files have as floats."""
        size = self.matrix[self.axis]
        given = {"trainable": False, "autocast": False, "name": "g_idx"}
        self.layer.g_idx = self.layer._new_weight((size,), "zeros", "float32", **given)
        self.layer.g_idx.assign(td.cast(td.range(size) // block, td.float32))

    def values(self, floats: td.Tensor) -> dict[str, td.Tensor]:
        table = td.reshape(floats, self.matrix)
        if self.block is None:
            whole, scale = self.quantizer(table, axis=(self.axis,))
            found = {f"{self.name}_scale": td.squeeze(scale, self.axis)}
        else:
            turned = table if self.axis == 0 else td.transpose(table)
            parts = quantizers.abs_max_quantize_grouped_with_zero_point(turned, self.block)
            whole, scale, zero = parts if self.axis == 0 else map(td.transpose, parts)
            found = {f"{self.name}_scale": scale, f"{self.name}_zero": zero}
        return {self.name: quantizers.pack_int4(whole, self.packed).values} | found

    def _whole_matrix(self) -> td.Tensor:
        return quantizers.unpack_int4(self._read(), self.matrix[self.packed], self.packed)

    def whole(self) -> td.Tensor:
        return td.reshape(self._whole_matrix(), self.shape)

    def floats(self) -> td.Tensor:
        found = self._floats_of(self._whole_matrix(), self._read("_scale"), self._zeros())
        return td.reshape(self._computed(found), self.shape)

    def rows(self, numbers: td.Tensor) -> td.Tensor:
        half = td.gather(self._read(), numbers)
        whole = quantizers.unpack_int4(half, self.matrix[1], len(half.shape) - 1)
        parts = (self._read("_scale"), self._zeros())
        scale, zero = (None if part is None else td.gather(part, numbers) for part in parts)
        return self._computed(self._floats_of(whole, scale, zero))

    def _zeros(self) -> td.Tensor | None:
        return None if self.block is None else self._read("_zero")

    def _floats_of(self, whole: td.Tensor, scale: Any, zero: Any) -> td.Tensor:
        """The floats of a matrix, or of rows of it, where scales are shared along the last axis."""
        axis = self.axis if self.axis == 0 else -1
        if zero is None:
            return td.cast(whole, scale.dtype) / td.expand_dims(scale, axis)
        return quantizers.of_groups(whole, scale, zero, self.layer.g_idx.read_value(), axis)


def matrix_of(shape: tuple[int, ...], summed: Any) -> tuple[int, int]:
    """The sizes of a table as a matrix: rows are what a product sums up."""
    rows = math.prod(size for axis, size in enumerate(shape) if axis in summed)
    return rows, math.prod(shape) // rows
