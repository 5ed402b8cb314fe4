"""Layer: weights made on the first call, found through attributes; `training` passed down."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

import treadle as td
from treadle.keras import (
    constraints,
    dtype_policies,
    initializers,
    naming,
    regularizers,
    serialization,
)
from treadle.keras.dtype_policies import casting
from treadle.keras.layers import symbolic


class InputSpec(NamedTuple):
    """What a layer accepts: a rank (exact or least) and the sizes of some axes."""

    ndim: int | None = None
    min_ndim: int | None = None
    axes: Mapping[int, int] | None = None

    def fault(self, shape: td.TensorShape) -> str | None:
        """What is expected and what was found, or None when the shape is right."""
        rank = len(shape)
        if self.ndim is not None and rank != self.ndim:
            return f"expected ndim={self.ndim}, found ndim={rank}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, found ndim={rank}"
        for axis, size in (self.axes or {}).items():
            if shape[axis] is not None and shape[axis] != size:
                return f"expected axis {axis} of input shape to have value {size}"
        return None


class _CallState(threading.local):
    """The layers being called: the `training` values, innermost last, and the outermost layer."""

    training: tuple[Any, ...] = ()
    outermost: Layer | None = None


_calls = _CallState()


class _Parameters(NamedTuple):
    """What matters of call's signature."""

    first: str | None  # the name of the inputs
    training_at: int | None  # the position of `training`; None: keyword only or absent
    takes_training: bool


_signatures: dict[Any, _Parameters] = {}


def _parameters(call: Callable[..., Any]) -> _Parameters:
    key = getattr(call, "__func__", call)
    found = _signatures.get(key)
    if found is None:
        parameters = inspect.signature(call).parameters
        names = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        position = names.index("training") if "training" in names else None
        first = names[0] if names else None
        found = _signatures[key] = _Parameters(first, position, "training" in parameters)
    return found


