"""`print` in jitted functions: each call of the function prints, when its program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.context import context
from treadle.jitted.arrays import direct
from treadle.jitted.iteration import Counted
from treadle.jitted.results import collect
from treadle.ops.control.marks import values_printed
from treadle.ops.control.python_print import python_print


def printed(*values: Any, **options: Any) -> None:
    """``print(*values, **options)``."""
    if context.recorder is None:
        print(*values, **options)
        return
    shown = [list(v.items()) if isinstance(v, Counted) else direct(v) for v in values]
    results, tensors = collect((shown, options), {}, shown=values_printed())

    def arguments(arrays: Sequence[Any]) -> Any:
        return results.pack(arrays, ())

    python_print(tensors, arguments)
