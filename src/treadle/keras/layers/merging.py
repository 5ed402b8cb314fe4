"""Layers of several inputs: sums, products and the like, and concatenation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.masks import mask_of
from treadle.keras.sparse import concat, dense, expand_dims, is_sparse, taking_sparse


class _Merge(Layer):
    """A layer of a list of inputs."""

    has_shape_rule: ClassVar[bool] = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._build_at_init()

    supports_masking = True

    def call(self, inputs: Any) -> td.Tensor:
        if not isinstance(inputs, list | tuple) or len(inputs) < self._least:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) takes a list of at least '
                f"{self._least} inputs, got {inputs!r}"
            )
        return self._merged(list(inputs))

    _least: ClassVar[int] = 1

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        raise NotImplementedError

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Where any of the masks is True; None where an input has none.

        Raises:
            ValueError: the inputs or masks are no lists, or lists of different lengths.
        """
        self._check_masks(inputs, mask)
        if mask is None or any(m is None for m in mask):
            return None
        return functools.reduce(td.logical_or, [td.cast(m, td.bool) for m in mask])

    def _check_masks(self, inputs: Any, mask: Any) -> None:
        if mask is None:
            return
        for name, value in (("mask", mask), ("inputs", inputs)):
            if not isinstance(value, list | tuple):
                raise ValueError(f"`{name}` should be a list. Received: {name}={value}")
        if len(mask) != len(inputs):
            raise ValueError(
                "The lists `inputs` and `mask` should have the same length. Received: "
                f"{len(inputs)} inputs and {len(mask)} masks"
            )


def _expanded(inputs: list[td.Tensor]) -> list[td.Tensor]:
    """Inputs of one rank: sizes of 1 are put after the batch axis, as Keras does."""
    rank = max(len(x.shape) for x in inputs)
    for number, x in enumerate(inputs):
        for _ in range(rank - len(x.shape)):
            x = expand_dims(x, 1)
        inputs[number] = x
    return inputs


class _Elementwise(_Merge):
    _merged_by: ClassVar[Callable[[Any, Any], td.Tensor]]

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        return functools.reduce(type(self)._merged_by, _expanded(inputs))


class _Chosen(_Elementwise):
    """Where a mask leaves out an element of one input, that of the other stands for it."""

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        masks = [mask_of(x) for x in inputs]
        if all(mask is None for mask in masks):
            return super()._merged(inputs)
        found, kept = inputs[0], masks[0]
        for x, mask in zip(inputs[1:], masks[1:], strict=True):
            other = x if mask is None else td.where(_like(mask, x), x, found)
            one = found if kept is None else td.where(_like(kept, found), found, other)
            kept = None if mask is None or kept is None else td.logical_or(kept, mask)
            found = type(self)._merged_by(one, other)
        return found


def _like(mask: Any, x: td.Tensor) -> td.Tensor:
    """A mask that fits the inputs' features."""
    return td.expand_dims(mask, -1) if len(mask.shape) < len(x.shape) else mask


class Add(_Elementwise):
    """The sum of the inputs."""

    _merged_by = staticmethod(taking_sparse("add", td.add))


class Multiply(_Elementwise):
    """The product of the inputs.

    What a mask leaves out of one input counts as 1; where all are left out the result is 0.
    """

    _merged_by = staticmethod(taking_sparse("multiply", td.multiply))

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        masks = [mask_of(x) for x in inputs]
        kept = [x if mask is None else td.where(_like(mask, x), x, td.ones_like(x))
                for x, mask in zip(inputs, masks, strict=True)]  # fmt: skip
        product = super()._merged(kept)
        if any(mask is None for mask in masks):
            return product
        anywhere = functools.reduce(td.logical_or, masks)
        return td.where(_like(anywhere, product), product, td.zeros_like(product))


class Maximum(_Chosen):
    """The largest of the inputs, element by element."""

    _merged_by = staticmethod(taking_sparse("maximum", td.maximum))


class Minimum(_Chosen):
    """The smallest of the inputs, element by element."""

    _merged_by = staticmethod(taking_sparse("minimum", td.minimum))


_divide = taking_sparse("divide", td.divide)


