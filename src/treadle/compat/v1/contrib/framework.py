"""``td.compat.v1.contrib.framework``: variables by names, and arguments by scopes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from treadle import nest as nest
from treadle.compat.v1 import functions, scopes
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import get_default_graph
from treadle.compat.v1.train.saver import Saver
from treadle.compat.v1.train.schedules import create_global_step as create_global_step
from treadle.compat.v1.train.schedules import get_global_step as get_global_step
from treadle.compat.v1.train.schedules import get_or_create_global_step as get_or_create_global_step
from treadle.names import missing_in
from treadle.train import list_variables as list_variables
from treadle.train import load_checkpoint as load_checkpoint
from treadle.train import load_variable as load_variable

_scopes: list[dict[Any, dict[str, Any]]] = [{}]


def add_arg_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: `arg_scope` may give the function arguments."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **{**_scopes[-1].get(call, {}), **kwargs})

    return call


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[dict[Any, dict[str, Any]]]:
    """In the block functions have these arguments, where calls do not give them."""
    now = {f: dict(v) for f, v in _scopes[-1].items()}
    if isinstance(list_ops_or_scope, dict):
        now = dict(list_ops_or_scope)
    else:
        for function in list_ops_or_scope:
            now[function] = {**now.get(function, {}), **kwargs}
    _scopes.append(now)
    try:
        yield now
    finally:
        _scopes.pop()


def get_variables(scope: Any = None, suffix: str | None = None,
                  collection: Any = GraphKeys.GLOBAL_VARIABLES) -> list[Any]:  # fmt: skip
    """The variables whose names begin with `scope` and end with `suffix`."""
    prefix = getattr(scope, "name", scope)
    found = get_default_graph().get_collection(collection, prefix)
    return [v for v in found if suffix is None or v.op.name.endswith(suffix)]


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables of a name, in whatever scopes."""
    return [v for v in get_variables(scope) if v.op.name.rpartition("/")[2] == given_name]


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose names end so."""
    return get_variables(scope, suffix)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables of models."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """The variables that are trained."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of exactly this name.

    Raises:
        ValueError: there is none, or more than one.
    """
    found = [v for v in get_variables() if v.op.name == var_op_name]
    if len(found) != 1:
        raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")
    return found[0]


def model_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """A variable of a model."""
    made = scopes.get_variable(name, *args, **kwargs)
    get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, made)
    return made


variable = scopes.get_variable


def assign_from_checkpoint_fn(model_path: Any, var_list: Any, ignore_missing_vars: bool = False,
                              reshape_variables: bool = False) -> Callable[[Any], None]:
    """A function of a session that restores variables from a checkpoint."""
    saver = Saver(var_list, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor or variable."""
    return functions.is_tensor(x)

__getattr__ = missing_in(__name__)
