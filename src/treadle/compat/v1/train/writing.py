"""Files of graphs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treadle.compat.graph_messages import message
from treadle.compat.v1.graph import Graph
from treadle.compat.v1.io import tf_record_iterator
from treadle.core.origin import at, user_origin
from treadle.summary.messages import message_module
from treadle.train import atomic


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Write a graph into a file, as text to be read or as bytes for `import_graph_def`.

    Returns:
        The path.

    Raises:
        TypeError: it is neither a graph of `compat.v1` nor a GraphDef.
    """
    given = graph_or_graph_def
    if not isinstance(given, (Graph, message("GraphDef"))):
        kind = type(given).__name__
        why = f"a Graph of compat.v1 or a GraphDef is written, not a {kind}{at(user_origin())}"
        raise TypeError(why)
    data = given.as_graph_def() if isinstance(given, Graph) else given
    path = os.path.join(os.fspath(logdir), name)
    text = str(data).encode() if as_text else data.SerializeToString()
    atomic.write(Path(path), [text], "graph")
    return path


def summary_iterator(path: Any) -> Iterator[Any]:
    """The messages Event of a file of events, in order.

    Raises:
        NotFoundError: there is no such file.
        ImportError: the package tensorboard is not installed.
    """
    kind = message_module("compat.proto.event_pb2").Event
    for record in tf_record_iterator(path):
        yield kind.FromString(record)
