"""Passes over graphs and mechanisms of the compiler, by name, and how to switch them off."""

import treadle.runtime  # noqa: F401  (its mechanisms are declared)
from treadle.core.switches import Switch, disabled, disabled_names, is_on, switches
from treadle.graph.passes import PIPELINE
from treadle.graph.pipeline import Pass
from treadle.runtime.passes import PIPELINE as TARGET_PIPELINE
from treadle.runtime.passes import TargetPass

disabled_passes = disabled_names

__all__ = [
    "PIPELINE",
    "Pass",
    "TARGET_PIPELINE",
    "Switch",
    "TargetPass",
    "disabled",
    "disabled_passes",
    "is_on",
    "switches",
]
