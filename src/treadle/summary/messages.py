"""The messages of TensorBoard's files, from the package tensorboard.

It is an extra (``pip install 'treadle[summary]'``), loaded when the first writer is made.
"""

from __future__ import annotations

import importlib
from typing import Any

from treadle.core.origin import at, user_origin


def message_module(name: str) -> Any:
    """A module of the package tensorboard, as ``compat.proto.event_pb2``.

    Raises:
        ImportError: it is not installed; the text has the command that brings it.
    """
    try:
        return importlib.import_module(f"tensorboard.{name}")
    except ImportError as error:
        raise ImportError(
            f"summaries are written with the package tensorboard, which cannot be imported "
            f"({error}): pip install 'treadle[summary]'{at(user_origin())}"
        ) from None


def metadata_of(plugin: str, description: str | None = None, **more: Any) -> bytes:
    """The metadata that tell TensorBoard which of its plugins shows a summary.

    Args:
        plugin: the name of its module.
        description: what is shown beside the summary, in Markdown.
        more: what the plugin wants to know besides.
    """
    module = message_module(f"plugins.{plugin}.metadata")
    made = module.create_summary_metadata(display_name=None, description=description, **more)
    return bytes(made.SerializeToString())


def metadata_for(plugin_name: str, content: bytes = b"") -> bytes:
    """The same for a plugin that has no such module."""
    summaries = message_module("compat.proto.summary_pb2")
    data = summaries.SummaryMetadata.PluginData(plugin_name=plugin_name, content=content)
    return bytes(summaries.SummaryMetadata(plugin_data=data).SerializeToString())
