"""Layer: weights made on the first call, found through attributes; training and masks passed on."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import (
    activations,
    constraints,
    dtype_policies,
    initializers,
    naming,
    random,
    regularizers,
    rematerialization,
    serialization,
    stateless,
    variables,
)
from treadle.keras.dtype_policies import casting
from treadle.keras.layers import holdings, symbolic
from treadle.keras.layers.arguments import (
    as_lists,
    calls,
    of_lists,
    parameters_of,
    shapes_of,
)
from treadle.keras.layers.input_spec import check_inputs
from treadle.keras.layers.removed import REMOVED
from treadle.keras.masks import mask_of, set_mask
from treadle.module import operation_scope

_KINDS: dict[str, Callable[[Any], Any]] = {
    "initializer": initializers.get, "regularizer": regularizers.get, "constraint": constraints.get,
}  # fmt: skip


def _as_data(value: Any) -> Any:
    """A setting as it stands in configurations: objects as their configs, activations as their
    names. Functions of programs stay."""
    if type(value) in (tuple, list):
        return type(value)(map(_as_data, value))
    if callable(value) and not hasattr(value, "get_config"):
        name = getattr(value, "__name__", "")
        return name if getattr(activations, name, None) is value else value
    described = hasattr(value, "get_config") and not isinstance(value, type)
    return serialization.serialize_keras_object(value) if described else value


def _then_built(build: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's `build`, after which a call of the layer does not build it once more."""

    parameters = parameters_of(build)

    @functools.wraps(build)
    def build_once(self: Any, *args: Any, **kwargs: Any) -> None:
        with naming.within(self):
            self._path = naming.path_of(naming.scopes.owners)
            build(self, *args, **kwargs)
        self.built = True
        shapes = parameters.by_name((self, *args), kwargs)
        kinds = (tuple, list, dict, td.TensorShape, type(None))
        self._build_shapes = {
            name: shapes[name] for name in parameters.names[1:]
            if name in shapes and isinstance(shapes[name], kinds)
        }  # fmt: skip
        if not self._build_shapes:  # weights that do not depend on the inputs
            self._build_shapes = dict.fromkeys(parameters.names[1:2])

    return build_once


class UnknownArgumentError(TypeError, ValueError):
    """A class has no such arguments. Keras 2 raised the first of these, Keras 3 the other one."""


