"""Tensors, dtypes, shapes, nested structures, errors and contexts, which all other parts use."""
