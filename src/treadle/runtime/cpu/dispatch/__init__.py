"""Native calls and operators: the way from CPython to compiled code without Python in between.

A trampoline, driven by plans, takes calls of functions to their programs (`tracing.native_plans`
writes the plans); native operators work on small eager tensors. Both are checked before use, and
everything they do not take is done in Python.
"""

from __future__ import annotations

from treadle.ops.operators import patience


def _load_operators() -> None:
    from treadle.runtime.cpu.dispatch.eager import install

    install()


patience.load = _load_operators  # loading them costs as much as some hundred operators
