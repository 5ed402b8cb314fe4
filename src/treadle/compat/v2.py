"""``td.compat.v2``: treadle under the name by which programs ask for TensorFlow 2.

    import treadle.compat.v2 as tf
"""

from __future__ import annotations

from typing import Any

import treadle

__path__: list[str] = []  # its modules are treadle's: `td.compat.as_tensorflow` imports them by it


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name not in ("__internal__", "__version__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(treadle, name)


def enable_v2_behavior() -> None:
    """As TensorFlow 2 begins: eager, which treadle is unless `td.compat.v1` records a graph."""
    treadle.compat.v1.enable_v2_behavior()


def __dir__() -> list[str]:
    return [*dir(treadle), "enable_v2_behavior"]
