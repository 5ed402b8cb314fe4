"""What TensorBoard's own readers find in files of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tensorboard import data_compat, dataclass_compat
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader
from tensorboard.util import tensor_util


class Entry(NamedTuple):
    """A summary: `kind` is the name of TensorBoard's plugin, `data` says on which of its axes."""

    step: int
    tag: str
    kind: str
    data: int
    value: Any


def event_files(folder: Any) -> list[Path]:
    return sorted(Path(folder).rglob("*tfevents*"))


def events(folder: Any) -> list[Any]:
    """The events in the files of a folder as TensorBoard's server sees them, in order."""
    found = []
    for path in event_files(folder):
        metadata: dict[str, Any] = {}
        for event in LegacyEventFileLoader(str(path)).Load():
            changed = data_compat.migrate_event(event)
            found += dataclass_compat.migrate_event(changed, metadata)
    return found


def entries(folder: Any) -> list[Entry]:
    """All summaries in a folder, in order."""
    found = []
    for event in events(folder):
        for value in event.summary.value:
            kind, data = value.metadata.plugin_data.plugin_name, value.metadata.data_class
            array = tensor_util.make_ndarray(value.tensor)
            found.append(Entry(event.step, value.tag, kind, data, array))
    return found


def accumulated(folder: Any) -> EventAccumulator:
    """What TensorBoard's pages are made from."""
    found = EventAccumulator(str(folder))
    found.Reload()
    return found
