"""Models as saved models (`td.saved_model`): the functions that they have there, `Model.export`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.keras.layers.base import Layer

if TYPE_CHECKING:
    from treadle.keras.models.model import Model


def input_types(model: Model) -> list[Any] | None:
    """The types of what a model is called on, any number of examples; None where it is not known:
    before the first call of a model that defines `call`."""
    if model._layer_network is not None:
        return [td.nest.map_structure(_as_type, model._layer_network.inputs)]
    shape = model._build_shapes.get("input_shape")
    if model._called_on is None and isinstance(shape, tuple):
        return [td.TensorSpec([None, *shape[1:]], model.dtype)]
    return model._called_on


def types_of_call(args: Sequence[Any]) -> list[Any]:
    """The types of a call's arguments, with any number of examples; those up to the first that is
    no structure of tensors."""
    found = []
    for value in args:
        if not all(isinstance(leaf, td.Tensor) for leaf in td.nest.flatten(value)):
            break
        found.append(td.nest.map_structure(_batched, value))
    return found


def _batched(tensor: td.Tensor) -> td.TensorSpec:
    dims = tensor.shape.as_list()
    return td.TensorSpec([None, *dims[1:]] if dims else [], tensor.dtype)


def saved_children(model: Model) -> dict[str, Any]:
    """What a saved model has for a model beside what is tracked: a function to call it, in training
    or not; that of the default signature; and the lists of its variables."""
    found = {
        "variables": list(model.variables),
        "trainable_variables": list(model.trainable_variables),
        "non_trainable_variables": list(model.non_trainable_variables),
    }
    types = input_types(model)
    if types is None:
        return found

    def call(inputs: Any, training: bool = False) -> Any:
        return model(inputs, training=training)

    def call_on_all(*inputs: Any, training: bool = False) -> Any:
        return model(*inputs, training=training)

    function = td.function(autograph=False)(call if len(types) == 1 else call_on_all)
    for training in (False, True):
        function.get_concrete_function(*types, training=training)
    signed = td.function(input_signature=_numbered(types), autograph=False)
    default = signed(lambda *inputs: model(*inputs))
    return found | {"__call__": function, "_default_save_signature": default}


def _numbered(types: Sequence[Any]) -> list[Any]:
    """The types of arguments, whose tensors have the names that Keras gives those of the default
    signature: inputs, inputs_1 and so on."""
    leaves = td.nest.flatten(types)
    named = [_named(kind, f"inputs_{i}" if i else "inputs") for i, kind in enumerate(leaves)]
    return list(td.nest.pack_sequence_as(types, named))


def _all_named(types: Sequence[Any]) -> list[Any]:
    """The types of arguments, each that is a single tensor's with a name."""
    names = ["inputs"] if len(types) == 1 else [f"inputs_{i}" for i in range(len(types))]
    return [_named(kind, name) for kind, name in zip(types, names, strict=True)]


def _named(kind: Any, name: str) -> Any:
    """A single tensor's type with a name."""
    return td.TensorSpec(kind.shape, kind.dtype, name) if isinstance(kind, td.TensorSpec) else kind


