"""Datasets inside functions: arguments, captures, and pipelines made from symbolic tensors."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.data.elements import DatasetSpec, spec_key
from treadle.data.iterator import Cursor, GraphIterator
from treadle.data.stages.handles import FromHandle, dataset_of_handle, set_dataset
from treadle.data.stages.stage import Stage, bound, symbols_in
from treadle.iteration import (
    HANDLE,
    context,
    handle_of,
    is_symbolic,
    make_iterator,
    object_of,
    register_node,
    source_length,
)


def open_in_graph(stage: Stage) -> GraphIterator:
    """An iterator that the function opens each time it gets here."""
    symbols = symbols_in(stage)
    places = [id(s) for s in symbols]

    def opener(*arrays: Any) -> Cursor:
        return Cursor(bound(stage, dict(zip(places, arrays, strict=True))))

    handle, slot = make_iterator(symbols, opener)
    return GraphIterator(stage.spec, handle, slot)


def cardinality_in_graph(stage: Stage) -> Any:
    """The cardinality of a pipeline that depends on symbolic tensors."""
    symbols = symbols_in(stage)
    places = [id(s) for s in symbols]

    def counter(*arrays: Any) -> int:
        found: Stage = bound(stage, dict(zip(places, arrays, strict=True)))
        return found.cardinality()

    return source_length(symbols, counter)


def handle_of_dataset(dataset: Any) -> td.Tensor:
    """The handle that stands for a dataset among a function's arguments."""
    stage = dataset._stage
    if isinstance(stage, FromHandle) and stage.handle is not None:
        return stage.handle  # type: ignore[no-any-return]
    if context.recorder is None or not symbols_in(stage):
        return handle_of(dataset)
    recorder, handle = dataset._handle_in_graph or (None, None)
    if handle is None or recorder is not context.recorder:
        handle = _bind_in_graph(dataset)
        dataset._handle_in_graph = (context.recorder, handle)
    return handle


def _bind_in_graph(dataset: Any) -> td.Tensor:
    """The handle of the dataset that this one is when the function runs."""
    symbols = symbols_in(dataset._stage)
    places = [id(s) for s in symbols]

    def opener(*arrays: Any) -> Any:
        return dataset._then(bound(dataset._stage, dict(zip(places, arrays, strict=True))))

    handle: td.Tensor = make_iterator(symbols, opener)[0]
    return handle


def register(kind: type) -> None:
    """Let datasets be arguments of functions, one trace for all with the same element_spec."""
    set_dataset(kind)
    register_node(kind, lambda ds: [handle_of_dataset(ds)], _with_handle, _key)
    register_node(DatasetSpec, lambda spec: [HANDLE], _with_handle, _key)


def _with_handle(dataset: Any, parts: list[Any]) -> Any:
    if isinstance(parts[0], td.Tensor) and not is_symbolic(parts[0]):
        return object_of(int(parts[0]))  # a function returned it
    return dataset_of_handle(dataset.element_spec, parts[0])


def _key(dataset: Any) -> Any:
    return "dataset", spec_key(dataset.element_spec)
