"""Tensors, dtypes, shapes, nested structures, errors and contexts: what every other part uses."""
