"""All forms, and how they come onto the records of their ops."""

from __future__ import annotations

from functools import cache

from treadle.ops.loading import load_all_ops
from treadle.ops.onnx import (  # noqa: F401  (each adds its forms)
    control,
    elementwise,
    lists,
    positions,
    shaping,
    windows,
)
from treadle.ops.onnx.call import FORMS
from treadle.ops.registry import OPS, set_onnx


@cache
def give_forms() -> None:
    """Give ops their forms."""
    load_all_ops()
    for name, rule in FORMS.items():
        set_onnx(rule, OPS[name])
