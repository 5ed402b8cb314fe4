"""The loop-nest IR between graph and targets: pure data, no target."""

from treadle.kernel import printer as printer  # (gives nodes their text)
