"""Typed SSA graphs with regions: the form between tracing and lowering."""
