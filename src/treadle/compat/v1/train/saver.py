"""Saver: the values of a session's variables in files, by the names of the variables."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.graph_messages import message
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.graph_def import import_graph_def
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin
from treadle.train import atomic, own_files
from treadle.train.nodes import Node
from treadle.train.state_file import exists as checkpoint_exists
from treadle.train.state_file import (
    get_checkpoint_state,
    latest_checkpoint,
    remove,
    update_checkpoint_state,
)


class Saver:
    """Saves and restores variables of sessions.

    Files are treadle's own; those of TensorFlow's Saver are read, too.

    Args:
        var_list: the variables, or a mapping from names in files to them; all that can be saved
            where omitted.
        max_to_keep: how many checkpoints are kept; 0 or None: all.
        keep_checkpoint_every_n_hours: one of that many hours is kept for good.
        Further arguments are accepted for TensorFlow programs.

    Raises:
        ValueError: there are no variables, or two of one name.
    """

    def __init__(
        self, var_list: Any = None, reshape: bool = False, sharded: bool = False,
        max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None, restore_sequentially: bool = False, saver_def: Any = None,
        builder: Any = None, defer_build: bool = False, allow_empty: bool = False,
        write_version: Any = None, pad_step_number: bool = False,
        save_relative_paths: bool = False, filename: str | None = None,
    ) -> None:  # fmt: skip
        self._given, self._reshape = var_list, reshape
        self._max = max_to_keep or 0
        self._every, self._pad = keep_checkpoint_every_n_hours * 3600, pad_step_number
        self._relative = save_relative_paths
        self._made: list[tuple[str, float]] = []
        self._kept_at = time.time()
        self._names: dict[str, Any] | None = None
        if not defer_build:
            self.build()
            if not self._names and not allow_empty:
                raise ValueError(f"No variables to save{at(user_origin())}")

    def build(self) -> None:
        """Choose the variables."""
        given = self._given
        if given is None:
            graph = get_default_graph()
            given = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            given = given + graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)
        if isinstance(given, Mapping):
            self._names = {str(k): v for k, v in given.items()}
            return
        self._names = {}
        for variable in given:
            is_eager = isinstance(variable, td.Variable)
            name = variable.name.removesuffix(":0") if is_eager else variable.op.name
            if name in self._names and self._names[name] is not variable:
                raise ValueError(f"At least two variables have the same name: {name}")
            self._names[name] = variable

    @property
    def _var_list(self) -> list[Any]:
        """The variables that are saved, as programs of TensorFlow list them."""
        return list(self._chosen().values())

    def _chosen(self) -> dict[str, Any]:
        if self._names is None:
            self.build()
        assert self._names is not None
        return self._names

    def save(
        self, sess: Any, save_path: Any, global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta", write_meta_graph: bool = True, write_state: bool = True,
        strip_default_attrs: bool = False, save_debug_info: bool = False,
    ) -> str:  # fmt: skip
        """Write the values that variables have in a session.

        Args:
            save_path: the beginning of the file's name.
            global_step: a number, or a variable or tensor of one, that follows it.

        Returns:
            The name that `restore` takes.

        Raises:
            FailedPreconditionError: a variable has no value.
            PermissionDeniedError and the like: the files cannot be written.
        """
        path: str = os.fspath(save_path)
        if global_step is not None:
            step = global_step
            if not isinstance(step, int | np.integer):
                step = int(sess.run(global_step)) if sess is not None else int(global_step.numpy())
            path = f"{path}-{step:08d}" if self._pad else f"{path}-{step}"
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        names = self._chosen()
        eager = [k for k, v in names.items() if isinstance(v, td.Variable)]
        values = {k: np.asarray(names[k].numpy()) for k in eager}
        inside = {k: v for k, v in names.items() if k not in values}
        if inside:
            values |= {k: np.asarray(v) for k, v in sess.run(inside).items()}
        own_files.write(path, [Node()], values, {})
        if write_meta_graph and inside:
            self.export_meta_graph(f"{path}.{meta_graph_suffix}", graph=sess.graph)
        self._forget(path)
        if write_state:
            kept = [p for p, _ in self._made]
            update_checkpoint_state(folder or ".", path, kept, latest_filename=latest_filename)
        return path

    def _forget(self, path: str) -> None:
        """Note a checkpoint, and remove the oldest beyond the bound."""
        self._made = [(p, t) for p, t in self._made if p != path]
        self._made.append((path, time.time()))
        while self._max and len(self._made) > self._max:
            old, made_at = self._made.pop(0)
            if made_at - self._kept_at >= self._every:
                self._kept_at = made_at
                continue
            remove(old)
            Path(f"{old}.meta").unlink(missing_ok=True)

    def restore(self, sess: Any, save_path: Any) -> None:
        """Give variables the values of a checkpoint.

        Raises:
            ValueError: `save_path` is None or no checkpoint.
            NotFoundError: a variable is not in it.
            InvalidArgumentError: a value has another shape or dtype.
        """
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        reader = td.train.load_checkpoint(path)
        values = []
        for name, variable in self._chosen().items():
            if not reader.has_tensor(name):
                raise td.errors.NotFoundError(
                    None, None, f"Key {name} not found in checkpoint {path}{at(user_origin())}"
                )
            value = np.asarray(reader.get_tensor(name))
            if self._reshape and variable.shape.is_fully_defined():
                value = value.reshape(variable.shape.as_list())
            if not variable.shape.is_compatible_with(value.shape):
                raise td.errors.InvalidArgumentError(
                    None, None, "Assign requires shapes of both tensors to match. lhs shape= "
                    f"{variable.shape.as_list()} rhs shape= {list(value.shape)}: {name}",
                )  # fmt: skip
            if value.dtype != variable.dtype.np_dtype and not value.dtype.hasobject:
                raise td.errors.InvalidArgumentError(
                    None, None, f"{name}: the checkpoint has {value.dtype.name}, the variable "
                    f"{variable.dtype.name}",
                )  # fmt: skip
            values.append((variable, value))
        for variable, value in values:
            if isinstance(variable, td.Variable):
                variable.assign(value)
            else:
                sess.give_value(variable, td.constant(value, variable.dtype))

    @property
    def last_checkpoints(self) -> list[str]:
        """The names of the checkpoints that are kept, the newest last."""
        return [p for p, _ in self._made]

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        self._made = [(p, time.time()) for p in last_checkpoints]

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Note checkpoints that an earlier process made."""
        self._made = [(p, os.path.getmtime(f)) for p in checkpoint_paths
                      if (f := next(iter(_files(p)), None)) is not None]  # fmt: skip

    def export_meta_graph(
        self, filename: Any = None, graph: Graph | None = None, **more: Any
    ) -> Any:
        """Write the graph, and the names of the variables that are saved."""
        found = _meta_graph(graph or get_default_graph(), list(self._chosen()))
        if filename is not None:
            atomic.write(Path(os.fspath(filename)), [found.SerializeToString()], "graph")
        return found

    def as_saver_def(self) -> Saver:
        return self


