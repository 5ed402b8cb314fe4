"""Which passes improve programs (``td.config.optimizer``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.core.switches import switch_off_everywhere
from treadle.names import missing_in
from treadle.tracing.function import clear_all_traces

__all__ = ["get_experimental_options", "get_jit", "set_experimental_options", "set_jit"]

# What TensorFlow calls optimizers, and the passes (`td.passes`) that do the same here.
_PASSES: Mapping[str, tuple[str, ...]] = {
    "arithmetic_optimization": ("algebra", "common", "powers"),
    "constant_folding": ("conditionals", "constants"),
    "dependency_optimization": ("dead_code",),
    "disable_meta_optimizer": ("all",),
    "layout_optimizer": ("transposed_factors",),
    "loop_optimization": ("batching", "invariants", "trips"),
    "remapping": ("fusion",),
    "shape_optimization": ("element_shapes",),
    # Nothing here is to be switched: accepted.
    **dict.fromkeys(
        (
            "auto_mixed_precision", "auto_mixed_precision_mkl",
            "auto_mixed_precision_onednn_bfloat16", "debug_stripper", "disable_model_pruning",
            "function_optimization", "implementation_selector", "min_graph_nodes",
            "pin_to_host_optimization", "scoped_allocator_optimization", "use_plugin_optimizers",
        ),
        (),
    ),
}  # fmt: skip
_OFF_IF_TRUE = ("disable_meta_optimizer",)

_options: dict[str, Any] = {"disable_meta_optimizer": False, "disable_model_pruning": False}
_jit: list[str] = [""]


def set_experimental_options(options: Mapping[str, Any]) -> None:
    """Switch passes off and on, by TensorFlow's names: ``{"constant_folding": False}``.

    "arithmetic_optimization", "constant_folding", "dependency_optimization", "layout_optimizer",
    "loop_optimization", "remapping" (fusion) and "shape_optimization" are on unless they are False
    here, "disable_meta_optimizer" switches all passes off. TensorFlow's other names are accepted
    and change nothing. After a change functions are traced again; results do not depend on it.

    Raises:
        ValueError: there is no such name.
    """
    unknown = sorted(set(options) - set(_PASSES))
    if unknown:
        raise ValueError(
            f"There is no optimizer called {', '.join(unknown)}: there are "
            f"{', '.join(sorted(_PASSES))}{at(user_origin())}"
        )
    _options.update(options)
    off = (name for name, value in _options.items() if bool(value) == (name in _OFF_IF_TRUE))
    if switch_off_everywhere(frozenset(found for name in off for found in _PASSES[name])):
        clear_all_traces()


def get_experimental_options() -> dict[str, Any]:
    """What `set_experimental_options` was told."""
    return dict(_options)


def set_jit(enabled: Any) -> None:
    """Accepted for TensorFlow programs: functions are always compiled.

    Args:
        enabled: True, False, "autoclustering" or "".
    """
    _jit[0] = "autoclustering" if enabled in (True, "autoclustering") else ""


def get_jit() -> str:
    """What `set_jit` was told: "autoclustering" or ""."""
    return _jit[0]


__getattr__ = missing_in(__name__)
