"""A warning for NumPy's random numbers drawn while tracing: every later call would reuse them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from treadle.core.origin import at, user_origin

_warned: set[str] = set()


@contextmanager
def watch_numpy_random(name: str) -> Iterator[None]:
    """Warn, once for a function's name, if the block draws from NumPy's global generator."""
    before = None if name in _warned else _state()
    yield
    if before is None or _state() == before:
        return
    _warned.add(name)
    warnings.warn(
        f"{name!r} draws numbers from np.random while it is traced: they are constants of the "
        "graph, the same on every later call. Use td.random (td.random.normal, "
        f"td.random.uniform, ...) to draw anew on every call{at(user_origin())}",
        stacklevel=2,
    )


def _state() -> Any:
    """The state of NumPy's global generator; None while np.random is not in use."""
    module = sys.modules.get("numpy.random.mtrand")
    if module is None:
        return None
    state: Any = module.get_state(legacy=False)
    inner = state["state"]
    return inner["pos"], inner["key"].tobytes(), state["has_gauss"]
