"""EinsumDense: a dense layer whose product is an Einstein sum."""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

import treadle as td
from treadle.keras import activations, initializers
from treadle.keras.layers.lora import Table
from treadle.keras.layers.quantized import Quantizable
from treadle.keras.layers.table_forms import Sharing


class _Shapes(NamedTuple):
    kernel: tuple[int, ...]
    bias: tuple[int, ...] | None
    output: tuple[int | None, ...]


class _InResults(Sharing):
    """Scales that are kept in the order of the results' axes, with axes of 1 for their others.

    Args:
        axes: of the table that share a scale.
        table, results: the letters of the axes.
    """

    def __init__(self, axes: tuple[int, ...], table: str, results: str) -> None:
        super().__init__(axes)
        self.table, self.results = table, results
        self.free = "".join(letter for letter in table if letter in results)
        self.free_results = "".join(letter for letter in results if letter in table)

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        sizes = dict(zip(self.table, shape, strict=True))
        return tuple(sizes.get(letter, 1) for letter in self.results)

    def _others(self) -> list[int]:
        """The axes of results that the table does not have."""
        return [axis for axis, letter in enumerate(self.results) if letter not in self.free]

    def kept(self, scale: td.Tensor) -> td.Tensor:
        moved = td.einsum(f"{self.free}->{self.free_results}", super().kept(scale))
        return Sharing(tuple(self._others())).beside(moved)

    def beside(self, scales: td.Tensor) -> td.Tensor:
        others = self._others()
        own = td.squeeze(scales, others) if others else scales
        return super().beside(td.einsum(f"{self.free_results}->{self.free}", own))


