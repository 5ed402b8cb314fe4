"""Typed SSA graphs with regions: the form between tracing and lowering."""

from treadle.graph import printer as printer  # (gives graphs their text)
