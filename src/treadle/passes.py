"""The passes over graphs, by name, and how to switch them off."""

from treadle.graph.passes import PIPELINE, Pass, disabled
from treadle.graph.switches import disabled_passes

__all__ = ["PIPELINE", "Pass", "disabled", "disabled_passes"]
