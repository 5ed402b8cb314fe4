"""Which variables of a checkpoint TensorBoard's projector shows as points."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.names import missing_in
from treadle.summary.messages import message_module

_FILE = "projector_config.pbtxt"
_MESSAGES = ("ProjectorConfig", "EmbeddingInfo", "SpriteMetadata")
_missing = missing_in(__name__)

__all__ = ["visualize_embeddings"]


def __getattr__(name: str) -> Any:
    """The messages are those of the package tensorboard, which is loaded when they are used."""
    if name in _MESSAGES:
        return getattr(message_module("plugins.projector.projector_config_pb2"), name)
    return _missing(name)


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write down what the projector shows, in the folder of a writer.

    Args:
        summary_writer: a `FileWriter`, or the folder.
        config: a ProjectorConfig.

    Raises:
        ValueError: there is no folder.
    """
    get_folder = getattr(summary_writer, "get_logdir", None)
    folder = get_folder() if get_folder is not None else summary_writer
    if not folder:
        raise ValueError(f"Summary writer must have a logdir{at(user_origin())}")
    os.makedirs(folder, exist_ok=True)
    Path(os.fspath(folder), _FILE).write_text(str(config))
