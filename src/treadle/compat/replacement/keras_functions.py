"""TensorFlow's functions as steps of functional models, as Keras 2 has them and Keras 3 has not."""

from __future__ import annotations

from functools import reduce
from typing import Any, ClassVar, NamedTuple

import treadle as td
from treadle.compat.replacement.members import have_members
from treadle.core.refusals import Claimed
from treadle.core.tensor import Reference
from treadle.keras import naming, serialization
from treadle.keras.layers import Layer
from treadle.keras.layers.symbolic import KerasTensor
from treadle.ops.conversion import register_converter


class TFOpLambda(Layer):
    """A call of a public function on what `keras.Input` gave. Models list it with their layers.

    Args:
        function: it, or its name in the public modules, ``math.reduce_max``.
        name: of the step; made of the function's when omitted.
    """

    has_shape_rule: ClassVar[bool] = False
    _passes_masks = True

    def __init__(self, function: Any, name: str | None = None) -> None:
        if isinstance(function, str):
            function = reduce(getattr, function.split("."), td)
        self._public_name = f"{function.__module__}.{function.__name__}".removeprefix("treadle.")
        super().__init__(name=name or naming.unique_name(f"tf.{self._public_name}"))
        self.function = function
        self._build_at_init()

    def _taken_inputs(self, inputs: Any) -> Any:
        return inputs  # the function knows its dtypes

    def _taken_further(self, value: Any) -> Any:
        return value

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The names of the step and of the function."""
        return {"name": self.name, "function": self._public_name}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> TFOpLambda:
        """A step from what `get_config` gave; Keras 2 has `trainable` and `dtype` there, too."""
        return cls(config["function"], config["name"])


class KerasHistory(NamedTuple):
    """What a KerasTensor is the result of: a layer, which call of it, and which of its results."""

    layer: Any
    node_index: int
    tensor_index: int


def _history(self: KerasTensor) -> KerasHistory:
    node = self.node
    if node is None:
        raise AttributeError("_keras_history")
    results = [id(result) for result in node.results]
    return KerasHistory(node.layer, node.layer._call_nodes.index(node), results.index(id(self)))


def _claim(value: KerasTensor, dtype: Any) -> Any:
    def step(function: Any, args: Any, kwargs: Any) -> Any:
        return TFOpLambda(function)(*args, **kwargs)

    raise Claimed(f"{value!r} has no values: it stands for what a model will compute", step)


# Operators are these functions in Keras 2: NumPy's numbers take the dtype of the tensor beside
# them.
_OPERATORS = {
    "add": td.add, "sub": td.subtract, "mul": td.multiply, "truediv": td.divide,
    "floordiv": td.math.floordiv, "mod": td.math.floormod, "pow": td.pow, "matmul": td.matmul,
    "lt": td.less, "le": td.less_equal, "gt": td.greater, "ge": td.greater_equal,
}  # fmt: skip


def _give_operators() -> None:
    for name, function in _OPERATORS.items():
        setattr(KerasTensor, f"__{name}__", lambda x, y, of=function: of(x, y))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(KerasTensor, f"__r{name}__", lambda x, y, of=function: of(y, x))


def take_keras_tensors() -> None:
    """Let public functions take what `keras.Input` gave: their calls are steps of the model."""
    register_converter(KerasTensor, _claim)
    _give_operators()
    serialization.get_custom_objects()["TFOpLambda"] = TFOpLambda
    have_members({
        KerasTensor: {
            "_keras_history": property(_history),
            "ref": lambda self: Reference(self),
            # NumPy's arrays, and tensors, leave operators to what says that they are its own.
            "__array_ufunc__": None,
        }
    })  # fmt: skip