def _then_built(build: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's `build`, after which a call of the layer does not build it once more."""

    @functools.wraps(build)
    def build_once(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self.built = True
        if args:
            self._build_shape = args[0]

    return build_once


class Layer(td.Module):
    """Base class of layers.

    Subclasses make their weights in `build` (or `__init__`) with `add_weight`, and compute in
    `call`, which may take a `training` argument: without one given, the value of the enclosing
    layer's call is used, False at the top.

    Args:
        trainable: whether the layer's weights are among the trainable ones.
        name: the layer's name; numbered by class when omitted.
        dtype: of the weights and of the computation; floating inputs are cast to it. Or a policy
            such as "mixed_float16".
        input_shape: the shape of one example, for the first layer of a Sequential.
    """

    input_spec: InputSpec | None = None
    # Whether `compute_output_shape` of a class of this package tells what `call` gives.
    has_shape_rule: ClassVar[bool] = True
    # Whether the layer computes in float32 where others compute in 16 bits.
    in_float32: ClassVar[bool] = False
    _ignored_attributes: ClassVar[frozenset[str]] = frozenset({
        "_added_weights", "_trainable", "_name", "_penalties", "_call_losses", "_loss_layers",
        "_example_shape", "_output_shape", "_regularizers", "_constraints", "_nodes", "built",
        "dtype", "dtype_policy", "_arguments", "_build_shape",
    })  # fmt: skip
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _build_shape: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        layer = super().__new__(cls)
        layer._arguments = args, kwargs  # for `get_config`
        return layer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _then_built(cls.build)  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        input_shape: Sequence[int | None] | None = None,
        **kwargs: Any,
    ) -> None:
        if "input_dim" in kwargs and input_shape is None:  # Keras 2
            input_shape = (kwargs.pop("input_dim"),)
        if kwargs:
            unknown = ", ".join(sorted(kwargs))
            raise TypeError(f"{type(self).__name__} got unsupported arguments: {unknown}")
        self._name = name or naming.unique_name(type(self).__name__)
        self._trainable = trainable
        self.dtype_policy = dtype_policies.get(dtype)
        self.dtype = self.dtype_policy.variable_dtype
        self.built = False
        self._added_weights: list[td.Variable] = []
        self._penalties: list[tuple[Any, td.Variable]] = []
        self._call_losses: list[Any] = []
        self._loss_layers: list[Layer] = []  # that added losses during this layer's last call
        self._example_shape = None if input_shape is None else tuple(input_shape)
        self._output_shape: Any = None
        self._nodes: list[symbolic.Node] = []  # the calls on what keras.Input gave

    # -- weights ---------------------------------------------------------------------------------

    def add_weight(self, *args: Any, **kwargs: Any) -> td.Variable:
        """A new weight.

        Args:
            shape: of known ints; a scalar when omitted. The first argument, unless that is a
                string: Keras 2 had the name first, then shape, dtype and initializer.
            initializer: a name or a function of (shape, dtype); Glorot-uniform for floats.
            dtype: the layer's when omitted.
            trainable: False for statistics and counters.
            regularizer: a name or a function whose value is added to `losses`.
            constraint: a function that optimizers apply to the updated weight.
            autocast: False: `call` reads the weight in its own dtype, not that of the computation.
            name: the weight's name.
        """
        if args and isinstance(args[0], str):
            given = dict(zip(("name", "shape", "dtype", "initializer"), args, strict=False))
            return self._new_weight(**(given | kwargs))
        return self._new_weight(*args, **kwargs)

    @property
    def compute_dtype(self) -> str:
        """The dtype of the computation, of inputs and of results."""
        return self.dtype_policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of weights."""
        return self.dtype_policy.variable_dtype

    def add_variable(self, *args: Any, **kwargs: Any) -> td.Variable:
        """`add_weight`, as Keras 2 called it too."""
        return self.add_weight(*args, **kwargs)

    def _new_weight(
        self,
        shape: Sequence[int] | int | None = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        name: str | None = None,
        autocast: bool = True,
        **kwargs: Any,
    ) -> td.Variable:
        sizes = (shape,) if isinstance(shape, int) else shape or ()
        dims = tuple(int(d) for d in sizes)
        kind = td.as_dtype(dtype or self.dtype)
        make = initializers.get(initializer)
        if make is None:
            make = initializers.GlorotUniform() if kind.is_floating else initializers.Zeros()
        mixed = autocast and kind.is_floating and self.compute_dtype != self.variable_dtype
        variable = (dtype_policies.CastVariable if mixed else td.Variable)(
            lambda: make(dims, dtype=kind), trainable=trainable,
            name=f"{self.name}/{name or 'weight'}",
            constraint=constraints.get(constraint),
        )  # fmt: skip
        self._added_weights.append(variable)
        penalty = regularizers.get(regularizer)
        if penalty is not None:
            self._penalties.append((penalty, variable))
        return variable

    def _attribute_items(self) -> list[tuple[str, Any]]:
        """Attributes in the order of assignment, as Keras lists weights and layers."""
        return [(k, v) for k, v in vars(self).items() if k not in self._ignored_attributes]

    def _trackable_children(self) -> dict[str, Any]:
        found = super()._trackable_children()
        known = {id(leaf) for leaf in self._leaves()}
        rest = [v for v in self._added_weights if id(v) not in known]
        return found | {f"weight-{number}": v for number, v in enumerate(rest)}

    def _trackable_aliases(self, name: str) -> tuple[str, ...]:
        """Other names that checkpoints may have: Keras's Dense has ``_kernel``."""
        return (f"_{name}",)

    def _leaves(self) -> Iterable[Any]:
        for _, value in self._attribute_items():
            if isinstance(value, Layer | td.Variable | td.Module):
                yield value
            elif isinstance(value, list | tuple | dict) and value:
                yield from td.nest.flatten(value)

    def _own(self) -> tuple[list[td.Variable], list[td.Module]]:
        """The variables and modules held directly, each once."""
        variables: dict[int, td.Variable] = {id(v): v for v in self._added_weights}
        modules: dict[int, td.Module] = {}
        for leaf in self._leaves():
            if isinstance(leaf, td.Variable):
                variables.setdefault(id(leaf), leaf)
            elif isinstance(leaf, td.Module):
                modules.setdefault(id(leaf), leaf)
        return list(variables.values()), list(modules.values())

    def _collect(self, found: dict[int, tuple[td.Variable, bool]], trainable: bool) -> None:
        """Every weight once, with whether it is trainable here."""
        variables, modules = self._own()
        trainable = trainable and self._trainable
        ordered = [v for v in variables if v.trainable] + [v for v in variables if not v.trainable]
        for variable in ordered:
            found.setdefault(id(variable), (variable, trainable and variable.trainable))
        for module in modules:
            if isinstance(module, Layer):
                module._collect(found, trainable)
            else:
                for variable in module.variables:
                    found.setdefault(id(variable), (variable, trainable and variable.trainable))

    def _all_weights(self) -> list[tuple[td.Variable, bool]]:
        found: dict[int, tuple[td.Variable, bool]] = {}
        self._collect(found, True)
        return list(found.values())

    @property
    def weights(self) -> list[td.Variable]:
        """All weights, those of inner layers included."""
        return [v for v, _ in self._all_weights()]

    @property
    def trainable_weights(self) -> list[td.Variable]:
        """The weights that training changes."""
        return [v for v, trainable in self._all_weights() if trainable]

    @property
    def non_trainable_weights(self) -> list[td.Variable]:
        """Frozen weights, statistics and counters."""
        return [v for v, trainable in self._all_weights() if not trainable]

    @property
    def variables(self) -> list[td.Variable]:  # type: ignore[override]
        return self.weights

    @property
    def trainable_variables(self) -> list[td.Variable]:  # type: ignore[override]
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[td.Variable]:  # type: ignore[override]
        return self.non_trainable_weights

    @property
    def trainable(self) -> bool:
        """Whether training changes the weights; inner layers follow."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for module in self._own()[1]:
            if isinstance(module, Layer):
                module.trainable = value

    def get_weights(self) -> list[Any]:
        """The weights' values as arrays."""
        return [np.array(v.numpy()) for v in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign arrays, in the order of `weights`.

        Raises:
            ValueError: another number of arrays, or a shape that differs.
        """
        own = self.weights
        if len(own) != len(weights):
            raise ValueError(
                f'Layer "{self.name}" has {len(own)} weights, got {len(weights)} arrays'
            )
        for variable, value in zip(own, weights, strict=True):
            if tuple(variable.shape) != np.shape(value):
                raise ValueError(
                    f'Layer "{self.name}": weight {variable.name!r} has shape '
                    f"{tuple(variable.shape)}, got an array of shape {np.shape(value)}"
                )
            variable.assign(value)

    def count_params(self) -> int:
        """The number of elements in all weights."""
        return sum(v.shape.num_elements() or 0 for v in self.weights)

    # -- losses ----------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add a scalar to the loss of the current call."""
        self._call_losses.append(loss)
        if _calls.outermost is not None:
            _calls.outermost._loss_layers.append(self)

    @property
    def losses(self) -> list[td.Tensor]:
        """Weight penalties and what `add_loss` was given during the last call, inner layers too."""
        found = [penalty(variable.value()) for penalty, variable in self._penalties]
        found += self._call_losses
        for module in self._own()[1]:
            if isinstance(module, Layer):
                found += module.losses
        return found

    # -- calling ---------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of this shape. Subclasses override it; the layer is built
        when theirs returns."""
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's computation. Subclasses must define it."""
        raise NotImplementedError(f'Layer "{self.name}" ({type(self).__name__}) must define call()')

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape for an input shape; the same one unless a layer says otherwise."""
        return tuple(input_shape)

    def _has_rule(self) -> bool:
        """Whether `compute_output_shape` speaks for the layer: not where a user's layer inherits
        it."""
        kind = type(self)
        own = kind.__module__.startswith("treadle.")
        stated = own or kind.compute_output_shape is not Layer.compute_output_shape
        return kind.has_shape_rule and stated

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if symbolic.among(args, kwargs):
            return symbolic.call(self, args, kwargs)
        first = None if args else _parameters(self.call).first
        if first in kwargs:
            args = (kwargs.pop(first),)
        if args:
            args = (self._convert(args[0]), *args[1:])
        if not self.built:
            self._build(args[0] if args else None)
        if self.input_spec is not None and args:
            self._check_input(args[0])
        args, kwargs, training = self._with_training(args, kwargs)
        before, outermost, read_in = _calls.training, _calls.outermost, casting.dtype
        try:  # without calls between a change and its end, an interrupt comes before or after both
            _calls.training = (*before, training)
            if outermost is None:
                self._start_outermost()
            casting.dtype = self._read_in()
            outputs = self._converted_call()(*args, **kwargs)
            if self.in_float32:
                outputs = td.nest.map_structure(self._as_result, outputs)
        finally:
            casting.dtype = read_in
            _calls.training = before
            _calls.outermost = outermost
        self._output_shape = td.nest.map_structure(_shape_of, outputs)
        return outputs

    def _start_outermost(self) -> None:
        _calls.outermost = self
        for restoration in self.__dict__.get("_restorations", ()):  # lists may have grown
            restoration.extend(self)
        self._forget_losses()

    def _forget_losses(self) -> None:
        """Forget the losses that were added during this layer's last call."""
        for layer in self._loss_layers:
            layer._call_losses = []
        self._loss_layers = []

    def _converted_call(self) -> Callable[..., Any]:
        """`call`, rewritten by AutoGraph while a function is traced: what the user wrote in it may
        branch on tensors. The package's own layers need no rewriting."""
        if td.executing_eagerly() or type(self).call.__module__.startswith("treadle."):
            return self.call
        return td.autograph.tf_convert(self.call)

    def _with_training(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        _, position, takes = _parameters(self.call)
        if position is not None and len(args) > position:
            return args, kwargs, args[position]
        training = kwargs.pop("training", None)
        if training is None:
            training = _calls.training[-1] if _calls.training else False
        if takes:
            kwargs["training"] = training
        return args, kwargs, training

    def _convert(self, inputs: Any) -> Any:
        """Arrays as tensors, floats in the layer's dtype."""
        if isinstance(inputs, Layer):
            raise TypeError(
                f'Layer "{self.name}" was called on {inputs!r}: a layer is called on tensors or '
                "on what keras.Input(...) gives"
            )
        if isinstance(inputs, td.Tensor):
            return self._autocast(inputs)
        if isinstance(inputs, list | tuple) and not any(
            isinstance(x, td.Tensor | np.ndarray | td.Variable) for x in td.nest.flatten(inputs)
        ):
            return self._autocast(td.convert_to_tensor(inputs))
        return td.nest.map_structure(self._convert_leaf, inputs)

    def _convert_leaf(self, value: Any) -> Any:
        if isinstance(value, np.ndarray | td.Variable):
            value = td.convert_to_tensor(value)
        return self._autocast(value) if isinstance(value, td.Tensor) else value

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        kind = self.variable_dtype if self.in_float32 else self.compute_dtype
        if tensor.dtype.is_floating and tensor.dtype.name != kind:
            return td.cast(tensor, kind)
        return tensor

    def _read_in(self) -> str | None:
        """The dtype that `call` reads weights in; None: their own."""
        policy = self.dtype_policy
        own = self.in_float32 or policy.compute_dtype == policy.variable_dtype
        return None if own else policy.compute_dtype

    def _as_result(self, value: Any) -> Any:
        """A result of a layer that computes in float32, in the dtype of results."""
        floating = isinstance(value, td.Tensor) and value.dtype.is_floating
        return td.cast(value, self.compute_dtype) if floating else value

    def _build(self, inputs: Any) -> None:
        shape = td.nest.map_structure(_shape_of, inputs)
        if self.input_spec is not None:
            self._check_input(inputs)
        self.build(shape)
        self.built = True  # also where `build` is that of a class beside Layer
        self._build_shape = shape

    def _check_input(self, inputs: Any) -> None:
        assert self.input_spec is not None
        for i, leaf in enumerate(td.nest.flatten(inputs)):
            fault = self.input_spec.fault(leaf.shape)
            if fault:
                raise ValueError(
                    f'Input {i} of layer "{self.name}" ({type(self).__name__}) is incompatible '
                    f"with the layer: {fault}. Full shape received: {leaf.shape}"
                )

    # -- configuration ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer: those that it was made with, objects among them
        as their configs."""
        kind = type(self)
        policy = self.dtype_policy.name
        found = {"name": self.name, "trainable": self._trainable, "dtype": policy}
        found = {name: value for name, value in found.items() if serialization.takes(kind, name)}
        args, kwargs = self._arguments
        given = serialization.arguments_of(self, args, kwargs)
        return {k: _plain(v) for k, v in given.items() if k not in _OF_EXAMPLES} | found

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A layer from what `get_config` gave."""
        return cls(**{key: serialization.deserialize_keras_object(v) for key, v in config.items()})

    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes of the inputs that the weights were made for; None where there are none."""
        shape = self._build_shape
        return None if shape is None else {"input_shape": _listed(shape)}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Make the weights for the shapes that `get_build_config` gave."""
        shape = config.get("input_shape")
        if shape is not None and not self.built:
            self.build(_as_shape(shape))

    @property
    def input(self) -> Any:
        """What the layer was first called on, of what `keras.Input` gave."""
        args, kwargs = self._first_node().structure
        return args[0] if args else next(iter(kwargs.values()))

    @property
    def output(self) -> Any:
        """The result of the layer's first call on what `keras.Input` gave."""
        return self._first_node().outputs

    def _first_node(self) -> symbolic.Node:
        if not self._nodes:
            raise AttributeError(
                f'Layer "{self.name}" was not called on keras.Input(...) yet, so it has no input '
                "and output"
            )
        return self._nodes[0]

    @property
    def output_shape(self) -> Any:
        """The shape of the output (None where it varies): of the first call on what `keras.Input`
        gave, else of the last call."""
        if self._nodes:
            return td.nest.map_structure(_shape_of, self._nodes[0].outputs)
        return self._output_shape

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def _shape_of(value: Any) -> Any:
    return tuple(value.shape) if hasattr(value, "shape") else None


# Arguments that say what examples are like; models keep it.
_OF_EXAMPLES = ("input_shape", "input_dim", "input_length", "name", "trainable", "dtype")


def _plain(value: Any) -> Any:
    """An argument as data where it is an object with a config; others as they are."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(v) for v in value) if type(value) in (list, tuple) else value
    described = hasattr(value, "get_config") and not isinstance(value, type)
    return serialization.serialize_keras_object(value) if described else value


def _listed(shape: Any) -> Any:
    """A shape, or a structure of shapes, as lists."""
    if isinstance(shape, dict):
        return {name: _listed(inner) for name, inner in shape.items()}
    if isinstance(shape, list | tuple | td.TensorShape):
        return [_listed(inner) for inner in shape]
    return shape if shape is None else int(shape)


def _as_shape(listed: Any) -> Any:
    """A list of sizes as a tuple, in a structure of such lists."""
    if isinstance(listed, dict):
        return {name: _as_shape(inner) for name, inner in listed.items()}
    if any(isinstance(inner, list | dict) for inner in listed):
        return [_as_shape(inner) for inner in listed]
    return tuple(listed)
