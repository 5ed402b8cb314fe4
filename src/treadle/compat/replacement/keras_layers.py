"""What Keras 2's layers and models, and TensorFlow's modules, have that Keras 3's and treadle's do
not, where libraries ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import treadle as td
from treadle.compat.replacement import optimizers_of_keras_2
from treadle.compat.replacement.arguments_of_keras_2 import take_arguments_of_keras_2
from treadle.compat.replacement.keras_functions import take_keras_tensors
from treadle.compat.replacement.members import Members, have_members
from treadle.compat.replacement.names_of_keras_2 import have_names_of_keras_2
from treadle.core.keras_generation import generation
from treadle.core.origin import at, user_origin
from treadle.keras.layers import Layer
from treadle.keras.layers.symbolic import KerasTensor
from treadle.keras.metrics import Metric
from treadle.keras.models import Model, saving
from treadle.keras.models.network import Network


def _track_trackable(self: td.Module, trackable: Any, name: str, overwrite: bool = False) -> Any:
    """Keep an object for checkpoints, as the attribute of that name, and give it back."""
    if overwrite or getattr(self, name, None) is None:
        setattr(self, name, trackable)
    return trackable


def _add_update(self: Layer, updates: Any) -> None:
    """Call the functions among some updates, unless the layer is not trained. Others are made
    already: assignments happen where they stand in `call`."""
    for update in td.nest.flatten(updates):
        if callable(update) and self.trainable:
            update()


def _losses(self: Layer) -> list[td.Tensor]:
    """What `add_loss` was given during the last call, by this layer itself."""
    return self._call_losses


def _add_loss(self: Layer, losses: Any, **kwargs: Any) -> None:
    """Add to the loss of the current call: scalars, or functions of nothing that give one and are
    called whenever `losses` is asked for."""
    for loss in losses if isinstance(losses, list | tuple) else [losses]:
        if isinstance(loss, KerasTensor):
            _add_loss_of_model(self, loss)
        elif callable(loss):
            vars(self).setdefault("_loss_functions", []).append(loss)
        else:
            _add_loss_of_keras_3(self, loss)


def _add_loss_of_model(self: Layer, loss: KerasTensor) -> None:
    """Let a loss that was made of a model's tensors be computed with the outputs, in each call.

    Raises:
        ValueError: it is not a functional model.
    """
    network = getattr(self, "_layer_network", None)
    if network is None:
        raise ValueError(
            f"add_loss: {loss!r} has no value, and {type(self).__name__} {self.name!r} is no model "
            f"that was made of inputs and outputs{at(user_origin())}"
        )
    losses = vars(self).setdefault("_symbolic_losses", [])
    losses.append(loss)
    vars(self)["_network_of_losses"] = Network(network.inputs, (network.outputs, list(losses)))


def _call_of_model(self: Model, inputs: Any, training: Any = None, mask: Any = None) -> Any:
    """The outputs; the losses that `add_loss` was given as tensors of the model are noted."""
    network = vars(self).get("_network_of_losses")
    if network is None:
        return _call_model(self, inputs, training, mask)
    outputs, losses = network.run(inputs)
    for loss in losses:
        _add_loss_of_keras_3(self, loss)
    return outputs


_call_model = Model.call


def _all_losses(self: Layer) -> list[td.Tensor]:
    """Penalties of weights, what `add_loss` was given during the last call, and what its functions
    give; inner layers too."""
    own = [function() for function in vars(self).get("_loss_functions", ())]
    found: list[td.Tensor] = _losses_of_keras_3(self) + own
    return found


_add_loss_of_keras_3 = Layer.add_loss
_losses_of_keras_3: Any = vars(Layer)["losses"].fget


def _own_metrics(self: Layer) -> list[Any]:
    """The metrics of the layer itself, without those of layers in it."""
    others = {id(m) for layer in self._flatten_layers(include_self=False) for m in layer.metrics}
    return [metric for metric in self.metrics if id(metric) not in others]


def _add_metric(
    self: Any, value: Any, name: str | None = None, aggregation: str | None = None
) -> None:
    """Follow the mean of a value of `call`, which `metrics` then have.

    Raises:
        ValueError: the value has no name, and no metric of the layer has just given it.
    """
    given = [m for m in self.metrics if vars(m).get("_last_result") is value]
    if given:  # the metric is followed, as an attribute of the layer
        return
    if name is None:
        raise ValueError("add_metric: give a name for the value, or what a metric gave")
    if not hasattr(self, "_added_metrics"):
        self._added_metrics = {}
    added = self._added_metrics
    if name not in added:
        added[name] = td.keras.metrics.Mean(name=name)
    added[name].update_state(value)


def _call_of_metric(self: Metric, *args: Any, **kwargs: Any) -> Any:
    """A call of a metric, whose result `add_metric` knows."""
    result = _call_metric(self, *args, **kwargs)
    vars(self)["_last_result"] = result
    return result


_call_metric = Metric.__call__


def _compute_dtype(self: Layer) -> str:
    """The dtype of the computation."""
    return self.compute_dtype


def _compute_dtype_object(self: Layer) -> td.DType:
    """The same as a `DType`."""
    return td.as_dtype(self.compute_dtype)


def _compute_output_signature(self: Layer, input_signature: Any) -> Any:
    """The shapes of the results, with the dtype of the computation, as specs."""
    shapes = td.nest.map_structure(lambda spec: spec.shape, input_signature)
    found = self.compute_output_shape(shapes)
    is_one = isinstance(found, td.TensorShape) or all(
        size is None or isinstance(size, int) for size in found
    )
    specs = [td.TensorSpec(shape, self.compute_dtype) for shape in ([found] if is_one else found)]
    return specs[0] if is_one else specs


def _is_graph_network(self: Model) -> bool:
    """Whether the order of the layers is known: the model was made of inputs and outputs, or is a
    `Sequential` that knows its input."""
    return self._layer_network is not None


def _reset_states(self: Model) -> None:
    """Let the layers begin anew that keep states from batch to batch."""
    layers: list[Any] = self.layers
    for layer in layers:
        if isinstance(layer, Model) or getattr(layer, "stateful", False):
            layer.reset_states()


def _names_of(which: str) -> property:
    """The names of the layers that give a model's inputs or outputs; None where it has none."""

    def names(self: Model) -> list[str] | None:
        ends = None if self._layer_network is None else getattr(self._layer_network, which)
        return None if ends is None else [str(tensor.node.layer.name) for tensor in ends]

    return property(names)


