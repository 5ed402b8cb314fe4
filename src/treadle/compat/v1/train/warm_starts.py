"""Variables that begin with the values of a checkpoint: their initializers read it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.host_operations import host_operation
from treadle.compat.v1.initializers import zeros_initializer
from treadle.compat.v1.recording import recorded
from treadle.compat.v1.scopes import variables_of_scopes
from treadle.compat.v1.train.saver import latest_checkpoint
from treadle.compat.v1.variables import Variable
from treadle.core.origin import at, user_origin


class VocabInfo(NamedTuple):
    """How rows (or columns) of a variable go by the words of a vocabulary, which has changed.

    Attributes:
        new_vocab, old_vocab: files with a word in each line.
        new_vocab_size, old_vocab_size: how many of the words count; -1: all of the old ones.
        num_oov_buckets: how many rows there are for other words behind those of the new ones.
        backup_initializer: gives the rows of new words; zeros where omitted.
        axis: 0 for rows, 1 for columns.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class _Checkpoint:
    """A checkpoint that initializers read.

    Raises:
        ValueError: there is none.
    """

    def __init__(self, path: Any) -> None:
        self.given = os.fspath(path)
        found = latest_checkpoint(self.given) if os.path.isdir(self.given) else self.given
        if found is None:
            raise ValueError(f"Couldn't find a checkpoint in {self.given}{at(user_origin())}")
        self.reader = td.train.load_checkpoint(found)
        self.shapes: dict[str, Any] = self.reader.get_variable_to_shape_map()

    def array(self, name: str) -> Any:
        return np.asarray(self.reader.get_tensor(name))

    def begin(self, variable: Any, name: str) -> None:
        """Let a variable begin with a value of the checkpoint.

        Raises:
            ValueError: there is none, or it has another shape.
        """
        if name not in self.shapes:
            raise ValueError(
                f"Tensor {name} is not found in {self.given} checkpoint {self.shapes}"
                f"{at(user_origin())}"
            )
        if not variable.shape.is_compatible_with(self.shapes[name]):
            raise ValueError(
                f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of "
                f"tensor {name} ({self.shapes[name]}) from checkpoint reader.{at(user_origin())}"
            )
        if isinstance(variable, td.Variable):
            variable.assign(self.array(name))
        else:
            variable.begin_with(self._tensor(name, variable.dtype))

    def _tensor(self, name: str, dtype: Any) -> Any:
        """A tensor that is read from the checkpoint when it is run."""

        def read(session: Any) -> list[Any]:
            return [self.array(name).astype(dtype.np_dtype, copy=False)]

        graph, kind = get_default_graph(), "RestoreV2"
        with graph.at_root():
            spec = td.TensorSpec(self.shapes[name], dtype)
            op = host_operation(graph, "checkpoint_initializer", kind, read, [], [spec])
        return op.outputs[0]


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """Let variables begin with the values of a checkpoint: running their initializers reads it.

    Args:
        assignment_map: pairs of what is in the checkpoint and what it is for: a name and a
            variable or its name, or a scope (``scope/``; ``/`` for all) and a scope.

    Raises:
        ValueError: something is not in the checkpoint, or of another shape.
    """
    checkpoint, known = _Checkpoint(ckpt_dir_or_file), variables_of_scopes()
    pairs = assignment_map.items() if isinstance(assignment_map, Mapping) else assignment_map
    for there, here in sorted(pairs, key=lambda pair: pair[0]):
        variable = known.get(here) if isinstance(here, str) else here
        if variable is not None:
            checkpoint.begin(variable, there)
            continue
        scope = here.rpartition("/")[0]
        if not there.endswith("/"):
            raise ValueError(
                f"Assignment map with scope only name {scope} should map to scope only {there}. "
                f"Should be 'scope/': 'other_scope/'.{at(user_origin())}"
            )
        for name in sorted(known):
            if not scope or name.startswith(f"{scope}/"):
                inner = name[len(scope) + 1 :] if scope else name
                checkpoint.begin(known[name], inner if there == "/" else there + inner)


