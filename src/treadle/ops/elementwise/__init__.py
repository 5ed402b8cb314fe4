"""Ops that work on each element by itself: arithmetic, comparisons, casts, choices."""