_SAVED = "_treadle_saved"  # the collection of the names of variables that are saved


def _meta_graph(graph: Graph, saved: list[str]) -> Any:
    """A message MetaGraphDef with the names of a graph's variables and collections."""
    made = message("MetaGraphDef")()
    made.graph_def.CopyFrom(graph.as_graph_def())
    made.collection_def[_SAVED].node_list.value.extend(saved)
    for key in graph.get_all_collection_keys():
        names = [n for v in graph.get_collection(key) if (n := _name_in(v)) is not None]
        made.collection_def[key].node_list.value.extend(names)
    return made


def _name_in(value: Any) -> str | None:
    """The name under which a collection's value is found again."""
    if isinstance(value, Variable):
        return value.name
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else None


def export_meta_graph(filename: Any = None, graph: Graph | None = None, **more: Any) -> Any:
    """Write a graph, the default one where omitted."""
    return Saver(allow_empty=True).export_meta_graph(filename, graph)


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None,
    **more: Any,
) -> Any:  # fmt: skip
    """Add the graph of a file that `Saver.save` wrote to the default graph.

    Returns:
        A Saver of its variables, or None where it has none.

    Raises:
        OSError: there is no such file.
    """
    kind, graph = message("MetaGraphDef"), get_default_graph()
    found = meta_graph_or_file
    if isinstance(found, bytes):
        found = kind.FromString(found)
    elif not isinstance(found, kind):
        path = os.fspath(meta_graph_or_file)
        if not os.path.exists(path):
            raise OSError(f"File {path} does not exist.")
        found = kind.FromString(Path(path).read_bytes())
    import_graph_def(without_saving(found.graph_def), name=import_scope or "")
    prefix = f"{import_scope}/" if import_scope else ""
    _give_variables(graph, found, prefix)
    for key, collection in found.collection_def.items():
        for name in collection.node_list.value if key != _SAVED else ():
            element: Any = graph.as_graph_element(prefix + name)
            owner = getattr(getattr(element, "op", None), "owner", None)
            value = owner if isinstance(owner, Variable) else element
            if value not in graph.get_collection(key):
                graph.add_to_collection(key, value)
    for variable in graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
        if variable.initializer is None:
            variable.adopt_initializer()
    saved = found.collection_def[_SAVED].node_list.value
    chosen = {n: graph.get_operation_by_name(prefix + n).owner for n in saved}
    if not chosen and found.saver_def.restore_op_name:  # TensorFlow's: all variables by their names
        variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        chosen = {v.op.name.removeprefix(prefix): v for v in variables}
    return Saver(chosen) if chosen else None


