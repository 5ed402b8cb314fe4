"""Model: a layer of layers that can be trained with compile, fit, evaluate and predict."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, ClassVar

import treadle as td
from treadle.keras import dtype_policies, naming, serialization
from treadle.keras.layers.arguments import only_shapes
from treadle.keras.layers.base import Layer
from treadle.keras.layers.inputs import Input, InputLayer
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.models import described, exporting, quantized, saving, state_tree
from treadle.keras.models.network import Network, fitted
from treadle.keras.models.state_tree import assign_tree
from treadle.keras.models.training import Trainer
from treadle.keras.variables import copied
from treadle.modes import generation


class _assignable:
    """An attribute that is computed until a program assigns it, as subclasses of Model do."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute = compute
        functools.update_wrapper(self, compute)  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else self.compute(model)


class Model(Trainer, Layer):
    """Base of models, and models that are calls of layers.

    Subclasses assign layers to attributes and define `call`. ``Model(inputs, outputs)`` computes
    `outputs` from `inputs`: what `keras.Input` gave and what calls of layers on it gave, each in
    a tensor, list, tuple or dict.
    """

    has_shape_rule: ClassVar[bool] = False
    _takes_any_config: ClassVar[bool] = True  # one of layers, too
    _passes_masks: ClassVar[bool] = True
    _TF_MODULE_IGNORED_PROPERTIES = Layer._TF_MODULE_IGNORED_PROPERTIES | {
        "_compiled_setup", "_step_functions", "_layer_network", "_first_input",
        "_called", "_added_metrics",
        "compiled_loss", "compiled_metrics", "distribute_strategy", "history", "optimizer",
        "_called_on",
    }  # fmt: skip
    _called_on: list[Any] | None = None  # the types of the arguments of the first call

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        described = len(args) + len(kwargs.keys() & {"inputs", "outputs"}) == 2
        return super().__new__(Functional if cls is Model and described else cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(("inputs", "outputs"), args, strict=False)) | {
            key: kwargs.pop(key) for key in ("inputs", "outputs") if key in kwargs
        }
        if len(args) > 2 or len(given) == 1:
            raise TypeError(
                f"{type(self).__name__}: give inputs and outputs, or neither in a subclass that "
                "defines call()"
            )
        if given and type(self) is Functional and not kwargs.get("name"):
            kwargs["name"] = naming.unique_name("Model" if generation.is_2 else "Functional")
        super().__init__(**kwargs)
        self._compiled_setup: Any = None
        self.distribute_strategy = td.distribute.get_strategy()
        self._step_functions: dict[str, Any] = {}
        self._added_metrics: dict[str, Any] = {}
        self._layer_network: Network | None = None
        if given:
            self._layer_network = Network(given["inputs"], given["outputs"])
            self._network_layers = self._layer_network.layers
            self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs; subclasses that are not made from inputs and outputs must define it."""
        if self._layer_network is None:
            return super().call(inputs)
        return self._layer_network.run(inputs)

    def __reduce__(self) -> Any:
        """Pickled are the configuration, the weights and what the optimizer keeps; classes of
        programs by reference, as pickle has them."""
        return saving.unpickled, saving.pickled(self)

    def __deepcopy__(self, memo: Any) -> Model:
        made: Model = copied(self, memo)
        return made

    @property
    def operations(self) -> list[Layer]:
        """The layers and operations of a functional model, as they are called."""
        return self.layers if self._layer_network is None else list(self._layer_network.called)

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that give the outputs of a functional model."""
        if type(self) is Sequential or self._layer_network is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'output_names'")
        nodes = (target.node for target in self._layer_network.targets)
        return [str(node.layer.name) for node in nodes if node is not None]

    @property
    def output_shape(self) -> Any:
        """The shapes of the outputs (None where they vary)."""
        if self._layer_network is None:
            return super().output_shape
        return td.nest.map_structure(lambda t: tuple(t.shape), self._layer_network.outputs)

    def _described_network(self) -> Network:
        """The model's calls of layers."""
        if self._layer_network is None:
            raise AttributeError(
                f'Model "{self.name}" defines its own call(), so it has no inputs and outputs: '
                "they belong to Sequential models of known input shape and to "
                "Model(inputs, outputs)"
            )
        return self._layer_network

    @_assignable
    def inputs(self) -> list[KerasTensor]:
        """What the model starts from, as a list."""
        return list(self._described_network().sources)

    @_assignable
    def outputs(self) -> list[KerasTensor]:
        """What the model gives, as a list."""
        return list(self._described_network().targets)

    @_assignable
    def input(self) -> Any:
        """What the model starts from."""
        return self._described_network().inputs

    @_assignable
    def output(self) -> Any:
        """What the model gives."""
        return self._described_network().outputs

    @property
    def input_shape(self) -> Any:
        """The shapes of the inputs."""
        return td.nest.map_structure(lambda t: tuple(t.shape), self.input)

    @property
    def layers(self) -> list[Layer]:
        """The layers directly below the model."""
        if self._layer_network is not None:
            return list(self._layer_network.layers)
        return self._holdings.layers

    def _trackable_children(self) -> dict[str, Any]:
        """The layers by their places, what attributes hold, and the optimizer."""
        found = super()._trackable_children()
        if self._listed_layers is not None:
            layers = self._listed_layers
            held = {id(layer) for layer in layers}
            found = {
                name: value
                for name, value in found.items()
                if name not in ("_layers", "_network_layers") and id(value) not in held
            }
            found = {f"layer-{number}": layer for number, layer in enumerate(layers)} | found
        return found if self.optimizer is None else found | {"optimizer": self.optimizer}

    @property
    def _listed_layers(self) -> list[Layer] | None:
        """The layers where their order is the model's; None where the model calls them itself."""
        return None if self._layer_network is None else self.layers

    def _trackable_aliases(self, name: str) -> tuple[str, ...]:
        kind, _, number = name.partition("-")
        is_layer = kind == "layer" and number.isdecimal()
        return self._keras_places(int(number)) if is_layer else super()._trackable_aliases(name)

    def _keras_places(self, number: int) -> tuple[str, ...]:
        """Where Keras 3 has the layer of a number in its checkpoints: among all that is called."""
        place = number if self._layer_network is None else self._layer_network.places[number]
        return (f"_operations/{place}",)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """The layer of that name or position.

        Raises:
            ValueError: there is none.
        """
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f'Model "{self.name}" has {len(layers)} layers, no index {index}')
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f'Model "{self.name}" has no layer {name!r}: {[x.name for x in layers]}')

    def build(self, input_shape: Any) -> None:
        """Make the weights now, by tracing `call` for inputs of this shape (batch first)."""
        if not self.built:
            self.built = True
            self._build_shapes = {"input_shape": input_shape}
            specs = _specs(input_shape, self.dtype)
            self._called_on = [td.nest.map_structure(_of_any_number, specs)]
            trace = td.function(autograph=False)(lambda x: self(x))
            with only_shapes():
                trace.get_concrete_function(specs)

    def _build_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._called_on = exporting.types_of_call(args) or None
        super()._build_for(args, kwargs)

    def _build_once(self, inputs: Any) -> None:
        if type(self).build is Model.build:
            self.built = True  # the layers make their weights when they are called
            if self._layer_network is None:
                self._build_shapes = {"input_shape": td.nest.map_structure(_shape, inputs)}
        else:
            super()._build_once(inputs)

    # -- state -----------------------------------------------------------------------------------

    def get_state_tree(self, value_format: str = "backend_tensor") -> dict[str, Any]:
        """The values of the variables of the model, of its optimizer and of its metrics, in dicts
        by the parts of their paths.

        Args:
            value_format: "backend_tensor" or "numpy_array".

        Raises:
            ValueError: another format, or two variables of one path.
        """
        return state_tree.values_of(self, value_format)

    def set_state_tree(self, state_tree: dict[str, Any]) -> None:
        """Assign what `get_state_tree` gave, or a part of it.

        Raises:
            ValueError: it has variables of another kind.
        """
        assign_tree(self, state_tree)

    def quantize(  # type: ignore[override]
        self, mode: str | None = None, config: Any = None, filters: Any = None, **kwargs: Any
    ) -> None:
        """Keep the tables of layers in fewer bits from now on: of Dense, EinsumDense and Embedding.

        Args:
            mode: "int8" or "int4"; that of `config` when omitted.
            config: a `keras.quantizers.QuantizationConfig`; that of the mode when omitted.
            filters: a regular expression or a list of them, of which one is found in the names of
                the layers that are meant, or a function of a layer; all layers when omitted.

        Raises:
            NotImplementedError: another mode of Keras.
            ValueError: no such mode or configuration, or a layer is not built or quantized
                already.
        """
        kwargs.pop("type_check", None)  # of layers
        if kwargs:
            raise ValueError(
                f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}"
            )
        quantized.quantize(self, mode, config, filters)
        self._step_functions = {}

    # -- files -----------------------------------------------------------------------------------

    @property
    def _is_functional(self) -> bool:
        """Whether the model is its calls of layers: of a class whose constructor takes inputs and
        outputs, as that of a program that only has a `train_step` of its own."""
        return self._layer_network is not None and _takes_outputs(type(self).__init__)

    def get_config(self) -> dict[str, Any]:
        """The calls of layers that the model consists of; of a subclass with a constructor of its
        own, its arguments."""
        if not self._is_functional or self._layer_network is None:
            return super().get_config()
        own = {"name": self.name, "trainable": self.trainable}
        return own | described.describe(self._layer_network)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """A model from what `get_config` gave, with new weights."""
        with serialization.custom_object_scope(custom_objects or {}):
            if "input_layers" not in config:
                return super().from_config(config)
            inputs, outputs = described.restore(config)
            # What the constructor of a program's class takes beside them.
            kept = {
                name: value for name, value in config.items()
                if name not in _OF_MODELS and serialization.takes(cls, name)
            }  # fmt: skip
            further = serialization.arguments_from(cls, kept)
            model = cls(inputs, outputs, name=config.get("name"), **further)
            return _frozen(model, config)

    def to_json(self, **kwargs: Any) -> str:
        """The config and how the model was compiled, for `keras.models.model_from_json`; keyword
        arguments are those of `json.dumps`."""
        return json.dumps(saving.to_config(self), **kwargs)

    def save(
        self, filepath: Any, overwrite: bool = True, zipped: bool | None = None,
        include_optimizer: bool = True, save_format: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Write the model with its weights and what its optimizer keeps, for
        `keras.models.load_model`.

        Args:
            filepath: ends with ``.keras`` for an archive of Keras 3, or with ``.h5`` or ``.hdf5``
                for a file as Keras 2 had it (they need h5py); or with ``.safetensors`` for a file
                of treadle's own.
            overwrite: whether a file that is there may be replaced.
            include_optimizer: whether an ``.h5`` file also has how the model was compiled, and
                what its optimizer keeps.
            save_format: taken for programs of Keras 2; the ending says the format, as in Keras 3.
            zipped: False: a folder with what a ``.keras`` archive has.

        Raises:
            ValueError: another ending, or an argument that there is not.
            FileExistsError: the file is there and may not be replaced.
            TypeError: a layer has an argument that is no plain data, such as a lambda.
            ResourceExhaustedError, PermissionDeniedError: it cannot be written.
        """
        saving.save_model(
            self, filepath, overwrite, zipped, include_optimizer, save_format, **kwargs
        )

    def export(
        self, filepath: Any, format: str = "tf_saved_model", verbose: bool | None = None,
        input_signature: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Write the model as it computes without training.

        Args:
            filepath: a folder, or the file for other formats than ``"tf_saved_model"``.
            format: ``"tf_saved_model"``, as Keras calls it: treadle's saved model with a function
                ``serve``, which `td.saved_model.load` and `keras.layers.TFSMLayer` read without the
                model's Python; ``"onnx"``: see `td.onnx.export`; ``"shared_object"``: a library and
                a header for C, with a function ``NAME_serve``, see `td.shared_object.export`.
            verbose: whether to tell what was written.
            input_signature: for each argument a `td.TensorSpec` or a nested structure of them; of
                the inputs or of the first call when omitted, with any number of examples.
            kwargs: options of `td.saved_model.save` or of `td.shared_object.export`.

        Raises:
            ValueError: another format, or a model that has no weights or was never called.
            ResourceExhaustedError, PermissionDeniedError: it cannot be written.
        """
        exporting.export(self, filepath, format, verbose, input_signature, **kwargs)

    def _saved_children(self) -> dict[str, Any]:
        return exporting.saved_children(self)

    def save_weights(
        self, filepath: Any, overwrite: bool = True, max_shard_size: float | None = None,
        objects_to_skip: Any = (),
    ) -> None:  # fmt: skip
        """Write the weights, and what the optimizer keeps.

        Args:
            filepath: a file that ends with ``.weights.h5``, as Keras 3 writes it (needs h5py), or
                the prefix of a checkpoint.
            max_shard_size: how many GiB of weights one file may have: they are written into as
                many files as are needed, ``NAME_00000.weights.h5`` and so on, beside an index that
                `filepath` names and that ends with ``.weights.json``.
            overwrite: whether a file that is there may be replaced.
            objects_to_skip: layers that a file of Keras is not to have.

        Raises:
            ValueError: the name of a file of HDF5 that Keras would not read, or one weight is
                greater than a file may be.
            FileExistsError: the file is there and may not be replaced.
            ResourceExhaustedError, PermissionDeniedError: it cannot be written.
        """
        saving.save_weights(self, filepath, overwrite, objects_to_skip or (), max_shard_size)

    def load_weights(
        self, filepath: Any, skip_mismatch: bool = False, by_name: bool = False,
        objects_to_skip: Any = (),
    ) -> Any:  # fmt: skip
        """Assign the weights, and what the optimizer keeps, all or nothing.

        Args:
            filepath: a file of Keras 3 (``.weights.h5``, ``.keras``), the index of several
                (``.weights.json``), or a file of Keras 2 (``.h5``,
                ``.hdf5``), also one of a whole model; or the prefix of a checkpoint of treadle or
                TensorFlow: of that, weights that come later are restored when they come.
            skip_mismatch: leave layers as they are whose weights do not fit (files of Keras).
            by_name: take the layers of a file of Keras 2 by their names instead of in order.
            objects_to_skip: layers that stay as they are (files of Keras 3).

        Returns:
            For a checkpoint, what `td.train.Checkpoint.restore` gives.

        Raises:
            ValueError: the file has other weights than the model.
            NotFoundError: there is no such file.
            DataLossError: it is damaged.
        """
        return saving.load_weights(self, filepath, skip_mismatch, by_name, objects_to_skip or ())

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Any = None,
        expand_nested: bool = False, show_trainable: bool = False, layer_range: Any = None,
    ) -> None:  # fmt: skip
        """Print the layers, their output shapes and numbers of weights.

        Args:
            line_length: columns of the table; at most those of the terminal when omitted.
            positions: where the columns end, as parts of the line.
            print_fn: takes the text; it is printed when omitted.
            expand_nested: show the layers of inner models.
            show_trainable: show whether training changes layers.
            layer_range: names (regular expressions) of the first and last layer that are shown.

        Raises:
            ValueError: no layer has a name of `layer_range`, or the line is too short.
        """
        from treadle.keras.models.summary import print_summary

        network = None if isinstance(self, Sequential) else self._layer_network
        print_summary(
            self, network, line_length, positions, print_fn, expand_nested, show_trainable,
            layer_range,
        )  # fmt: skip