def _chosen(given: Any) -> dict[str, Any]:
    """The variables that are meant, by their names."""
    graph = get_default_graph()
    if given is None or isinstance(given, str):
        found = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, given)
    elif all(isinstance(v, str) for v in given):
        found = [v for s in given for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES, s)]
    else:
        found = list(given)
        if not all(isinstance(v, Variable) for v in found):
            raise ValueError(
                "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`."
                f"{at(user_origin())}"
            )
    return {v.op.name: v for v in found}


def warm_start(ckpt_to_initialize_from: Any, vars_to_warm_start: Any = ".*",
               var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
               var_name_to_prev_var_name: Mapping[str, str] | None = None) -> None:  # fmt: skip
    """Let variables begin with the values that variables of the same names have in a checkpoint.

    Args:
        vars_to_warm_start: an expression that names of variables that are trained match; a list of
            such for all variables; or a list of variables.
        var_name_to_vocab_info: for variables whose rows go by words, what has changed.
        var_name_to_prev_var_name: other names that variables have in the checkpoint.

    Raises:
        ValueError: something is not in the checkpoint, or a name is of no variable.
    """
    checkpoint, variables = _Checkpoint(ckpt_to_initialize_from), _chosen(vars_to_warm_start)
    words, names = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    for what, given in (("vocab_info", words), ("prev_var_name", names)):
        unknown = sorted(set(given) - set(variables))
        if unknown:
            raise ValueError(
                f"You provided the following variables in var_name_to_{what} that were not used: "
                f"{unknown}. Here is the list of viable variable names: {sorted(variables)}"
                f"{at(user_origin())}"
            )
    for name, variable in variables.items():
        there = names.get(name, name)
        if name in words:
            variable.begin_with(_remapped(checkpoint, variable, there, words[name]))
        else:
            checkpoint.begin(variable, there)


def _remapped(checkpoint: _Checkpoint, variable: Any, name: str, info: VocabInfo) -> Any:
    """The value of a variable whose rows or columns go by words."""
    if name not in checkpoint.shapes:
        raise ValueError(
            f"Tensor {name} is not found in {checkpoint.given} checkpoint{at(user_origin())}"
        )
    if info.axis not in (0, 1):
        raise ValueError(f"The axis of a vocabulary is 0 or 1, not {info.axis}{at(user_origin())}")
    new, old = _lines(info.new_vocab, info.new_vocab_size), _lines(
        info.old_vocab, info.old_vocab_size
    )
    sizes = variable.shape.as_list()
    if sizes[info.axis] != len(new) + info.num_oov_buckets:
        raise ValueError(
            f"{variable.name} has {sizes[info.axis]} places for {len(new)} words and "
            f"{info.num_oov_buckets} more{at(user_origin())}"
        )
    place = {word: i for i, word in enumerate(old)}
    kept = [(i, place[word]) for i, word in enumerate(new) if word in place]
    start = (info.backup_initializer or zeros_initializer())(sizes, dtype=variable.dtype)
    value = checkpoint.array(name).astype(variable.dtype.np_dtype, copy=False)
    rows = np.take(value, [there for _, there in kept], info.axis)
    return recorded(_with_parts, "Remapped")(start, rows, [here for here, _ in kept], info.axis)


def _lines(path: str, count: int) -> list[str]:
    with open(path, encoding="utf-8") as file:
        words = [line.rstrip("\r\n") for line in file]
    return words if count < 0 else words[:count]


def _with_parts(start: Any, rows: Any, places: Iterable[int], axis: int) -> Any:
    """A matrix with other rows, or columns, at some places."""
    start, rows = td.convert_to_tensor(start), td.convert_to_tensor(rows)
    indices = td.reshape(td.constant(list(places), td.int64), [-1, 1])
    if axis == 0:
        return td.tensor_scatter_nd_update(start, indices, rows)
    turned = td.tensor_scatter_nd_update(td.transpose(start), indices, td.transpose(rows))
    return td.transpose(turned)
