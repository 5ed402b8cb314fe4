"""Passes over graphs and mechanisms of the compiler, by name, and how to switch them off."""

import treadle.runtime  # noqa: F401  (its mechanisms are declared)
from treadle.core.switches import Switch, disabled, disabled_names, is_on, switches
from treadle.graph.passes import PIPELINE, Pass

disabled_passes = disabled_names

__all__ = [
    "PIPELINE",
    "Pass",
    "Switch",
    "disabled",
    "disabled_passes",
    "is_on",
    "switches",
]
