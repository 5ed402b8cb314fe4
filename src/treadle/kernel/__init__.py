"""The loop-nest IR between graph and targets: pure data, no target."""
