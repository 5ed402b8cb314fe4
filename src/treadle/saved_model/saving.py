"""``td.saved_model.save``: writes an object with its variables and functions."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.context import context
from treadle.core.origin import at, user_origin
from treadle.core.spec import ListSpec, ResourceSpec
from treadle.core.tensor import Tensor
from treadle.ops.random.generator import Generator
from treadle.ops.random.state import Stream
from treadle.ops.state import Variable
from treadle.saved_model import files
from treadle.saved_model.assets import Asset
from treadle.saved_model.functions import (
    Arrays,
    NotPlainError,
    Record,
    graph_text,
    input_signature_of,
    literal,
    parameters_of,
    record_of,
)
from treadle.saved_model.objects import children, concrete_functions, function_of
from treadle.saved_model.options import SaveOptions
from treadle.saved_model.signatures import SignatureMap, signatures_of
from treadle.tracing.any_rank import AnyRankFunction
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function
from treadle.train import own_files
from treadle.train.atomic import write_folder
from treadle.train.checkpoint import Checkpoint
from treadle.train.nodes import VALUE, key
from treadle.train.safetensors import SUFFIX, Array
from treadle.train.trackable import Walk
from treadle.version import __version__


def save(
    obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None
) -> None:
    """Write an object as a saved model: its variables, the functions that `td.function` made of its
    methods and attributes, and the objects that it refers to.

    A function is saved with its concrete functions: those that calls have made so far, and that of
    its `input_signature`. Those for arguments that have no text, as objects of a user's class, are
    left out, with a warning.

    A model that is in the folder stays until the new one is on the disk; other files stay.

    Args:
        obj: a Module, a Keras model, a `td.train.Checkpoint`, or a compiled function.
        export_dir: the folder, which is made if it is not there.
        signatures: a function with an `input_signature`, a concrete function, or a dict of such;
            when omitted, the object's only function that could be one.
        options: a `SaveOptions`.

    Raises:
        ValueError: `obj` cannot be saved, or a signature is no function of tensors.
        AssertionError: a function uses a variable that the object does not refer to.
        NotImplementedError: called while a function is traced.
        ResourceExhaustedError, PermissionDeniedError and the like: the files cannot be written.
    """
    if context.recorder is not None:
        raise NotImplementedError(
            "Calling td.saved_model.save() from a function is not supported: call it between calls "
            f"of functions{at(user_origin())}"
        )
    function = function_of(obj)
    if function is not None:
        obj = _FunctionAlone(function)
    if not hasattr(type(obj), "_trackable_children"):
        raise ValueError(
            "Expected an object with variables or functions for export, such as a td.Module, a "
            f"Keras model or a td.train.Checkpoint. Got {obj!r} with type {type(obj)}"
            f"{at(user_origin())}"
        )
    model = _Model(obj, signatures, options or SaveOptions())
    write_folder(Path(os.fspath(export_dir)), model.write, files.INDEX, "saved model")


class _FunctionAlone:
    """Stands for a function that is saved without an object."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def _trackable_children(self) -> dict[str, Any]:
        return {"__call__": self.function, "variables": list(self.function.variables)}