class Layer(td.Module):
    """Base class of layers.

    Subclasses make their weights in `build` (or `__init__`) with `add_weight`, and compute in
    `call`, which may take a `training` argument: without one given, the value of the enclosing
    layer's call is used; at the top the default of the argument, where that is True, else False.

    A `mask` argument of `call` is given the mask of the inputs, where they have one; a layer whose
    `supports_masking` is True gives its results the mask that `compute_mask` makes of it.

    A class of this package names in `_config_names` the arguments that it keeps as attributes,
    which `get_config` collects, and in `_weight_kinds` the weights that have an initializer,
    a regularizer and a constraint among its arguments, with their default initializers. Users'
    classes have attributes of their own: names in here are such as these would not choose.

    Args:
        activity_regularizer: its value for the results, divided by the batch's size, is a loss.
        trainable: whether the layer's weights are among the trainable ones.
        name: the layer's name; numbered by class when omitted.
        dtype: of the weights and of the computation; floating inputs are cast to it. Or a policy
            such as "mixed_float16".
        input_shape: the shape of one example, for the first layer of a Sequential.
        autocast: False: inputs keep their dtypes.
    """

    input_spec: Any = None  # `InputSpec`, or one for each input
    supports_masking: bool = False
    _config_names: ClassVar[tuple[str, ...]] = ()
    _no_settings: ClassVar[tuple[str, ...]] = ()  # which base classes have and Keras's has not
    _weight_kinds: ClassVar[Mapping[str, str]] = {}
    # The arguments that `_weight_kinds` stands for.
    _weight_keywords: ClassVar[tuple[str, ...]] = ()
    # Arguments that `from_config` makes objects of for all classes of programs.
    _takes_objects: ClassVar[tuple[str, ...]] = ()
    # Whether `compute_output_shape` of a class of this package tells what `call` gives.
    has_shape_rule: ClassVar[bool] = True
    # The dtype of the inputs for which shapes are computed; None: that of the computation.
    shape_dtype: ClassVar[str | None] = None
    # Whether arrays and numbers are made tensors for `call`, floats in the layer's dtype. Layers of
    # programs that take texts and lists as they are assign False, under Keras's name for it.
    _convert_input_args: bool = True
    # Whether the layer computes in float32 where others compute in 16 bits.
    in_float32: ClassVar[bool] = False
    _TF_MODULE_IGNORED_PROPERTIES: ClassVar[frozenset[str]] = frozenset({
        "_added_weights", "_held_variables", "_trainable", "_name", "_weight_penalties",
        "_call_losses",
        "_loss_layers",
        "_example_batch", "_example_shape", "_last_output_shape", "_call_nodes", "built",
        "_given_policy",
        "autocast", "_constructor_arguments",
        "_build_shapes", "_parent_path", "_path", "_remat",
    })  # fmt: skip
    _constructor_arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _example_batch: int | None = None  # how many examples there are, where it was said
    _build_shapes: Mapping[str, Any] = MappingProxyType({})  # what `build` was given, by name
    _remat: rematerialization.RematScope | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        layer = super().__new__(cls)
        layer._constructor_arguments = args, kwargs  # for `get_config`
        return layer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in cls.__dict__:
            cls.build = _then_built(cls.build)  # type: ignore[method-assign]
        if "compute_mask" in cls.__dict__:
            cls.supports_masking = True
        if "_weight_kinds" in cls.__dict__:
            keywords = (f"{w}_{kind}" for w in cls._weight_kinds for kind in _KINDS)
            cls._weight_keywords = tuple(keywords)

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        input_shape: Sequence[int | None] | None = None,
        autocast: bool = True,
        **kwargs: Any,
    ) -> None:
        if "input_dim" in kwargs and input_shape is None:  # Keras 2
            input_shape = (kwargs.pop("input_dim"),)
        for weight, initializer in self._weight_kinds.items():
            kwargs.setdefault(f"{weight}_initializer", initializer)
            for kind, get in _KINDS.items():
                name_of = f"{weight}_{kind}"
                setattr(self, name_of, get(kwargs.pop(name_of, None)))
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if kwargs:
            unknown = ", ".join(sorted(kwargs))
            name_of = type(self).__name__
            raise UnknownArgumentError(f"{name_of} got unsupported arguments: {unknown}")
        if not isinstance(trainable, bool):
            raise ValueError(
                "Expected argument `trainable` to be a boolean, but received: "
                f"{trainable} (of type {type(trainable)})"
            )
        self._name = name or naming.unique_name(type(self).__name__)
        self._trainable = trainable
        self._given_policy = dtype_policies.get(dtype)
        self.autocast = autocast
        self.built = False
        self._parent_path: str | None = None  # the names before the layer's in those of weights
        self._path: str | None = None
        self._added_weights: list[td.Variable] = []
        # What is not trained while `trainable` is False.
        self._held_variables: list[td.Variable] = []
        self._weight_penalties: list[tuple[Any, td.Variable]] = []
        self._call_losses: list[Any] = []
        self._loss_layers: list[Layer] = []  # that added losses during this layer's last call
        self._remat = rematerialization.scope()
        self._example_shape = None if input_shape is None else tuple(input_shape)
        self._last_output_shape: Any = None
        self._call_nodes: list[symbolic.Node] = []  # the calls on what keras.Input gave

    if not TYPE_CHECKING:  # attributes stay checked

        def __getattr__(self, name: str) -> Any:
            gone = REMOVED.get(name)
            if gone is None:
                return super().__getattribute__(name)  # says what is missing
            raise AttributeError(f"{type(self).__name__!r} object: {name} {gone}")

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
            synchronization, aggregation: how replicas (`td.distribute`) see and change it; members
                of `td.VariableSynchronization` and `td.VariableAggregation`, or their names.
            overwrite_with_gradient: True: optimizers put the gradient in its place.
        """
        if args and isinstance(args[0], str):
            given = dict(zip(("name", "shape", "dtype", "initializer"), args, strict=False))
            return self._new_weight(**(given | kwargs))
        return self._new_weight(*args, **kwargs)

    @property
    def name(self) -> str:
        """The layer's name, which programs may change."""
        return super().name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> str | None:
        """The layer's name after those of the layers that built it; None before it is built."""
        return self._path

    @property
    def dtype_policy(self) -> Any:
        """What the layer computes in, and what its weights are; may be set to another policy, or to
        its name. A layer that was given a `keras.dtype_policies.DTypePolicyMap` has the map."""
        return self._given_policy

    @dtype_policy.setter
    def dtype_policy(self, value: Any) -> None:
        policy = dtype_policies.get(value)
        if policy.quantization_mode and self.built and not self.quantization_mode:
            self.quantize(policy.quantization_mode, config=policy.quantization_config)
        self._own_policy = policy

    @property
    def _own_policy(self) -> dtype_policies.DTypePolicy:
        """The policy itself: of a map, that of the layer's path."""
        return dtype_policies.policy_at(self._given_policy, self._path)

    @_own_policy.setter
    def _own_policy(self, policy: dtype_policies.DTypePolicy) -> None:
        if isinstance(self._given_policy, dtype_policies.DTypePolicyMap) and self._path is not None:
            self._given_policy.pop(self._path, None)
            self._given_policy[self._path] = policy
        else:
            self._given_policy = policy

    @property
    def quantization_mode(self) -> str | None:
        """In which form the table is kept: "int8", "int4", or None for floats; or "float8" for
        products of floats of 8 bits."""
        return self._own_policy.quantization_mode

    @property
    def dtype(self) -> str:
        """The dtype of weights."""
        return self._own_policy.variable_dtype

    @property
    def metrics(self) -> list[Any]:
        """The metrics in attributes of the layer and of the layers in it."""
        return self._holdings.metrics

    @property
    def metrics_variables(self) -> list[td.Variable]:
        """The variables of `metrics`."""
        return [variable for metric in self.metrics for variable in metric.variables]

    @property
    def compute_dtype(self) -> str:
        """The dtype of the computation, of inputs and of results."""
        return self._own_policy.compute_dtype

    @property
    def variable_dtype(self) -> str:
        """The dtype of weights."""
        return self._own_policy.variable_dtype

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
        synchronization: Any = "auto",
        aggregation: Any = "none",
        overwrite_with_gradient: bool = False,
        **kwargs: Any,
    ) -> td.Variable:
        sizes = (shape,) if isinstance(shape, int) else shape or ()
        dims = tuple(int(d) for d in sizes)
        kind = td.as_dtype(dtype or self.dtype)
        make = initializers.get(initializer)
        if make is None:
            make = initializers.GlorotUniform() if kind.is_floating else initializers.Zeros()
        mixed = autocast and kind.is_floating and self.compute_dtype != self.variable_dtype
        path = f"{naming.path_of(naming.opened(self))}/{name or naming.unique_name('variable')}"
        own = variables.OverwrittenVariable if overwrite_with_gradient else td.Variable

        def made(**given: Any) -> td.Variable:
            variable = (dtype_policies.CastVariable if mixed else own)(
                lambda: make(dims, dtype=kind), dtype=kind, trainable=trainable, name=path,
                constraint=constraints.get(constraint),
                **variables.replication(synchronization, aggregation),
            )  # fmt: skip
            return variables.with_path(variable, path)

        variable = self._add_variable_with_custom_getter(
            name or path.rpartition("/")[2], getter=made, shape=dims, initializer=make,
            dtype=kind, trainable=trainable,
        )  # fmt: skip
        self._added_weights.append(variable)
        if not self._trainable and variable.trainable:
            variable.trainable = False
            self._held_variables.append(variable)
        penalty = regularizers.get(regularizer)
        if penalty is not None:
            self._weight_penalties.append((penalty, variable))
        return variable

    def _add_variable_with_custom_getter(
        self, name: str, getter: Callable[..., td.Variable], **given: Any
    ) -> td.Variable:
        """What `getter` makes, which is called with the name and what is given.

        Libraries for Keras 2 have their own, which puts another variable around a layer's weight.
        """
        return getter(name=name, **given)

    def _own_weight(self, key: str, shape: Sequence[int], **given: Any) -> td.Variable:
        """A weight with what the layer's arguments say of the entry `key` of `_weight_kinds`.
        Classes of users may make it in their own way: they define `add_weight`."""
        settings = {kind: getattr(self, f"{key}_{kind}") for kind in _KINDS}
        return self.add_weight(**({"name": key, "shape": shape} | settings | given))

    def _attribute_items(self) -> list[tuple[str, Any]]:
        """Attributes in the order of assignment, as Keras lists weights and layers."""
        ignored = self._TF_MODULE_IGNORED_PROPERTIES
        return [(k, v) for k, v in vars(self).items() if k not in ignored]

    def _trackable_children(self) -> dict[str, Any]:
        found = super()._trackable_children()
        known = {id(leaf) for leaf in holdings.leaves(self)}
        rest = [v for v in self._added_weights if id(v) not in known]
        return found | {f"weight-{number}": v for number, v in enumerate(rest)}

    def _trackable_aliases(self, name: str) -> tuple[str, ...]:
        """Other names that checkpoints may have: Keras's Dense has ``_kernel``."""
        return (f"_{name}",)

    @property
    def _holdings(self) -> holdings.Holdings:
        """What the layer's attributes hold."""
        return holdings.Holdings(self)

    def _kept_variables(self) -> list[td.Variable]:
        """The own variables in the order of files: those that training changes first."""
        return self._holdings.trained_first()

    def save_own_variables(self, store: Any) -> None:
        """Put the values of the layer's own variables into a store of a file, by numbers.

        Args:
            store: takes arrays by names, ``store["0"] = array``.
        """
        for number, variable in enumerate(self._kept_variables()):
            store[str(number)] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Assign what `save_own_variables` put into a store.

        Raises:
            ValueError: the store has other variables.
        """
        own = self._kept_variables()
        if len(own) != len(store):
            raise ValueError(
                f"Layer '{self.name}' expected {len(own)} variables, but received {len(store)} "
                f"variables during loading. Expected: {[v.name for v in own]}"
            )
        for number, variable in enumerate(own):
            value = np.asarray(store[str(number)])
            if value.shape != tuple(variable.shape):
                raise ValueError(
                    f"Layer '{self.name}': variable {variable.name!r} has shape "
                    f"{tuple(variable.shape)}, that in the file {value.shape}"
                )
            variable.assign(td.constant(value, variable.dtype))
        self._after_loading()

    def _after_loading(self) -> None:
        """What remains to be done when the own variables come from a file."""

    def _flatten_layers(
        self, include_self: bool = True, recursive: bool = True
    ) -> Iterator[Layer]:
        """The layer and the layers in it, each once, by Keras's name: configurations of programs
        walk over them."""
        if include_self:
            yield self
        seen = {id(self)}
        waiting = self._holdings.layers
        while waiting:
            layer = waiting.pop(0)
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            yield layer
            if recursive:
                waiting = layer._holdings.layers + waiting

    @property
    def _seed_generators(self) -> list[random.SeedGenerator]:
        """The generators in attributes of the layer, by Keras's name."""
        return self._holdings.generators

    def _all_weights(self) -> list[tuple[td.Variable, bool]]:
        return list(self._holdings.collect_weights({}).values())

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
        """The weights, and the states of `keras.random.SeedGenerator`s in attributes."""
        return list(self._holdings.collect_variables({}).values())

    @property
    def trainable_variables(self) -> list[td.Variable]:  # type: ignore[override]
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[td.Variable]:  # type: ignore[override]
        trained = {id(variable) for variable in self.trainable_weights}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def trainable(self) -> bool:
        """Whether training changes the weights; inner layers follow."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        inside = self._holdings
        if value:
            for variable in self._held_variables:
                variable.trainable = True
            self._held_variables = []
        else:
            own = [v for v in inside.variables if v.trainable]
            for variable in own:
                variable.trainable = False
            self._held_variables = [*self._held_variables, *own]
        for layer in inside.layers:
            layer.trainable = value

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
        """The number of elements in all weights.

        Raises:
            ValueError: the layer is not built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer '{self.name}', but the layer isn't "
                "built. You can build it manually via: `layer.build(input_shape)`."
            )
        return number_of_elements(self)

    # -- losses ----------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add a scalar to the loss of the current call.

        Raises:
            ValueError: it is a function, which Keras 2 called for each loss.
        """
        if callable(loss):
            raise ValueError(
                f"add_loss: {loss!r} is no tensor. Call it in `call`, or give the penalty of a "
                "weight to add_weight as regularizer="
            )
        self._call_losses.append(loss)
        if calls.outermost is not None:
            calls.outermost._loss_layers.append(self)

    @property
    def losses(self) -> list[td.Tensor]:
        """Penalties of weights that are trained, and what `add_loss` was given during the last
        call, inner layers too."""
        found = [
            penalty(variable.read_value())
            for penalty, variable in self._weight_penalties
            if variable.trainable
        ]
        found += self._call_losses
        for layer in self._holdings.layers:
            found += layer.losses
        return found

    # -- calling ---------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of this shape. Subclasses override it; the layer is built
        when theirs returns."""
        self.built = True

    def _build_at_init(self) -> None:
        """Say that a layer without weights is built: unless a program's class builds something."""
        self.built = type(self).build.__module__.startswith("treadle.")

    def stateless_call(
        self, trainable_variables: Sequence[Any], non_trainable_variables: Sequence[Any],
        *args: Any, return_losses: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A call with values that stand for those of the variables, which keep their own.

        Args:
            trainable_variables, non_trainable_variables: a value for each of the variables of
                these names; gradients go to them.
            args, kwargs: for the layer.
            return_losses: whether the `losses` are given, too.

        Returns:
            What the layer gives, and the values that the non-trainable variables would have.

        Raises:
            ValueError: the layer is not built, or there is not one value for each variable.
        """
        if not self.built:
            raise ValueError(
                f"To call stateless_call, {type(self).__name__} must be built (i.e. its variables "
                "must have been already created). You can build it by calling it on some data."
            )
        kinds = ("trainable_variables", "non_trainable_variables")
        pairs = [
            pair
            for name, values in zip(
                kinds, (trainable_variables, non_trainable_variables), strict=True
            )
            for pair in stateless.pairs_of(self, name, getattr(self, name), values, name)
        ]
        with stateless.StatelessScope(pairs) as scope:
            outputs = self(*args, **kwargs)
            losses = self.losses if return_losses else []
        updated = scope.values_of(self.non_trainable_variables)
        return (outputs, updated, losses) if return_losses else (outputs, updated)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's computation. Subclasses must define it."""
        raise NotImplementedError(f'Layer "{self.name}" ({type(self).__name__}) must define call()')

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape for an input shape; the same one unless a layer says otherwise.

        Raises:
            NotImplementedError: there is no shape to start from.
        """
        if input_shape is None:
            raise NotImplementedError(
                f'Layer "{self.name}" ({type(self).__name__}) does not know its output\'s shape '
                "without that of its input"
            )
        if type(self).has_shape_rule:
            return tuple(input_shape)
        return symbolic.output_shape(self, input_shape)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """What a call gives, as KerasTensors: for arguments that are KerasTensors."""
        return symbolic.outputs_of(self, args, kwargs)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Keep the table in fewer bits, of layers that have such a form.

        Raises:
            NotImplementedError: this layer has none.
        """
        raise NotImplementedError(
            f"Layer {type(self).__name__} does not have a `quantize()` method implemented."
        )

    def _has_spec(self) -> bool:
        """Whether a program says by `compute_output_spec` what a call gives."""
        return not type(self).compute_output_spec.__module__.startswith("treadle.")

    def _has_own_build(self) -> bool:
        """Whether a program says by `build` what the layer keeps, or a layer that it wraps and
        builds with itself."""
        if not type(self).build.__module__.startswith("treadle."):
            return True
        wrapped = td.nest.flatten([getattr(self, n, None) for n in self._takes_objects])
        return any(isinstance(layer, Layer) and layer._has_own_build() for layer in wrapped)

    def _makes_masks(self) -> bool:
        """Whether results have another mask than the inputs."""
        return self.supports_masking and type(self).compute_mask is not Layer.compute_mask

    def _has_rule(self) -> bool:
        """Whether `compute_output_shape` speaks for the layer: not where a user's layer inherits
        it."""
        kind = type(self)
        own = kind.__module__.startswith("treadle.")
        stated = own or kind.compute_output_shape is not Layer.compute_output_shape
        return kind.has_shape_rule and stated

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> Any:
        """The mask of the results; that of the first argument unless a layer says otherwise."""
        return previous_mask

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if symbolic.among(args, kwargs):
            return symbolic.call(self, args, kwargs)
        parameters = parameters_of(self.call)
        if not args and parameters.names and parameters.names[0] in kwargs:
            args = (kwargs.pop(parameters.names[0]),)
        if self._convert_input_args:
            if args:
                args = (self._taken_inputs(args[0]), *map(self._taken_further, args[1:]))
            kwargs = {name: self._taken_further(value) for name, value in kwargs.items()}
        if not self.built:
            self._build_for(args, kwargs)
        if args:
            check_inputs(self, args[0])
        kwargs, training = parameters.with_training(args, kwargs)
        kwargs, mask = parameters.with_masks(args, kwargs)
        before, outermost, read_in = calls.training, calls.outermost, casting.dtype
        owners = naming.scopes.owners
        try:  # without calls between a change and its end, an interrupt comes before or after both
            calls.training = (*before, training)
            naming.scopes.owners = naming.opened(self)
            if outermost is None:
                self._start_outermost()
            casting.dtype = self._read_in()
            outputs = self._named_call(args, kwargs)
            if self.in_float32:
                outputs = td.nest.map_structure(self._as_result, outputs)
            if self.activity_regularizer is not None:
                self._penalize(outputs)
        finally:
            casting.dtype = read_in
            calls.training = before
            calls.outermost = outermost
            naming.scopes.owners = owners
        self._last_output_shape = shapes_of(outputs)
        self._mask_outputs(args[0] if args else None, outputs, mask)
        return outputs

    # A layer called on KerasTensors is traced by this: a subclass may do more in its `__call__`,
    # which has begun already.
    _base_call = __call__

    def _named_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`call`, whose operations in a graph are named after the layer."""
        call = self._converted_call()
        if self._remat is not None:
            call = self.rematerialized_call(call, *args, **kwargs)
        if not td.inside_function():
            return call(*args, **kwargs)
        with operation_scope(self.name):
            return call(*args, **kwargs)

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """`layer_call`, whose results are computed again for gradients where the `RematScope` says
        so in which the layer was made.

        Args:
            args, kwargs: what the layer is called on.
        """
        if self._remat is None:
            return layer_call
        return self._remat.applied(self, layer_call, args)

    def _penalize(self, outputs: Any) -> None:
        """Add the activity regularizer's value for the results, an example's on average."""
        for output in td.nest.flatten(outputs):
            penalty = self.activity_regularizer(output)
            if len(output.shape):
                count = td.cast(td.shape(output)[0], penalty.dtype)
                penalty = td.math.divide_no_nan(penalty, count)
            self.add_loss(penalty)

    def _mask_outputs(self, inputs: Any, outputs: Any, mask: Any) -> None:
        """Give the results the mask that `compute_mask` makes, where they have none."""
        known = any(part is not None for part in td.nest.flatten(mask))
        if not self.supports_masking:
            if known and not self._passes_masks:
                warnings.warn(
                    f'Layer "{self.name}" ({type(self).__name__}) does not support masking: the '
                    "mask of its input ends there, layers after it do not see it",
                    stacklevel=3,
                )
            return
        if not known and type(self).compute_mask is Layer.compute_mask:
            return
        results = td.nest.flatten(outputs)
        if all(mask_of(result) is not None for result in results):
            return
        computed = td.nest.flatten(self.compute_mask(inputs, mask))
        for result, own in zip(results, computed, strict=False):
            if own is not None and isinstance(result, td.Tensor) and mask_of(result) is None:
                set_mask(result, own)

    # Whether the layers inside see to the masks of the results, as those of a model do.
    _passes_masks: ClassVar[bool] = False

    def _start_outermost(self) -> None:
        calls.outermost = self
        for restoration in self.__dict__.get("_restorations", ()):  # lists may have grown
            restoration.extend(self)
        self._forget_losses()

    def _forget_losses(self) -> None:
        """Forget the losses that were added during this layer's last call."""
        for layer in self._loss_layers:
            layer._call_losses = []
        self._loss_layers = []

    @property
    def _trains_by_default(self) -> bool:
        """Whether a call trains where nobody says otherwise."""
        return parameters_of(self.call).trains

    def _call_takes(self, name: str) -> bool:
        """Whether `call` has a parameter of this name."""
        return name in parameters_of(self.call).names

    def _converted_call(self) -> Callable[..., Any]:
        """`call`, rewritten by AutoGraph while a function is traced: what the user wrote in it may
        branch on tensors. The package's own layers need no rewriting."""
        if td.inside_function() and not type(self).call.__module__.startswith("treadle."):
            return td.autograph.tf_convert(self.call)
        return self.call

    def _taken_inputs(self, inputs: Any) -> Any:
        """Arrays as tensors, floats in the layer's dtype."""
        if isinstance(inputs, Layer):
            raise TypeError(
                f'Layer "{self.name}" was called on {inputs!r}: a layer is called on tensors or '
                "on what keras.Input(...) gives"
            )
        if isinstance(inputs, td.Tensor):
            return self._autocast(inputs)
        if isinstance(inputs, list | tuple) and not any(
            td.is_tensor(x) or isinstance(x, np.ndarray) for x in td.nest.flatten(inputs)
        ):
            return self._autocast(td.convert_to_tensor(inputs))
        return td.nest.map_structure(self._taken_leaf, inputs)

    def _taken_further(self, value: Any) -> Any:
        """An argument after the inputs: arrays and tensors in it as those of the inputs."""
        if isinstance(value, list | tuple | dict):
            return td.nest.map_structure(self._taken_leaf, value)
        return self._taken_leaf(value)

    def _taken_leaf(self, value: Any) -> Any:
        array = hasattr(value, "__array__") and not td.is_tensor(value)
        if array or isinstance(value, td.Variable):
            value = td.convert_to_tensor(value)
        return self._autocast(value) if td.is_tensor(value) else value

    def _autocast(self, tensor: td.Tensor) -> td.Tensor:
        kind = self.variable_dtype if self.in_float32 else self.compute_dtype
        if self.autocast and tensor.dtype.is_floating and tensor.dtype.name != kind:
            cast = td.cast(tensor, kind)
            set_mask(cast, mask_of(tensor))
            return cast
        return tensor

    def _read_in(self) -> str | None:
        """The dtype that `call` reads weights in; None: their own."""
        policy = self._own_policy
        own = self.in_float32 or policy.compute_dtype == policy.variable_dtype
        return None if own else policy.compute_dtype

    def _as_result(self, value: Any) -> Any:
        """A result of a layer that computes in float32, in the dtype of results."""
        floating = isinstance(value, td.Tensor) and value.dtype.is_floating
        return td.cast(value, self.compute_dtype) if floating else value

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Build the layer for the arguments of its first call. A `build` of several parameters, as
        ``build(query_shape, value_shape)``, is given the shapes of the arguments so named."""
        parameters, of_call = parameters_of(self.build), parameters_of(self.call)
        names = [n for n in parameters.names if n.endswith("_shape")]
        own = type(self).build.__module__.startswith("treadle.")
        if len(parameters.names) > 1 and not own:
            parameters.refuse_other_shapes(of_call, self)
        if len(names) < 2:
            self._build_once(args[0] if args else None)
            return
        given = of_call.by_name(args, kwargs)
        shapes = {n: given.get(n.removesuffix("_shape")) for n in names}
        self.build(**{n: shapes_of(x) for n, x in shapes.items() if x is not None})
        self.built = True

    def _build_once(self, inputs: Any) -> None:
        check_inputs(self, inputs)
        shape = shapes_of(inputs)
        self.build(shape)
        self.built = True  # also where `build` is that of a class beside Layer
        self._build_shapes = {"input_shape": shape}

    # -- configuration ---------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The arguments that make an equal layer, objects among them as their configs. For classes
        of programs: those that the layer was made with."""
        kind = type(self)
        dtype = dtype_policies.serialize(self.dtype_policy)
        own = {"name": self.name, "trainable": self._trainable, "dtype": dtype}
        own = {
            name: value for name, value in own.items()
            if serialization.takes(kind, name) and name not in self._no_settings
        }  # fmt: skip
        described = not kind.get_config.__module__.startswith("treadle.")
        names, args = self._setting_names(), self._constructor_arguments[0]
        ready = kind.__init__.__module__.startswith("treadle.")
        # What arguments without names were is known by the names of the ready base class only.
        named_here = ready or serialization.has_unnamed_arguments(self, args)
        if described or (named_here and names):  # a program's `get_config` adds what is its own
            return own | {name: _as_data(getattr(self, name)) for name in names}
        given = serialization.arguments_of(self, *self._constructor_arguments)
        return {k: _as_data(v) for k, v in given.items() if k not in _OF_EXAMPLES} | own

    def _setting_names(self) -> list[str]:
        """The arguments that configurations have."""
        names: list[str] = []
        for kind in reversed(type(self).__mro__):
            names += kind.__dict__.get("_config_names", ())
        names += [*self._weight_keywords] if names or self._weight_keywords else []
        if self.activity_regularizer is not None and "activity_regularizer" not in names:
            names.append("activity_regularizer")
        return [name for name in names if name not in self._no_settings]

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Layer:
        """A layer from what `get_config` gave; `custom_objects` are classes of programs by their
        names."""
        objects = ("dtype", *cls._takes_objects)
        given = serialization.arguments_from(cls, config, objects, custom_objects)
        policy = given.get("dtype")
        if type(policy) is dtype_policies.DTypePolicy:
            given["dtype"] = policy.name  # classes of programs may know names only
        return cls(**given)

    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes of the inputs that the weights were made for; None where there are none."""
        known = {name: as_lists(s) for name, s in self._build_shapes.items() if s is not None}
        if not known:
            return {"input_shape": None} if self._build_shapes else None
        return {"input_shape": next(iter(known.values()))} if len(known) == 1 else {
            "shapes_dict": known
        }

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Make the weights for the shapes that `get_build_config` gave."""
        shapes = config.get("shapes_dict")
        if shapes is not None and not self.built:
            self.build(**{name: of_lists(shape) for name, shape in shapes.items()})
        if "input_shape" in config and not self.built:
            shape = config["input_shape"]
            self.build(None if shape is None else of_lists(shape))

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
        if not self._call_nodes:
            raise AttributeError(
                f'Layer "{self.name}" was not called on keras.Input(...) yet, so it has no input '
                "and output"
            )
        return self._call_nodes[0]

    @property
    def output_shape(self) -> Any:
        """The shape of the output (None where it varies): of the first call on what `keras.Input`
        gave, else of the last call."""
        if self._call_nodes:
            return shapes_of(self._call_nodes[0].outputs)
        return self._last_output_shape

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def number_of_elements(layer: Layer) -> int:
    """The number of elements in all weights that there are."""
    return sum(v.shape.num_elements() or 0 for v in layer.weights)


# Arguments that say what examples are like; models keep it.
_OF_EXAMPLES = ("input_shape", "input_dim", "input_length", "name", "trainable", "dtype")


# Programs of Keras read and write the mask of a tensor so.
td.Tensor._keras_mask = property(mask_of, set_mask)  # type: ignore[attr-defined]
