"""The gradients of ``cond`` and ``while``. Their rules are imported when the first is taken."""

from __future__ import annotations

from typing import Any

from treadle.ops.control.control_flow import COND, WHILE
from treadle.ops.registry import set_gradient


def _cond_gradient(call: Any, *output_grads: Any) -> list[Any]:
    from treadle.autodiff.cond import cond_gradient

    return cond_gradient(call, output_grads)


def _while_gradient(call: Any, *output_grads: Any) -> list[Any]:
    from treadle.autodiff.loop import while_gradient

    return while_gradient(call, output_grads)


set_gradient(COND, _cond_gradient)
set_gradient(WHILE, _while_gradient)