class Average(Add):
    """The mean of the inputs."""

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        return _divide(super()._merged(inputs), len(inputs))  # type: ignore[no-any-return]


class Subtract(_Elementwise):
    """The first of two inputs less the second."""

    _least = 2
    _merged_by = staticmethod(taking_sparse("subtract", td.subtract))

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        if len(inputs) != 2:
            raise ValueError(
                f'Layer "{self.name}": a Subtract layer should be called on exactly 2 inputs. '
                f"Received: {len(inputs)}"
            )
        return super()._merged(inputs)


class Concatenate(_Merge):
    """The inputs one after the other along an axis."""

    _config_names: ClassVar[tuple[str, ...]] = ("axis",)

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def _merged(self, inputs: list[td.Tensor]) -> Any:
        return concat(inputs, self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks one after the other, along the axis that they have of the inputs; where an
        input has none, nothing is left out."""
        self._check_masks(inputs, mask)
        if mask is None or all(m is None for m in mask):
            return None
        mask = [None if m is None else td.cast(m, td.bool) for m in mask]
        if all(m is not None and len(m.shape) == len(x.shape)
               for m, x in zip(mask, inputs, strict=True)):  # fmt: skip
            return td.reduce_any(td.concat(mask, self.axis), -1)
        whole = [td.ones_like(x, td.bool) for x in inputs]
        parts = [
            all_kept if m is None else td.expand_dims(m, -1) & all_kept
            if len(m.shape) < len(all_kept.shape) else m
            for m, all_kept in zip(mask, whole, strict=True)
        ]  # fmt: skip
        return td.reduce_any(td.concat(parts, self.axis), -1)


class Dot(_Merge):
    """The products of two inputs' rows, summed along one axis of each.

    Args:
        axes: the axis of both, or a pair.
        normalize: make the rows' norms 1 first.
    """

    _least = 2
    _config_names: ClassVar[tuple[str, ...]] = ("axes", "normalize")

    def __init__(self, axes: Any, normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axes, self.normalize = axes, normalize

    def _merged(self, inputs: list[td.Tensor]) -> td.Tensor:
        x, y = map(dense, inputs)
        given = (self.axes, self.axes) if isinstance(self.axes, int) else tuple(self.axes)
        first, second = (axis % len(t.shape) for axis, t in zip(given, (x, y), strict=True))
        if self.normalize:
            x, y = td.nn.l2_normalize(x, axis=first), td.nn.l2_normalize(y, axis=second)
        left, right = "abcdefg"[: len(x.shape)], "a" + "tuvwxyz"[: len(y.shape) - 1]
        right = right[:second] + left[first] + right[second + 1 :]
        kept = "".join(c for c in left + right[1:] if c != left[first])
        result = td.einsum(f"{left},{right}->{kept}", x, y)
        result = td.expand_dims(result, -1) if len(kept) == 1 else result
        return td.sparse.from_dense(result) if all(map(is_sparse, inputs)) else result  # type: ignore[return-value]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None."""
        return None


def add(inputs: Any, **kwargs: Any) -> Any:
    """The sum of the inputs."""
    return Add(**kwargs)(inputs)


def subtract(inputs: Any, **kwargs: Any) -> Any:
    """The first input less the second."""
    return Subtract(**kwargs)(inputs)


def multiply(inputs: Any, **kwargs: Any) -> Any:
    """The product of the inputs."""
    return Multiply(**kwargs)(inputs)


def average(inputs: Any, **kwargs: Any) -> Any:
    """The mean of the inputs."""
    return Average(**kwargs)(inputs)


def maximum(inputs: Any, **kwargs: Any) -> Any:
    """The largest of the inputs, element by element."""
    return Maximum(**kwargs)(inputs)


def minimum(inputs: Any, **kwargs: Any) -> Any:
    """The smallest of the inputs, element by element."""
    return Minimum(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """The inputs one after the other along an axis."""
    return Concatenate(axis, **kwargs)(inputs)


def dot(inputs: Any, axes: Any = -1, normalize: bool = False, **kwargs: Any) -> Any:
    """The products of two inputs' rows, summed along an axis."""
    return Dot(axes, normalize, **kwargs)(inputs)
