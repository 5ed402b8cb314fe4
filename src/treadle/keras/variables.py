"""``td.keras.Variable``: variables made as Keras makes them."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.keras import constraints, initializers, naming
from treadle.keras.promotion import standardize_dtype


class Variable(td.Variable):
    """A variable.

    Args:
        initializer: the first value, or the name or function of an initializer.
        shape: for an initializer.
        dtype: of the elements; that of the first value or `floatx` when omitted.
        trainable: whether training changes it.
        autocast, aggregation, synchronization: accepted for Keras programs.
        name: of the variable.
        constraint: what optimizers apply to the updated value.

    Raises:
        ValueError: an initializer without a shape, or a value with another one.
    """

    __slots__ = ()

    def __init__(
        self, initializer: Any, shape: Any = None, dtype: Any = None, trainable: bool = True,
        autocast: bool = True, aggregation: Any = None, synchronization: Any = None,
        name: str | None = None, constraint: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        given = getattr(initializer, "dtype", None) if dtype is None else dtype
        kind = standardize_dtype(given)
        named = isinstance(initializer, str)
        if named or (callable(initializer) and not isinstance(initializer, td.Tensor)):
            if shape is None:
                raise ValueError(
                    "When creating a Variable from an initializer, the `shape` argument should be "
                    f"specified. Received: initializer={initializer} and shape={shape}"
                )
            make = initializers.get(initializer)
            dims = tuple(int(d) for d in shape)
            value: Any = lambda: make(dims, dtype=td.as_dtype(kind))
        else:
            value = td.cast(td.convert_to_tensor(initializer), kind)
            if shape is not None and tuple(shape) != tuple(value.shape):
                raise ValueError(f"The value has shape {value.shape}, not shape={tuple(shape)}")
        super().__init__(
            value, trainable=trainable, name=name or naming.unique_name("Variable"),
            constraint=constraints.get(constraint), **kwargs,
        )  # fmt: skip

    @property
    def path(self) -> str:
        """The name."""
        return str(self.name).removesuffix(":0")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)
