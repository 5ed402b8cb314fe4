"""LoRA: a layer's table is frozen, and training changes a product of two narrow ones beside it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras.layers.base import Layer


class Table:
    """The attribute of a layer that holds its table; with a product beside it, their sum."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        if layer is None:
            return self
        if self.name not in layer.__dict__:
            raise AttributeError(
                f"{type(layer).__name__!r} object has no attribute {self.name!r}: it gets one when "
                "it is built"
            )
        return layer._shown()

    def __set__(self, layer: Any, value: Any) -> None:
        layer.__dict__[self.name] = value


class Adaptable(Layer):
    """A layer whose kernel may get a product of low rank beside it (`enable_lora`).

    Args:
        lora_rank: enables it when the layer is built.
        lora_alpha: the product is scaled by ``lora_alpha / lora_rank``; the rank when omitted.
    """

    _adapts: ClassVar[str] = "kernel"  # the attribute that holds the table
    _initializers: ClassVar[tuple[str, str]] = ("he_uniform", "zeros")

    def __init__(
        self, *, lora_rank: int | None = None, lora_alpha: float | None = None, **kwargs: Any
    ) -> None:
        self.lora_enabled = False
        super().__init__(**kwargs)
        self.lora_rank = lora_rank
        self.lora_alpha = lora_rank if lora_alpha is None else lora_alpha

    def enable_lora(
        self, rank: int, lora_alpha: float | None = None, a_initializer: Any = None,
        b_initializer: Any = None,
    ) -> None:  # fmt: skip
        """Freeze the table, and add a product of two tables of `rank` columns and rows to it.

        Args:
            rank: of the product.
            lora_alpha: the product is scaled by ``lora_alpha / rank``; the rank when omitted.
            a_initializer, b_initializer: of the tables; "he_uniform" ("zeros" the second) when
                omitted.

        Raises:
            ValueError: the layer is not built, has a constraint, or has such a product already.
        """
        name = self._adapts
        if getattr(self, f"{name}_constraint"):
            raise ValueError(
                f"Lora is incompatible with {name} constraints. In order to enable lora on this "
                f"layer, remove the `{name}_constraint` argument."
            )
        if not self.built:
            raise ValueError("Cannot enable lora on a layer that isn't yet built.")
        if self.lora_enabled:
            raise ValueError("lora is already enabled. This can only be done once per layer.")
        table, shape = self._adapted_table, self._table_sizes()
        first, second = self._initializers
        given = {"dtype": "float32", "regularizer": getattr(self, f"{name}_regularizer")}
        a = self._new_weight(
            (*shape[:-1], rank), a_initializer or first, name=f"lora_{name}_a", **given
        )
        b = self._new_weight(
            (rank, shape[-1]), b_initializer or second, name=f"lora_{name}_b", **given
        )
        setattr(self, f"lora_{name}_a", a)
        setattr(self, f"lora_{name}_b", b)
        table.trainable = False
        self._held_variables.append(table)
        self.lora_enabled, self.lora_rank = True, rank
        self.lora_alpha = rank if lora_alpha is None else lora_alpha

    @property
    def _adapted_table(self) -> Any:
        """The table without the product."""
        return self.__dict__[self._adapts]

    def _shown(self) -> Any:
        """What programs see of the table: the variable, or with a product their sum."""
        return self._adapted() if self.lora_enabled else self._adapted_table

    def _table_sizes(self) -> tuple[int, ...]:
        """The shape of the table."""
        return tuple(self._adapted_table.shape)

    def _enable_if_asked(self) -> None:
        """After `build`: enable what the arguments ask for."""
        if self.lora_rank and not self.lora_enabled:
            self.built = True
            self.enable_lora(self.lora_rank, self.lora_alpha)

    def _adapted(self) -> td.Tensor:
        """The table with the product."""
        table: td.Tensor = td.convert_to_tensor(self._adapted_table)  # programs may set a tensor
        return table + td.cast(self._product(), table.dtype) if self.lora_enabled else table

    @property
    def _lora_factor(self) -> float:
        """What the product is multiplied by."""
        assert self.lora_rank is not None and self.lora_alpha is not None
        return self.lora_alpha / self.lora_rank

    def _product(self) -> td.Tensor:
        a, b = (getattr(self, f"lora_{self._adapts}_{part}").read_value() for part in "ab")
        return td.tensordot(a, b, 1) * self._lora_factor

    def save_own_variables(self, store: Any) -> None:
        """As files of Keras have it: the product is added to the table."""
        if not self.lora_enabled:
            super().save_own_variables(store)
            return
        changed = self._with_product()
        for number, variable in enumerate(self._kept_variables()):
            store[str(number)] = changed.get(id(variable), variable.numpy())

    def _with_product(self) -> dict[int, Any]:
        """What files have of variables in which the product is, by the ids of these."""
        value = self._adapted_table.numpy()
        return {id(self._adapted_table): (value + np.asarray(self._product())).astype(value.dtype)}

    def _after_loading(self) -> None:
        if self.lora_enabled:  # the table of the file has the product
            for part in "ab":
                variable = getattr(self, f"lora_{self._adapts}_{part}")
                variable.assign(td.zeros(variable.shape, variable.dtype))

    def _kept_variables(self) -> list[td.Variable]:
        if not self.lora_enabled:
            return super()._kept_variables()
        pair = {id(getattr(self, f"lora_{self._adapts}_{part}")) for part in "ab"}
        return [v for v in self._added_weights if id(v) not in pair]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if not self.lora_rank:
            return config
        return config | {"lora_rank": self.lora_rank, "lora_alpha": self.lora_alpha}