def _set_save_spec(
    self: Model, inputs: Any, args_specs: Any = None, kwargs_specs: Any = None
) -> None:
    """Say what a saved model takes. Here the first call says it."""


# What layers and models have beside what Keras 3 has.
_NAMES: Members = {
    td.Module: {"_track_trackable": _track_trackable},
    Layer: {
        "_compute_dtype": property(_compute_dtype),
        "_compute_dtype_object": property(_compute_dtype_object),
        "_losses": property(_losses),
        "add_update": _add_update,
        "compute_output_signature": _compute_output_signature,
    },
    Model: {
        "_is_graph_network": property(_is_graph_network),
        "_set_save_spec": _set_save_spec,
    },
}


def accept_names_of_keras_2() -> None:
    """Give layers and models these names."""
    have_members(_NAMES)
    have_names_of_keras_2()


def _call_in_scope(self: Layer, *args: Any, **kwargs: Any) -> Any:
    """A call in a name scope of the layer's name, in which its weights are made, too."""
    with td.name_scope(self.name):
        return _call(self, *args, **kwargs)


def _call_as_it_is(self: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`call`: the scope names its operations."""
    return self._converted_call()(*args, **kwargs)


_call = Layer.__call__


def _save(obj: Any, export_dir: Any, signatures: Any = None, options: Any = None) -> None:
    """`td.saved_model.save`, beside which `keras.models.load_model` finds what it makes a model of,
    where it is one."""
    _save_without_models(obj, export_dir, signatures, options)
    if isinstance(obj, Model):
        saving.write_parts(saving.archived(obj), Path(export_dir))


_save_without_models = td.saved_model.save


def _inputs(self: Layer, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """What a layer computes that says nothing of it: nothing."""
    return inputs


def _init(
    self: Layer, *args: Any, dynamic: bool = False, batch_input_shape: Any = None,
    batch_size: int | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """As of Keras 3, with the batch that a Sequential's first layer may be told of. A layer that is
    `dynamic` is converted as others are."""
    if batch_input_shape is not None:
        batch_size, *shape = batch_input_shape
        kwargs["input_shape"] = tuple(shape)
    _init_of_keras_3(self, *args, **kwargs)
    if batch_size is not None:
        self._example_batch = batch_size


_init_of_keras_3 = Layer.__init__


def _has_rule(self: Layer) -> bool:
    """Whether `compute_output_shape` speaks for the layer: Keras 2 calls layers of programs to find
    out, which makes the weights of layers inside of them, and tells dtypes."""
    return type(self).__module__.startswith("treadle.") and _has_rule_of_keras_3(self)


_has_rule_of_keras_3 = Layer._has_rule


def _build_eagerly(self: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Build the layer outside of the function that is traced: tensors that it keeps have values."""
    with td.init_scope():
        _build_for(self, args, kwargs)


_build_for = Layer._build_for


def _in_either_format(module: Any) -> None:
    """Let `serialize` and `deserialize` of a module take ``use_legacy_format``."""
    write, read, old = module.serialize, module.deserialize, td.keras.utils.legacy

    def serialize(value: Any, use_legacy_format: bool = False) -> Any:
        return old.serialize_keras_object(value) if use_legacy_format else write(value)

    def deserialize(
        config: Any, custom_objects: Any = None, use_legacy_format: bool = False
    ) -> Any:
        if use_legacy_format:
            return old.deserialize_keras_object(config, vars(module), custom_objects)
        return read(config, custom_objects)

    module.serialize, module.deserialize = serialize, deserialize


# What they have in place of what Keras 3 has.
_OTHERWISE: Members = {
    Layer: {
        "__init__": _init,
        "__call__": _call_in_scope,
        "_base_call": _call_in_scope,
        "_build_for": _build_eagerly,
        "_has_rule": _has_rule,
        "_metrics": property(_own_metrics),
        "_named_call": _call_as_it_is,
        "add_loss": _add_loss,
        "add_metric": _add_metric,
        "call": _inputs,
        "losses": property(_all_losses),
    },
    Model: {
        "call": _call_of_model,
        "input_names": _names_of("sources"),
        "output_names": _names_of("targets"),
        "reset_states": _reset_states,
    },
    Metric: {"__call__": _call_of_metric},
}


def be_keras_2() -> None:
    """Let layers take Keras 2's arguments and name their weights as that does, which libraries look
    them up by; let ``weight.value`` be a method, and files of weights be of Keras 2's kind."""
    generation.is_2 = True
    have_members(_OTHERWISE)
    td.saved_model.save = _save
    take_keras_tensors()
    take_arguments_of_keras_2()
    vars(td.keras.backend)["name_scope"] = td.name_scope  # whose names may have slashes
    # Where Keras 2 had its newer optimizers, which are those that Keras 3 has.
    vars(td.keras.optimizers)["experimental"] = td.keras.optimizers
    for name, kind in optimizers_of_keras_2.OWN.items():
        setattr(td.keras.optimizers.legacy, name, kind)
    of = td.keras
    for module in (
        of.layers, of.losses, of.metrics, of.initializers, of.regularizers, of.constraints,
        of.activations,
    ):  # fmt: skip
        _in_either_format(module)
    for name in ("get", "deserialize"):
        of_keras_3 = getattr(td.keras.optimizers, name)
        setattr(td.keras.optimizers, name, optimizers_of_keras_2.choosing(of_keras_3))