class _Model:
    """A model that is being saved.

    Args:
        root: the object.
        signatures: as for `save`.
    """

    def __init__(self, root: Any, signatures: Any, options: SaveOptions) -> None:
        self.options = options
        given = getattr(root, "signatures", None)
        if signatures is None and isinstance(given, SignatureMap):
            signatures = given
        if not isinstance(given, SignatureMap) and "signatures" in children(root):
            raise ValueError(
                "The attribute 'signatures' of the object that is saved is the name that a loaded "
                "model has its signatures under: give it another name, and signatures to save() by "
                f"its argument signatures{at(user_origin())}"
            )
        # Traces may make variables: they come before the objects are looked at.
        found = None if signatures is None else signatures_of(signatures, {})
        self.checkpoint = root if isinstance(root, Checkpoint) else Checkpoint(root)
        self.checkpoint.save_counter  # noqa: B018  (makes it, so that `restore` finds it)
        self.walk = Walk(root, children=children, with_slots=False)
        saved = self.checkpoint._walk()
        others = self._without_values(saved)
        if others:  # as the states of seeds, which other checkpoints do without
            self.checkpoint = Checkpoint(root, variables_of_functions=others)
            self.checkpoint.save_counter  # noqa: B018
            saved = self.checkpoint._walk()
        self.paths = {id(value): path for path, value, _ in saved.valued()}
        self.arrays = Arrays()
        self.constants: dict[int, tuple[str, Tensor]] = {}  # by id
        self.assets: dict[str, Path] = {}
        self.texts: list[str] = []
        self.records: list[Record] = []
        self.numbers: dict[ConcreteFunction, int] = {}
        self.parts = {
            id(part): number
            for number, value in enumerate(self.walk.objects)
            for part in _captured_parts(value)
        }
        if found is None:
            parts = {name: self.walk.objects[place] for name, place in self.walk.edges[0].items()}
            found = signatures_of(None, parts)
        self.signatures: dict[str, list[int]] = {}
        for name, concrete in found.items():
            traces = concrete.traces if isinstance(concrete, AnyRankFunction) else [concrete]
            try:
                self.signatures[name] = [self.number_of(trace) for trace in traces]
            except ValueError as problem:
                if signatures is not None:
                    raise
                _warn(f"the signature {name!r}: {problem}")
        self.objects = [self.described(number) for number in range(len(self.walk.objects))]
        self.aliases = {
            name: [self.number_of(concrete) for concrete in concrete_functions(value)]
            for name, value in options.function_aliases.items()
        }

    def _without_values(self, saved: Walk) -> list[Variable]:
        """The variables among the objects whose values a checkpoint of the root has not."""
        known = {id(value) for _, value, _ in saved.valued()}
        return [v for v in self.walk.objects if isinstance(v, Variable) and id(v) not in known]

    # -- files -----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the files into a folder."""
        (folder / files.GRAPHS).write_text("\n".join(self.texts))
        (folder / files.VARIABLES).parent.mkdir()
        self.checkpoint.write(str(folder / files.VARIABLES))
        own_files.write(str(folder / files.CONSTANTS), (), self.values(), {})
        for name, path in self.assets.items():
            (folder / files.ASSETS).mkdir(exist_ok=True)
            shutil.copyfile(path, folder / files.ASSETS / name)
        content = {
            "producer": f"treadle {__version__}",
            "tags": ["serve", *self.options.extra_tags],
            "signatures": self.signatures,
            "aliases": self.aliases,
            "objects": self.objects,
            "functions": self.records,
        }
        others = [files.GRAPHS, files.CONSTANTS + SUFFIX, files.VARIABLES + SUFFIX]
        files.write_index(folder, content, others + [f"{files.ASSETS}/{n}" for n in self.assets])

    def values(self) -> dict[str, Array]:
        """The constants by their names."""
        found: dict[str, Array] = {
            f"arrays/{digest}": np.frombuffer(data, np.uint8)
            for digest, data in self.arrays.contents().items()
        }
        return found | {
            name: np.asarray(x.numpy(), x.dtype.np_dtype) for name, x in self.constants.values()
        }

    # -- objects ---------------------------------------------------------------------------------

    def described(self, number: int) -> Record:
        """An object as plain data."""
        value, edges = self.walk.objects[number], self.walk.edges[number]
        function = function_of(value)
        if isinstance(value, Variable):
            return self.variable(value)
        if isinstance(value, Asset):
            return {"kind": "asset", "file": self.asset(value)}
        if isinstance(value, Tensor):
            return {"kind": "constant", "value": self.constant(value)}
        if isinstance(function, Function):
            return self.function(function)
        if function is not None:
            traces = function.traces if isinstance(function, AnyRankFunction) else [function]
            return {"kind": "concrete", "concrete": [self.number_of(trace) for trace in traces]}
        if isinstance(value, list | tuple | dict):
            kind = next(k for k in (list, tuple, dict) if isinstance(value, k))
            found = {"kind": kind.__name__, "children": edges}
            return found | {"plain": literal(_plain_elements(value, edges))}
        if isinstance(value, Generator):
            return {"kind": "generator", "children": edges}
        name = getattr(value, "name", None)
        return {
            "kind": "object", "children": edges, "name": name if isinstance(name, str) else None
        }  # fmt: skip

    def variable(self, variable: Variable) -> Record:
        return {
            "kind": "variable",
            "type": literal(ResourceSpec(variable.spec.shape, variable.spec.dtype)),
            "name": variable.name,
            "trainable": bool(variable.trainable),
            "synchronization": variable.synchronization.name,
            "aggregation": variable.aggregation.name,
            "value": key(self.paths[id(variable)], VALUE),
        }

    def asset(self, asset: Asset) -> str:
        """The name of an asset's file among the model's."""
        path = Path(asset.asset_path.numpy().decode())
        for name, known in self.assets.items():
            if known == path:
                return name
        name, number = path.name, 1
        while name in self.assets:
            name, number = f"{path.name}_{number}", number + 1
        self.assets[name] = path
        return name

    def constant(self, tensor: Tensor) -> str:
        if isinstance(tensor.spec, ListSpec):
            raise ValueError("a list of tensors that a function captured cannot be saved")
        return self.constants.setdefault(
            id(tensor), (f"tensors/{len(self.constants)}", tensor)
        )[0]

    # -- functions -------------------------------------------------------------------------------

    def function(self, function: Function) -> Record:
        """A function as plain data, without the concrete functions that have none."""
        found, left_out = [], []
        for concrete in function.concrete_functions:
            if not concrete.is_for_any_variables and not concrete.told_apart:
                continue  # there is one for any variables, too
            if not any(getattr(c, "is_symbolic", False) for c in concrete.captured_inputs):
                try:
                    found.append(self.number_of(concrete))
                except ValueError as problem:
                    left_out.append(f"{concrete.pretty_signature()}: {problem}")
        for text in left_out:
            _warn(text)
        return {
            "kind": "function", "name": function.name,
            "parameters": parameters_of(function, self.constant),
            "input_signature": input_signature_of(function), "concrete": found,
            "left_out": left_out,
        }  # fmt: skip

    def number_of(self, concrete: ConcreteFunction) -> int:
        """The number of a concrete function among those of the model.

        Raises:
            ValueError: it holds Python objects.
        """
        if concrete not in self.numbers:
            graph = f"{concrete.name}_{len(self.records)}"
            captures = [self.capture(c, concrete) for c in concrete.captured_inputs]
            try:
                record = record_of(concrete, graph, captures)
            except NotPlainError as problem:
                raise ValueError(f"its argument {problem} has no text") from None
            paths = self.options.save_debug_info
            self.texts.append(graph_text(concrete.graph, graph, self.arrays, paths))
            self.records.append(record)
            self.numbers[concrete] = len(self.records) - 1
        return self.numbers[concrete]

    def capture(self, value: Any, concrete: ConcreteFunction) -> Sequence[Any]:
        """What stands for something that a function captures."""
        if isinstance(value, Stream):
            return "stream", value.op_seed
        number = self.walk.numbers.get(id(value), self.parts.get(id(value)))
        if number is not None:
            return "object", number
        if isinstance(value, Variable):
            raise AssertionError(
                "Tried to export a function which references an 'untracked' resource. Variables "
                "captured by functions must be 'tracked' by assigning them to an attribute of a "
                "tracked object or assigned to an attribute of the main object directly. See the "
                f"information below:\n\tFunction name = {concrete.name}\n\tVariable = {value!r}"
            )
        return "constant", self.constant(value)


def _captured_parts(value: Any) -> Sequence[Any]:
    """What functions capture in place of an object: the path of an asset, and what the replicas of
    a strategy have of a variable."""
    if isinstance(value, Asset):
        return (value.asset_path,)
    parts: Sequence[Any] = getattr(value, "values", ()) if isinstance(value, Variable) else ()
    return parts


def _warn(left_out: str) -> None:
    logging.getLogger("treadle").warning("td.saved_model.save leaves out %s", left_out)


def _plain_elements(container: Any, edges: Any) -> dict[Any, Any]:
    """The elements of a container that are no objects of the model: plain values, or None."""
    named = container if isinstance(container, dict) else dict(enumerate(container))
    found = {}
    for name, value in named.items():
        if str(name) not in edges:
            try:
                literal(value)
                found[name] = value
            except NotPlainError:
                found[name] = None
    return found