class EinsumDense(Quantizable):
    """``activation(einsum(equation, inputs, kernel) + bias)``.

    Args:
        equation: as ``"ab,bc->ac"``; the inputs and the results may have further axes, written
            ``...``, first or last.
        output_shape: the sizes of the results' axes without the batch, and without those of the
            dots; None stands for an input's size.
        activation: a name or a function; None is linear.
        bias_axes: the letters of the results' axes along which the bias varies; None: no bias.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        kernel_constraint, bias_constraint: as for Dense.
    """

    kernel = Table()
    kernel_initializer: Any
    bias: Any
    _config_names: ClassVar[tuple[str, ...]] = (
        "equation", "activation", "bias_axes", "activity_regularizer",
    )  # fmt: skip
    _weight_kinds: ClassVar[dict[str, str]] = {"kernel": "glorot_uniform", "bias": "zeros"}

    def __init__(
        self, equation: str, output_shape: Any, activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None, bias_regularizer: Any = None,
        kernel_constraint: Any = None, bias_constraint: Any = None, lora_rank: int | None = None,
        lora_alpha: float | None = None, gptq_unpacked_column_size: int | None = None,
        quantization_config: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel_initializer=kernel_initializer, bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, bias_constraint=bias_constraint,
            lora_rank=lora_rank, lora_alpha=lora_alpha, quantization_config=quantization_config,
            **kwargs,
        )  # fmt: skip
        form = r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?"
        found = re.fullmatch(form, equation)
        if found is None or found[1] != found[5] or found[3] != found[7] or (found[1] and found[3]):
            raise ValueError(
                f'EinsumDense: an equation is "[X],[Y]->[Z]", "...[X],[Y]->...[Z]" or '
                f'"[X]...,[Y]->[Z]...", got {equation!r}'
            )
        self.equation, self.bias_axes = equation, bias_axes
        self._letters = found[2], found[4], found[6]
        self._dots_first = bool(found[1])
        self._given = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        self.activation = activations.get(activation)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"output_shape": self._given}

    def _shapes(self, input_shape: Any) -> _Shapes:
        """The shapes of the weights and of the results."""
        inside, kernel, outside = self._letters
        further = len(input_shape) - len(inside)
        if further < 0 or (further and "..." not in self.equation):
            raise ValueError(
                f'Layer "{self.name}" (EinsumDense): {self.equation!r} does not fit inputs of '
                f"shape {tuple(input_shape)}"
            )
        start = further if self._dots_first else 0
        of_input = dict(zip(inside, input_shape[start : start + len(inside)], strict=True))
        # The batch axis is the first of the dots, or the first letter.
        sizes = self._given if self._dots_first and further else (input_shape[0], *self._given)
        if len(sizes) != len(outside):
            raise ValueError(
                f'Layer "{self.name}" (EinsumDense): output_shape {self._given} does not fit '
                f"{self.equation!r}"
            )
        of_output = dict(zip(outside, sizes, strict=True))
        for letter, size in of_output.items():
            if letter in of_input and size not in (None, of_input[letter]):
                raise ValueError(
                    f'Layer "{self.name}" (EinsumDense): axis {letter!r} of the results is '
                    f"{size}, but {of_input[letter]} in inputs of shape {tuple(input_shape)}"
                )
            of_output[letter] = of_input.get(letter, size)
        known = of_input | of_output
        shape = tuple(known.get(letter) for letter in kernel)
        if None in shape:
            raise ValueError(
                f'Layer "{self.name}" (EinsumDense): the sizes {shape} of the kernel {kernel!r} '
                f"are not known from inputs of shape {tuple(input_shape)} and output_shape"
            )
        dots = tuple(input_shape[:start]) if start else tuple(input_shape[len(inside) :])
        own = tuple(of_output[letter] for letter in outside)
        output = (*dots, *own) if self._dots_first else (*own, *dots)
        return _Shapes(shape, self._bias_shape(outside, of_output, further), output)  # type: ignore[arg-type]

    def _bias_shape(
        self, outside: str, sizes: dict[str, Any], further: int
    ) -> tuple[int, ...] | None:
        if self.bias_axes is None:
            return None
        missing = set(self.bias_axes) - set(outside)
        if missing:
            raise ValueError(
                f'Layer "{self.name}" (EinsumDense): bias axes {sorted(missing)} are not among '
                f"the results' {outside!r}"
            )
        last = outside[min(outside.find(letter) for letter in self.bias_axes) :]
        shape = tuple(sizes[letter] if letter in self.bias_axes else 1 for letter in last)
        return shape if self._dots_first else (*shape, *(1,) * further)

    def _initializer(self) -> Any:
        """The kernel's: one that asks for the numbers of inputs and outputs of a unit is told which
        axes those are."""
        given = self.kernel_initializer
        if not isinstance(given, initializers.VarianceScaling) or given.input_axes is not None:
            return given
        outside = self._letters[2]
        axes: tuple[list[int], list[int]] = [], []
        for axis, letter in enumerate(self._letters[1]):
            axes[letter in outside].append(axis)
        config = given.get_config() | {"input_axes": axes[0], "output_axes": axes[1]}
        return type(given).from_config(config | {"seed": given.seed})

    def build(self, input_shape: Any) -> None:
        shapes = self._shapes(input_shape)
        self._with_table(shapes.kernel, initializer=self._initializer())
        self.bias = None if shapes.bias is None else self._own_weight("bias", shapes.bias)
        self._enable_if_asked()

    def call(self, inputs: Any, training: Any = None) -> td.Tensor:
        outputs = self._table_products(inputs)
        return self.activation(outputs if self.bias is None else outputs + self._bias_to_add())

    def _contract(self, inputs: td.Tensor, table: td.Tensor) -> td.Tensor:
        return td.einsum(self.equation, inputs, table)

    def _summed(self) -> set[str]:
        """The letters that the product sums up."""
        of_inputs, of_table, of_results = self._letters
        return (set(of_inputs) & set(of_table)) - set(of_results)

    def _scale_axes(self) -> tuple[int, ...]:
        summed = self._summed()
        return tuple(axis for axis, letter in enumerate(self._letters[1]) if letter in summed)

    def _input_axes(self, rank: int) -> list[int]:
        summed, letters = self._summed(), self._letters[0]
        first = rank - len(letters) if self._dots_first else 0
        return [first + axis for axis, letter in enumerate(letters) if letter in summed]

    def _sharing(self) -> Sharing:
        return _InResults(self._scale_axes(), self._letters[1], self._letters[2])

    def _scales_of_results(self, scale: td.Tensor, scales: td.Tensor) -> td.Tensor:
        return td.einsum(self.equation, scale, scales)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._shapes(input_shape).output
