"""The specs of values."""

from __future__ import annotations

from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.core.trace_types import TypeSpec
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.state import Variable


def type_spec_from_value(value: Any) -> Any:
    """The spec of a value: a `TensorSpec` for tensors and for what converts to one, and the spec of
    a variable, a dataset or an extension type.

    Raises:
        TypeError: the value has none.
    """
    if isinstance(value, Variable):
        return value.spec
    if isinstance(value, Tensor):
        return TensorSpec.from_tensor(value)
    found = getattr(value, "_type_spec", None)
    if isinstance(found, TypeSpec):
        return found
    try:
        return TensorSpec.from_tensor(convert_to_tensor(value))
    except (TypeError, ValueError):
        raise TypeError(
            f"type_spec_from_value: a {type(value).__name__} has no spec{at(user_origin())}"
        ) from None
