"""Optional: a value that may be missing, as part of a program's data."""

from __future__ import annotations

from typing import Any

from treadle.core import dtypes, errors, nest
from treadle.core.composite_spec import CompositeSpec
from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.shapes import ANY
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.control.io import Assert
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.shaping.creation import zeros

_MISSING = "The given optional does not have a value"


class Optional:
    """A tensor, or a structure of them, that may be missing: from `from_value`, `empty` and the
    `get_next_as_optional` of iterators.

    It is a structure (`td.nest`) of a bool, whether there is a value, and of the value, zeros where
    there is none: functions take and give it, branches and loops choose and carry it.

    Attributes:
        element_spec: the structure of the value, with a TensorSpec for every tensor.
    """

    def __init__(self, element_spec: Any, present: Any, value: Any) -> None:
        self.element_spec, self._present, self._value = element_spec, present, value

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional that has a value.

        Args:
            value: a structure of what converts to tensors.
        """
        value = nest.map_structure(convert_to_tensor, value)
        return Optional(_specs_of(value), constant(True), value)

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value.

        Args:
            element_spec: a structure of the TensorSpecs that the value would have.
        """
        return Optional(element_spec, constant(False), nest.map_structure(_nothing, element_spec))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value, a bool scalar."""
        return self._present  # type: ignore[no-any-return]

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: there is none; in functions, when the program runs.
        """
        if context.recorder is not None:
            Assert(self._present, [_MISSING])
        elif not self._present:
            raise no_value()
        return self._value

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self.element_spec)

    def __repr__(self) -> str:
        return f"<td.experimental.Optional element_spec={self.element_spec!r}>"


class OptionalSpec(CompositeSpec):
    """The type of an `Optional`, for an `input_signature`.

    Args:
        element_spec: the structure of its value, with a TensorSpec for every tensor.
    """

    __slots__ = ("_present", "element_spec")

    value_type = seen_as = Optional

    def __init__(self, element_spec: Any) -> None:
        self._present, self.element_spec = TensorSpec((), dtypes.bool), element_spec

    def __repr__(self) -> str:
        return f"OptionalSpec({self.element_spec!r})"


def no_value() -> errors.InvalidArgumentError:
    """The error for the value of an optional that has none."""
    return errors.InvalidArgumentError(None, None, f"{_MISSING}{at(user_origin())}")


def _nothing(spec: Any) -> Any:
    """A tensor of a spec, as small as it allows; what is no tensor is missing itself."""
    if not isinstance(spec, TensorSpec):
        return None
    dims = [0 if d == ANY else d for d in spec.dims] if spec.has_rank else ()
    return zeros(dims, spec.dtype)


def _specs_of(value: Any) -> Any:
    return nest.map_structure(TensorSpec.from_tensor, value)


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    """An optional, or the type of one where the parts are specs."""
    present, value = parts
    if isinstance(present, Spec):
        return OptionalSpec(value)
    known = all(isinstance(leaf, Tensor) for leaf in nest.flatten(value))
    return Optional(_specs_of(value) if known else like.element_spec, present, value)


nest.register_node(Optional, lambda x: [x._present, x._value], _rebuilt, lambda x: "optional")
nest.register_node(
    OptionalSpec, lambda x: [x._present, x.element_spec], _rebuilt, lambda x: "optional"
)