_FILES = frozenset({"SaveV2", "RestoreV2", "ShardedFilename", "MergeV2Checkpoints", "Save",
                    "SaveSlices", "Restore", "RestoreSlice"})  # fmt: skip


def without_saving(graph_def: Any) -> Any:
    """A graph without the operations that TensorFlow's savers add to it, which a `Saver` does
    without: those that name files, and what comes from them."""
    gone = {n.name for n in graph_def.node if n.op in _FILES}
    if not gone:
        return graph_def
    found = 0
    while len(gone) > found:
        found = len(gone)
        for node in graph_def.node:
            sources = (n.removeprefix("^").partition(":")[0] for n in node.input)
            if node.name not in gone and any(source in gone for source in sources):
                gone.add(node.name)
    made = message("GraphDef")()
    made.CopyFrom(graph_def)
    del made.node[:]
    made.node.extend(n for n in graph_def.node if n.name not in gone)
    return made


def _give_variables(graph: Graph, found: Any, prefix: str) -> None:
    """Put the variables of a graph of TensorFlow into its collections, which have them as
    messages."""
    named: dict[str, list[Any]] = {}
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, *_SOME_VARIABLES):
        for data in found.collection_def[key].bytes_list.value:
            name = message("VariableDef").FromString(data).variable_name.partition(":")[0]
            named.setdefault(key, []).append(graph.get_operation_by_name(prefix + name).owner)
    for key, variables in named.items():
        for variable in variables:
            if variable not in graph.get_collection(key):
                graph.add_to_collection(key, variable)
    trained = named.get(GraphKeys.TRAINABLE_VARIABLES, [])
    for variables in named.values():
        for variable in variables:
            variable.trainable = variable in trained


_SOME_VARIABLES = (
    GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES,
)  # fmt: skip


def _files(prefix: str) -> list[str]:
    return [prefix + s for s in (".safetensors", ".index") if os.path.exists(prefix + s)]


def get_checkpoint_mtimes(checkpoint_prefixes: list[str]) -> list[float]:
    """When checkpoints were written."""
    return [os.path.getmtime(_files(p)[0]) for p in checkpoint_prefixes]


def remove_checkpoint(checkpoint_prefix: str, checkpoint_format_version: Any = None,
                      meta_graph_suffix: str = "meta") -> None:  # fmt: skip
    """Remove the files of a checkpoint."""
    remove(checkpoint_prefix)


__all__ = [
    "Saver", "checkpoint_exists", "export_meta_graph", "get_checkpoint_mtimes",
    "get_checkpoint_state", "import_meta_graph", "latest_checkpoint", "remove_checkpoint",
    "update_checkpoint_state",
]  # fmt: skip
