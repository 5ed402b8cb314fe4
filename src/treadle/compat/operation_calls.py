"""Calls of TensorFlow's operations by the names of their inputs and attributes."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.compat.operation_forms import Form, Input, form_of
from treadle.compat.tensorflow_ops import run_operation
from treadle.core.origin import at, user_origin

# Types of sizes, axes and positions: lists of them are int32 where they are empty, too.
_OF_SIZES = frozenset({
    "Index", "Taxis", "Tblock_shape", "Tcrops", "Tdim", "Tidx", "Tindex", "Tindices", "Tlen",
    "Tmultiples", "Tpaddings", "Tperm", "Tshape", "Tshift",
})  # fmt: skip


def function_of(type_: str) -> Callable[..., Any]:
    """The function of `td.raw_ops` for a type, which takes keywords only.

    Raises:
        KeyError: the type is not known.
    """
    form = form_of(type_)
    names = [*(i.name for i in form.inputs), *form.attributes]
    kind = namedtuple(type_, form.results) if len(form.results) > 1 else None

    def call(*args: Any, **given: Any) -> Any:
        given.pop("name", None)
        if args:
            raise TypeError(
                f"{type_} only takes keyword args (possible keys: {names}). Please pass these args "
                f"as kwargs instead.{at(user_origin())}"
            )
        missing = [n for n in names if n not in given and n not in form.defaults]
        if missing or not given.keys() <= set(names):
            wrong = ", ".join(missing or sorted(given.keys() - set(names)))
            raise TypeError(
                f"{type_}: {'missing' if missing else 'unexpected'} arguments: {wrong}"
                f"{at(user_origin())}"
            )
        values = form.defaults | given
        attributes = {key: _attribute(values[name]) for name, key in form.attributes.items()}
        found = run_operation(type_, attributes, *_inputs(form, values))
        if form.gives_list:
            return list(found)
        # Versions of an operation share a rule, and older ones have fewer results.
        return found if kind is None or found is None else kind(*found[: len(form.results)])

    call.__name__ = call.__qualname__ = type_
    call.__module__ = "treadle.raw_ops"
    call.__doc__ = _description(type_, form)
    parameters = [
        inspect.Parameter(
            n, inspect.Parameter.KEYWORD_ONLY,
            default=form.defaults.get(n, inspect.Parameter.empty),
        )
        for n in sorted(names, key=lambda n: n in form.defaults)
    ]  # fmt: skip
    by_name = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = inspect.Signature([*parameters, by_name])  # type: ignore[attr-defined]
    return call


def _description(type_: str, form: Form) -> str:
    inputs = ", ".join(f"{i.name} ({'tensors' if i.is_list else 'a tensor'})" for i in form.inputs)
    attributes = f"; attributes: {', '.join(form.attributes)}" if form.attributes else ""
    results = ", ".join(form.results) or "none"
    return (
        f"TensorFlow's operation {type_}.\n\nIt takes keywords only. Inputs: {inputs or 'none'}"
        f"{attributes}. Results: {results}.\n\n"
        "Raises:\n    TypeError: a missing or unknown keyword."
    )


def _attribute(value: Any) -> Any:
    """An attribute as graphs have it: shapes are lists, texts are no bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, td.TensorShape):
        return value.as_list() if value.rank is not None else None
    return value


def _inputs(form: Form, values: dict[str, Any]) -> list[Any]:
    """The tensors in order; numbers and lists take the dtype of tensors of the same type."""
    given = [
        (part, value)
        for part in form.inputs
        for value in (values[part.name] if part.is_list else [values[part.name]])
    ]
    dtypes: dict[str, Any] = {}
    for part, value in given:
        if td.is_tensor(value):
            dtypes.setdefault(part.type, value.dtype)
    if any(type(value).__module__.startswith("treadle.compat.v1") for _, value in given):
        with td.init_scope():  # what a graph of TensorFlow 1 writes down outlives any trace
            return [
                value if td.is_tensor(value) else _tensor(value, part, dtypes)
                for part, value in given
            ]
    return [_tensor(value, part, dtypes) for part, value in given]


def _tensor(value: Any, part: Input, dtypes: dict[str, Any]) -> Any:
    if td.is_tensor(value):
        return td.convert_to_tensor(value)
    fixed = getattr(td, part.type, None)
    dtype = fixed if isinstance(fixed, td.DType) else dtypes.get(part.type) if part.type else None
    if dtype is None and part.type in _OF_SIZES and not np.size(value):
        dtype = td.int32
    return td.convert_to_tensor(value, dtype)