def export(
    model: Model, filepath: Any, format: str = "tf_saved_model", verbose: bool | None = None,
    input_signature: Any = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Write a model in a format; `Model.export` says how."""
    if format not in _FORMATS:
        known = ", ".join(map(repr, _FORMATS))
        raise ValueError(f"export: format={format!r} is not supported: there are {known}")
    if not model.built:
        raise ValueError(
            "The model provided has not yet been built. It must be built before export."
        )
    types = input_signature if input_signature is not None else input_types(model)
    if types is None:
        raise ValueError(
            "The model provided has never called. It must be called at least once before export."
        )
    _FORMATS[format](model, filepath, types, bool(verbose), **kwargs)


def _as_saved_model(
    model: Model, filepath: Any, types: Sequence[Any], verbose: bool, **kwargs: Any
) -> None:
    archive = ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model, types)
    archive.write_out(filepath, verbose=verbose, **kwargs)


def _as_onnx(
    model: Model, filepath: Any, types: Sequence[Any], verbose: bool, **kwargs: Any
) -> None:
    made = td.onnx.export(_served(model, types), filepath, **kwargs)
    if verbose:
        print(f"Saved artifact at '{os.fspath(filepath)}': {len(made.graph.node)} nodes of ONNX")


def _as_shared_object(
    model: Model, filepath: Any, types: Sequence[Any], verbose: bool, **kwargs: Any
) -> None:
    made = td.shared_object.export({"serve": _served(model, types)}, filepath, **kwargs)
    if verbose:
        print(f"Saved artifact at '{made.library}', and its header at '{made.header}'")


_FORMATS: dict[str, Any] = {
    "tf_saved_model": _as_saved_model, "onnx": _as_onnx, "shared_object": _as_shared_object,
}  # fmt: skip


def _served(model: Model, types: Sequence[Any]) -> Any:
    """The concrete function of a model without training."""
    kinds = [td.nest.map_structure(_as_type, kind) for kind in types]
    compiled = td.function(input_signature=_all_named(kinds), autograph=False)
    return compiled(lambda *inputs: model(*inputs)).get_concrete_function()


class ExportArchive:
    """Writes saved models of functions that the program chooses, its *endpoints*.

    Each is a function of the loaded object, and a signature; the first one is the signature
    ``serving_default`` as well.
    """

    def __init__(self) -> None:
        self._tracked: list[Any] = []
        self._endpoints: dict[str, Any] = {}
        self._collections: dict[str, list[td.Variable]] = {}

    @property
    def variables(self) -> list[td.Variable]:
        """The variables of what is tracked, and those that endpoints use."""
        traces = [one for made in self._endpoints.values() for one in made.concrete_functions]
        used = [v for trace in traces for v in trace.variables]
        held = [v for one in self._tracked for v in getattr(one, "variables", ())]
        return list({id(v): v for v in [*held, *used]}.values())

    @property
    def trainable_variables(self) -> list[td.Variable]:
        """Those that are trained."""
        held = [v for one in self._tracked for v in getattr(one, "variables", ())]
        trained = [v for one in self._tracked for v in getattr(one, "trainable_variables", ())]
        known = {id(v) for v in held}
        used = [v for v in self.variables if v.trainable and id(v) not in known]
        return list({id(v): v for v in [*trained, *used]}.values())

    @property
    def non_trainable_variables(self) -> list[td.Variable]:
        """Those that are not trained."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    def track(self, resource: Any) -> None:
        """Have the variables of a layer or model in the archive, or a table that changes. What
        tables hold that do not is in the functions that use them.

        Raises:
            ValueError: it is no such object, or a layer that is not built.
        """
        constant = td.lookup.StaticHashTable | td.lookup.StaticVocabularyTable
        if not (hasattr(resource, "_trackable_children") or isinstance(resource, constant)):
            raise ValueError(
                "Invalid resource type. Expected an instance of a Keras `Layer` or `Model`, or a "
                "`Module`, a table or another object that checkpoints have. Received instead an "
                f"object of type '{type(resource).__name__}'."
            )
        if isinstance(resource, Layer) and not resource.built:
            raise ValueError(
                "The layer provided has not yet been built. It must be built before export."
            )
        if not any(resource is other for other in self._tracked):
            self._tracked.append(resource)

    def add_endpoint(
        self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any
    ) -> Any:
        """Have a function in the archive.

        Args:
            name: its name in the loaded object.
            fn: a function or layer; without `input_signature` one that `td.function` made and that
                was called, or has one.
            input_signature: for each argument a `td.TensorSpec`, or a nested structure of them.

        Returns:
            The function.

        Raises:
            ValueError: the name is taken, or the types of the arguments are not known.
        """
        if name in self._endpoints:
            raise ValueError(f"Endpoint name '{name}' is already taken.")
        if isinstance(fn, Layer):
            self.track(fn)
        if input_signature is not None:
            types = [td.nest.map_structure(_as_type, kind) for kind in input_signature]
            compiled = td.function(input_signature=types, autograph=False)
            # The arguments of a function have its names, those of a layer's call have none.
            own = inspect.isroutine(fn) and fn.__name__ != "__call__"
            made = compiled(fn if own else lambda *inputs: fn(*inputs))
            made.get_concrete_function()
        elif not hasattr(fn, "concrete_functions"):
            raise ValueError(
                "If the `fn` argument provided is not a compiled function, you must provide an "
                f"`input_signature` argument to specify the shapes and dtypes of `fn`. Got {fn!r}"
            )
        elif not fn.concrete_functions and fn.input_signature is None:
            raise ValueError(
                f"The provided function {fn!r} has never been called. To specify the expected "
                "shape and dtype of its arguments, call it at least once or give `input_signature`"
            )
        else:
            made = fn
        self._endpoints[name] = made
        return made

    def track_and_add_endpoint(
        self, name: str, resource: Any, input_signature: Any, **kwargs: Any
    ) -> Any:
        """`track` a layer, and have its call as an endpoint, which is returned."""
        self.track(resource)
        return self.add_endpoint(name, resource, input_signature, **kwargs)

    def add_variable_collection(self, name: str, variables: Any) -> None:
        """Have a list of variables in the archive, an attribute of the loaded object.

        Raises:
            ValueError: they are none.
        """
        listed = list(variables)
        if not all(isinstance(v, td.Variable) for v in listed):
            raise ValueError(
                f"Expected all elements in `variables` to be Variable instances. Got {listed}"
            )
        self._collections[name] = listed

    def write_out(self, filepath: Any, options: Any = None, verbose: bool = True) -> None:
        """Write the archive into a folder, for `td.saved_model.load` and `keras.layers.TFSMLayer`.

        Args:
            options: a `td.saved_model.SaveOptions`.
            verbose: whether to print the endpoints.

        Raises:
            ValueError: there are no endpoints.
        """
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        signatures = {name: _signature(made) for name, made in self._endpoints.items()}
        signatures = {name: found for name, found in signatures.items() if found is not None}
        if "serving_default" not in signatures and signatures:
            signatures["serving_default"] = next(iter(signatures.values()))
        td.saved_model.save(_Archived(self), filepath, signatures=signatures, options=options)
        if verbose:
            print(f"Saved artifact at '{os.fspath(filepath)}'. The following endpoints are there:")
            for name, made in self._endpoints.items():
                print(f"* Endpoint '{name}': {made.pretty_printed_concrete_signatures()}")


class _Archived:
    """What is saved of an archive."""

    def __init__(self, archive: ExportArchive) -> None:
        self._archive = archive

    def _trackable_children(self) -> dict[str, Any]:
        found = self._archive
        lists = {
            "variables": found.variables,
            "trainable_variables": found.trainable_variables,
            "non_trainable_variables": found.non_trainable_variables,
        }
        rest = [
            one for one in found._tracked
            if hasattr(one, "_trackable_children") and not isinstance(one, td.Module)
        ]  # fmt: skip
        return {**lists, "_tracked": rest, **found._collections, **found._endpoints}


def _signature(function: Any) -> Any:
    """The concrete function that is an endpoint's signature: the only one that there is."""
    if function.input_signature is not None:
        return function
    known = function.concrete_functions
    return known[0] if len(known) == 1 else None


def _as_type(kind: Any) -> td.TensorSpec:
    """The type of a tensor of a type, or of what `keras.Input` gave."""
    return td.TensorSpec(kind.shape, kind.dtype, getattr(kind, "name", None))
