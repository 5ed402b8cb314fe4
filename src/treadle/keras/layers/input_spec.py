"""``keras.layers.InputSpec``: what a layer says of the inputs that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import treadle as td


@dataclass(frozen=True)
class InputSpec:
    """What a layer accepts; None says nothing.

    Args:
        dtype: of the elements.
        shape: sizes, with None for those that may differ. It says `ndim`, too.
        ndim, max_ndim, min_ndim: how many axes there are.
        axes: sizes by the numbers of axes.
        allow_last_axis_squeeze: whether a last axis of one element may be missing, or be there
            where `shape` has none.
        name: of the argument, where arguments are a dictionary.
        optional: whether the argument may be None.
    """

    dtype: Any = None
    shape: Sequence[int | None] | None = None
    ndim: int | None = None
    max_ndim: int | None = None
    min_ndim: int | None = None
    axes: Mapping[int, int | None] | None = None
    allow_last_axis_squeeze: bool = False
    name: str | None = None
    optional: bool = False

    def __post_init__(self) -> None:
        dtype = None if self.dtype is None else td.as_dtype(self.dtype).name
        axes = {int(axis): size for axis, size in (self.axes or {}).items()}
        changed: dict[str, Any] = {"dtype": dtype, "axes": axes}
        if self.shape is not None:
            shape = tuple(td.TensorShape(self.shape).as_list())
            changed |= {"shape": shape, "ndim": len(shape)}
        for name, value in changed.items():
            object.__setattr__(self, name, value)
        ranks = [rank for rank in (self.ndim, self.max_ndim) if rank is not None]
        for axis in axes if ranks else ():
            if axis >= min(ranks):
                raise ValueError(
                    f"Axis {axis} is greater than the maximum allowed value: {min(ranks) - 1}"
                )

    def __repr__(self) -> str:
        told = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")
        said = (f"{k}={v}" for k in told if (v := getattr(self, k)) not in (None, {}))
        return f"InputSpec({', '.join(said)})"

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal one."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> InputSpec:
        """The one that `get_config` describes."""
        return cls(**config)

    def fault(self, value: Any) -> str | None:
        """What is expected of a tensor and what was found, or None where it is as it should be."""
        found: td.TensorShape = value.shape
        rank = len(found)
        if self.ndim is not None and not self.allow_last_axis_squeeze and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}"
        if self.dtype is not None and value.dtype.name != self.dtype:
            return f"expected dtype={self.dtype}, found dtype={value.dtype.name}"
        for axis, size in (self.axes or {}).items():
            if size is not None and found[axis] not in (size, None):
                return f"expected axis {axis} of input shape to have value {size}"
        if self.shape is not None and not self._fits(list(found)):
            return f"expected shape={self.shape}, found shape={tuple(found)}"
        return None

    def _fits(self, found: list[int | None]) -> bool:
        expected = list(self.shape or ())
        if self.allow_last_axis_squeeze:
            expected, found = (s[:-1] if s and s[-1] == 1 else s for s in (expected, found))
        # As in Keras, an axis that only one of both has is not compared.
        pairs = zip(expected, found, strict=False)
        return all(a == b or None in (a, b) for a, b in pairs)


def check_inputs(layer: Any, inputs: Any) -> None:
    """Refuse inputs that are not what a layer says of them.

    Raises:
        ValueError: there are more or less of them, or one is another one.
    """
    specs: Any = layer.input_spec
    if specs is None:
        return
    leaves = td.nest.flatten(inputs)
    if isinstance(specs, Mapping):
        specs = [specs[key] for key in sorted(specs)]  # in the order of `flatten`
    elif not isinstance(specs, list | tuple):
        specs = [specs] * len(leaves)
    if len(specs) != len(leaves):
        raise ValueError(
            f'Layer "{layer.name}" expects {len(specs)} input(s), but it received {len(leaves)} '
            f"input tensors. Inputs received: {inputs}"
        )
    for i, (spec, leaf) in enumerate(zip(specs, leaves, strict=True)):
        fault = None if spec is None or leaf is None else spec.fault(leaf)
        if fault:
            raise ValueError(
                f'Input {i} of layer "{layer.name}" ({type(layer).__name__}) is incompatible with '
                f"the layer: {fault}. Full shape received: {leaf.shape}"
            )
