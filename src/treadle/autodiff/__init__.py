"""Gradients: the tape, reverse mode, custom gradients, control flow, numeric checking."""

import importlib
from typing import Any

_PUBLIC = {
    "ForwardAccumulator": "forward_mode",
    "GradientTape": "tape",
    "UnconnectedGradients": "tape",
    "custom_gradient": "custom",
    "grad_pass_through": "custom",
    "recompute_grad": "custom",
    "gradients_function": "functional",
    "implicit_gradients": "functional",
    "implicit_value_and_gradients": "functional",
    "make_vjp": "functional",
    "value_and_gradients_function": "functional",
    "GradientError": "checking",
    "check_gradients": "checking",
    "compute_gradient": "checking",
}


def __getattr__(name: str) -> Any:
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"treadle.autodiff has no {name!r}")
    value = getattr(importlib.import_module(f"treadle.autodiff.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
