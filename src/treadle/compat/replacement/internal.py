"""``tensorflow.__internal__``, ``tensorflow.__operators__`` and ``keras.__internal__``, as far as
libraries use them."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import treadle as td
from treadle.compat.replacement import structures
from treadle.compat.replacement.composite_tensors import CompositeTensor
from treadle.compat.replacement.functions import smart_cond
from treadle.core.tensor import SymbolicTensor


def _accepted(*args: Any, **kwargs: Any) -> None:
    """Keras asks which classes may be its symbolic tensors; here all composite tensors may."""


TENSORFLOW = SimpleNamespace(
    CompositeTensor=CompositeTensor,
    SymbolicTensor=SymbolicTensor,
    nest=structures,
    smart_cond=SimpleNamespace(smart_cond=smart_cond),
    tracking=SimpleNamespace(
        no_automatic_dependency_tracking=lambda method: method,
        Trackable=td.Module,
        AutoTrackable=td.Module,
    ),
    decorator=SimpleNamespace(
        make_decorator=lambda target, decorated, *args: decorated,
        unwrap=lambda function: ([], inspect.unwrap(function)),
    ),
    eager_context=SimpleNamespace(executing_eagerly=td.executing_eagerly),
)


def _equal(x: Any, y: Any) -> Any:
    return False if y is None else td.convert_to_tensor(x) == y


def _not_equal(x: Any, y: Any) -> Any:
    return True if y is None else td.convert_to_tensor(x) != y


def _item(tensor: Any, slice_spec: Any) -> Any:
    return td.convert_to_tensor(tensor)[slice_spec]


OPERATORS = SimpleNamespace(add=td.add, eq=_equal, getitem=_item, ne=_not_equal)
KERAS = SimpleNamespace(utils=SimpleNamespace(register_symbolic_tensor_type=_accepted))
