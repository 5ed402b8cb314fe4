"""``td.compat.v1.logging``: messages, in the words of TensorFlow 1."""

from __future__ import annotations

import logging as python_logging
from collections import Counter
from typing import Any

from treadle.names import missing_in

_logger = python_logging.getLogger("treadle")
DEBUG, INFO, WARN, ERROR, FATAL = (
    python_logging.DEBUG, python_logging.INFO, python_logging.WARNING, python_logging.ERROR,
    python_logging.FATAL,
)  # fmt: skip
WARNING = WARN
_seen: Counter[Any] = Counter()

debug, info, warning, error, fatal, log = (
    _logger.debug, _logger.info, _logger.warning, _logger.error, _logger.fatal, _logger.log,
)  # fmt: skip
warn = warning


def set_verbosity(v: Any) -> None:
    """From now on messages of this level and above are shown."""
    _logger.setLevel(v)
    if not _logger.handlers and not python_logging.getLogger().handlers:
        handler = python_logging.StreamHandler()
        handler.setFormatter(python_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _logger.addHandler(handler)


def get_verbosity() -> int:
    """The level from which messages are shown."""
    return _logger.getEffectiveLevel()


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """A message of every n-th call."""
    _seen[msg] += 1
    if (_seen[msg] - 1) % n == 0:
        _logger.log(level, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """A message of the first n calls."""
    _seen[msg] += 1
    if _seen[msg] <= n:
        _logger.log(level, msg, *args)


def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """A message where a condition holds."""
    if condition:
        _logger.log(level, msg, *args)


def vlog(level: int, msg: str, *args: Any) -> None:
    """A message for debugging."""
    _logger.debug(msg, *args)


def flush() -> None:
    """Write what was said."""
    for handler in _logger.handlers:
        handler.flush()


def TaskLevelStatusMessage(msg: str) -> None:
    """An error's message."""
    _logger.error(msg)

__getattr__ = missing_in(__name__)