class Functional(Model):
    """A model that is its calls of layers, as ``Model(inputs, outputs)`` makes it.

    Programs know such models by their class's name, which is Keras's.
    """

    @property
    def _saved_as(self) -> tuple[str, str] | None:
        """The class's place in Keras; None for classes of programs."""
        own = type(self) is Functional
        return ("keras.src.models.functional", "Functional") if own else None


class Sequential(Model):
    """Layers called one after the other.

    Args:
        layers: the layers; a leading `keras.Input`, or `input_shape` in the first layer, lets the
            weights be made at once instead of on the first call.
        name: the model's name.
    """

    def __init__(
        self, layers: Any = None, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._layers: list[Layer] = []
        self._first_input: KerasTensor | None = None
        self._called: list[KerasTensor] = []  # the results of the layers so far
        for layer in layers or ():
            self._append_layer(layer)
        self._build_if_possible()

    def add(self, layer: Layer, rebuild: bool = True) -> None:
        """Append a layer.

        Args:
            rebuild: whether weights that can be made now are made.
        """
        self._append_layer(layer)
        if rebuild:
            self._build_if_possible()

    def pop(self, rebuild: bool = True) -> Layer:
        """Remove the last layer and return it; `rebuild` as for `add`."""
        if not self._layers:
            raise ValueError(f'Model "{self.name}" has no layers')
        last = self._layers.pop()
        self._called = self._called[: len(self._layers)]
        self._step_functions = {}
        if rebuild:
            self._build_if_possible()
        return last

    def _append_layer(self, layer: Any) -> None:
        if isinstance(layer, KerasTensor) and layer.node is not None:
            layer = layer.node.layer
        if not isinstance(layer, Layer):
            raise ValueError(
                "Only instances of `keras.Layer` can be added to a Sequential model. Received: "
                f"{layer!r} (of type {type(layer)}). Wrap a function in a Lambda, or pass an "
                "instance instead of a class."
            )
        needed = _needed(layer)
        if len(needed) > 1:
            raise ValueError(
                "Layers added to a Sequential model can only have a single positional argument, "
                f"the input tensor. Layer {type(layer).__name__} has multiple positional "
                f"arguments: {needed}"
            )
        if any(layer.name == other.name and layer is not other for other in self._layers):
            raise ValueError(
                "All layers added to a Sequential model should have unique names. Name "
                f"'{layer.name}' is already the name of a layer in model '{self.name}'. Update the "
                "`name` argument to pass a unique name."
            )
        if isinstance(layer, InputLayer):
            if self._first_input is not None:
                raise ValueError(
                    f"Sequential model '{self.name}' has already been configured to use input "
                    f"shape {tuple(self._first_input.shape)}. You cannot add a different Input "
                    "layer to it."
                )
            self._first_input = layer.output
            return
        if layer._example_shape is not None and self._first_input is None and not self._layers:
            self._first_input = Input(layer._example_shape, layer._example_batch, dtype=layer.dtype)
        elif self._first_input is None and not self._layers:
            self._first_input = _start_of(layer)
        self._layers.append(layer)
        self._step_functions = {}

    @property
    def layers(self) -> list[Layer]:
        return list(self._layers)

    @property
    def _listed_layers(self) -> list[Layer]:
        return self.layers

    def _keras_places(self, number: int) -> tuple[str, ...]:
        return (f"_functional/_operations/{number + 1}", f"_layers/{number}")

    def _build_if_possible(self) -> None:
        start = self._first_input
        if start is None and self._layer_network is not None:
            start = self._layer_network.sources[0]  # of the shape of the first call
        if start is not None and self._layers:
            self._chain_layers(start)

    def build(self, input_shape: Any = None) -> None:
        """Make the weights of all layers for inputs of this shape (batch first)."""
        if input_shape is None or not self._layers:
            return
        start = self._first_input
        if start is not None and not start.shape.is_compatible_with(input_shape):
            raise ValueError(
                f"Sequential model '{self.name}' has already been configured to use input shape "
                f"{tuple(start.shape)}. You cannot build it with input_shape {tuple(input_shape)}"
            )
        self._start_from(tuple(input_shape), self.dtype)

    def _build_once(self, inputs: Any) -> None:
        if isinstance(inputs, td.Tensor) and len(inputs.shape) and self._layers:
            first = self._layers[0]
            own = type(first).__module__.startswith("treadle.") and inputs.dtype is not td.string
            self._start_from(tuple(inputs.shape), first.dtype if own else inputs.dtype)
        self.built = True

    def _start_from(self, shape: tuple[int | None, ...], dtype: Any) -> None:
        """Make the weights, unless they were made for such inputs."""
        known = self._layer_network
        if known is None or not known.sources[0].shape[1:].is_compatible_with(shape[1:]):
            self._chain_layers(Input(batch_shape=(None, *shape[1:]), dtype=dtype))

    def _chain_layers(self, start: KerasTensor) -> None:
        """Call the layers one after the other; those that were so called are left as they are."""
        known = self._layer_network
        goes_on = known is not None and known.sources[0] is start
        called = list(self._called) if goes_on else []
        end = called[-1] if called else start
        with naming.within(self):
            for layer in self._layers[len(called) :]:
                end = layer._base_call(end)
                called.append(end)
        self._called = called
        self._layer_network = Network(start, end)
        self.built = True

    @property
    def output_shape(self) -> Any:
        """The shape of the output (None where it varies)."""
        if self._layer_network is None and self._last_output_shape is not None:
            return self._last_output_shape
        return td.nest.map_structure(lambda t: tuple(t.shape), self._described_network().outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = tuple(input_shape)
        for layer in self._layers:
            shape = tuple(layer.compute_output_shape(shape))
        return shape

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        outputs = inputs
        if not self._layers and self._first_input is None:
            raise ValueError(
                f"Sequential model {self.name} cannot be called because it has no layers: "
                "add one with model.add(...)"
            )
        if self._layer_network is not None and isinstance(inputs, td.Tensor):
            outputs = fitted(inputs, self._layer_network.sources[0])
        elif self._layer_network is not None and isinstance(inputs, list | tuple):
            leaves = td.nest.flatten(inputs)
            if len(leaves) != 1:
                raise ValueError(
                    f"Sequential model '{self.name}' takes one input, got {len(leaves)}"
                )
            outputs = leaves[0]
        for layer in self._layers:
            outputs = layer(outputs)  # inner layers know whether this call trains
        return outputs

    def get_config(self) -> dict[str, Any]:
        """The layers, the input among them where it is known."""
        start = self._first_input
        if start is None and self._layer_network is not None:
            start = self._layer_network.sources[0]
        layers = list(self._layers)
        if start is not None and start.node is not None:
            layers.insert(0, start.node.layer)
        listed = [serialization.serialize_keras_object(layer) for layer in layers]
        dtype = dtype_policies.serialize(self.dtype_policy)
        return {
            "name": self.name, "trainable": self.trainable, "dtype": dtype, "layers": listed,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        if "name" not in config or "layers" not in config:
            raise ValueError(
                "A Sequential model configuration must be a dictionary containing the 'name' and "
                f"'layers' keys. Received: {config}"
            )
        # Where the input is known, layers make their weights when they are called.
        starts = any(one["class_name"] == "InputLayer" for one in config["layers"][:1])
        with serialization.custom_object_scope(custom_objects or {}):
            layers = [
                serialization.deserialize_keras_object(
                    serialization.without_shapes(one) if starts else one
                )
                for one in config["layers"]
            ]
        model = cls(name=config["name"])
        for layer in layers:  # after the constructor, which may change those that it is given
            model.add(layer)
        return _frozen(model, config)


_OF_MODELS = ("name", "trainable", "layers", "input_layers", "output_layers", "dtype")


def _takes_outputs(make: Any) -> bool:
    """Whether a constructor is called with inputs and outputs: one that passes everything on, or
    names them."""
    if make is Model.__init__:
        return True
    kinds = inspect.Parameter
    _, *own = inspect.signature(make).parameters.values()
    named = [p.name for p in own if p.kind is kinds.POSITIONAL_OR_KEYWORD]
    passed_on = {kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD} <= {p.kind for p in own}
    return named in (["inputs", "outputs"], ["inputs", "outputs", "name"]) or (
        passed_on and not named
    )


def _shape(value: Any) -> tuple[int | None, ...] | None:
    return tuple(value.shape) if hasattr(value, "shape") else None


def _needed(layer: Layer) -> list[str]:
    """The arguments that a call of a layer must be given."""
    kinds = inspect.Parameter
    return [
        name for name, p in inspect.signature(layer.call).parameters.items()
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]  # fmt: skip


def _start_of(layer: Layer) -> KerasTensor | None:
    """An input like the one that a model begins with, where that is known."""
    network = getattr(layer, "_layer_network", None)
    if network is None or len(network.sources) != 1:
        return None
    (source,) = network.sources
    made: KerasTensor = Input(batch_shape=tuple(source.shape), dtype=source.dtype)
    return made


def _specs(shape: Any, dtype: Any) -> Any:
    """Specs of inputs, for a shape or a structure of shapes."""
    if isinstance(shape, dict):
        return {name: _specs(inner, dtype) for name, inner in shape.items()}
    if isinstance(shape, list | tuple) and any(isinstance(s, list | tuple) for s in shape):
        return [_specs(inner, dtype) for inner in shape]
    return td.TensorSpec(shape, dtype)


def _of_any_number(spec: td.TensorSpec) -> td.TensorSpec:
    """A spec for any number of examples."""
    return td.TensorSpec([None, *spec.shape[1:]], spec.dtype)


def _frozen(model: Any, config: dict[str, Any]) -> Any:
    """A model that training changes or not, as the config says."""
    if not config.get("trainable", True):
        model.trainable = False
    return model
