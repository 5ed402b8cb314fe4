"""Messages of AutoGraph about its work (``td.autograph.set_verbosity``, ``td.autograph.trace``)."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

DECISIONS, TEXTS = 1, 3  # levels

_level = int(os.environ.get("AUTOGRAPH_VERBOSITY", "0") or 0)
_to_stdout = False


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """How much AutoGraph tells through the logger ``treadle.autograph``.

    AUTOGRAPH_VERBOSITY sets the level from the start.

    Args:
        level: 0, the default, for nothing; 1 for each function that is converted, or why it is
            not; 3 for the generated code as well; 10, TensorFlow's highest level, is the same.
        alsologtostdout: whether to print it too.

    Raises:
        ValueError: the level is negative.
    """
    global _level, _to_stdout
    if level < 0:
        raise ValueError(f"The verbosity must be 0 or more, got {level}")
    _level, _to_stdout = int(level), bool(alsologtostdout)


def tell(level: int, message: str) -> None:
    """Log a message, if messages of this level are wanted."""
    if _level < level:
        return
    import logging

    logging.getLogger("treadle.autograph").info("%s", message)
    if _to_stdout:
        print(f"AutoGraph: {message}")


def tell_conversion(code: types.CodeType, text: str | None) -> None:
    """Log that a function was converted to a text, or that there was nothing to convert."""
    place = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
    if text is None:
        tell(DECISIONS, f"{place} has nothing to convert")
    elif _level < TEXTS:
        tell(DECISIONS, f"{place} is converted")
    else:
        tell(TEXTS, f"{place} becomes\n{text}")


def trace(*args: Any) -> None:
    """Print the arguments while a function is traced: types and shapes of tensors, not values.

    Like `print`, which does the same in a converted function.
    """
    print(*args, file=sys.stdout)
