"""Files of graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from treadle.compat.v1.graph import Graph
from treadle.train import atomic


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Write a graph into a file, as text to be read or as bytes for `import_graph_def`.

    Returns:
        The path.
    """
    given = graph_or_graph_def
    data = given.as_graph_def() if isinstance(given, Graph) else given
    path = os.path.join(os.fspath(logdir), name)
    text = str(data).encode() if as_text else data.SerializeToString()
    atomic.write(Path(path), [text], "graph")
    return path
