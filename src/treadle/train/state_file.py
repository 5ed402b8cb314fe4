"""The file ``checkpoint`` of a directory: which checkpoints there are and which is the latest.

It is a message of TensorFlow's as text, so that either finds checkpoints of the other.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treadle.core.file_errors import file_error
from treadle.train import atomic
from treadle.train.safetensors import SUFFIX

_FILE = "checkpoint"
_LINE = re.compile(r'\s*(\w+)\s*:\s*("(?:[^"\\]|\\.)*"|[-+.\w]+)')


@dataclass
class CheckpointState:
    """What a directory knows about its checkpoints; the last of the paths is the latest.

    Attributes:
        last_preserved_timestamp: when the last one was made that is kept for good.
    """

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """What the file ``checkpoint`` of a directory says; None where there is none.

    Raises:
        ValueError: it names no latest checkpoint.
    """
    folder = os.fspath(checkpoint_dir)
    path = Path(folder, latest_filename or _FILE)
    try:
        text = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        logging.getLogger("treadle").warning("%s is ignored: %s", path, error)
        return None
    state = CheckpointState()
    try:
        for name, value in _LINE.findall(text):
            _put(state, name, value)
    except ValueError as error:
        logging.getLogger("treadle").warning("%s is ignored: %s", path, error)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"Invalid checkpoint state loaded from {folder}")
    state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    state.all_model_checkpoint_paths = [
        os.path.join(folder, p) for p in state.all_model_checkpoint_paths
    ]
    return state


def _put(state: CheckpointState, name: str, value: str) -> None:
    if name == "model_checkpoint_path":
        state.model_checkpoint_path = _unquoted(value)
    elif name == "all_model_checkpoint_paths":
        state.all_model_checkpoint_paths.append(_unquoted(value))
    elif name == "all_model_checkpoint_timestamps":
        state.all_model_checkpoint_timestamps.append(float(value))
    elif name == "last_preserved_timestamp":
        state.last_preserved_timestamp = float(value)


_NAMED = {"n": b"\n", "r": b"\r", "t": b"\t"}


def _unquoted(text: str) -> str:
    """The string that is written in quotes, with bytes by their octal numbers."""

    def meant(found: re.Match[bytes]) -> bytes:
        escape = found[1].decode()
        if escape[0] in "01234567":
            return bytes([int(escape, 8) & 255])
        return _NAMED.get(escape, escape.encode())

    return re.sub(rb"\\([0-7]{1,3}|.)", meant, text[1:-1].encode()).decode()


def _quoted(text: str) -> str:
    marks = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(marks.get(c, c) for c in text) + '"'


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the file ``checkpoint`` of a directory.

    Args:
        model_checkpoint_path: the prefix of the latest checkpoint.
        all_model_checkpoint_paths: all prefixes, the latest last.
        all_model_checkpoint_timestamps: when they were made.
        last_preserved_timestamp: when the last one was made that is kept for good.

    Raises:
        RuntimeError: a checkpoint has the name of the file.
    """
    latest, paths = model_checkpoint_path, list(all_model_checkpoint_paths or ())
    if not paths or paths[-1] != latest:
        paths.append(latest)
    file = os.path.join(save_dir, latest_filename or _FILE)
    if file == latest:
        raise RuntimeError(
            f"Save path '{latest}' conflicts with path used for checkpoint state.  Please use a "
            "different save path."
        )
    lines = [f"model_checkpoint_path: {_quoted(os.path.relpath(latest, save_dir))}"]
    lines += [
        f"all_model_checkpoint_paths: {_quoted(os.path.relpath(p, save_dir))}" for p in paths
    ]
    times = all_model_checkpoint_timestamps or ()
    lines += [f"all_model_checkpoint_timestamps: {t!r}" for t in times]
    if last_preserved_timestamp is not None:
        lines.append(f"last_preserved_timestamp: {last_preserved_timestamp!r}")
    text = "".join(f"{line}\n" for line in lines)
    atomic.write(Path(file), [text.encode()], "the list of checkpoints")


def exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of that prefix, treadle's or TensorFlow's."""
    return any(os.path.exists(checkpoint_prefix + suffix) for suffix in (SUFFIX, ".index"))


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The prefix of the latest checkpoint in a directory, for `Checkpoint.restore`; None where
    there is none.

    Args:
        latest_filename: the file that names it, ``checkpoint`` when omitted.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    if exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    logging.getLogger("treadle").error(
        "There are no files of checkpoint %s", state.model_checkpoint_path
    )
    return None


def remove(prefix: str) -> None:
    """Delete the files of a checkpoint, treadle's or TensorFlow's; a missing one is no error.

    Raises:
        PermissionDeniedError and the like: a file cannot be deleted.
    """
    folder, name = os.path.split(prefix)
    shard = re.compile(re.escape(name) + r"(\.safetensors|\.index|\.data-\d{5}-of-\d{5})")
    try:
        for entry in os.listdir(folder or "."):
            if shard.fullmatch(entry):
                os.unlink(os.path.join(folder, entry))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise file_error(error, f"Could not delete checkpoint {prefix}") from error

