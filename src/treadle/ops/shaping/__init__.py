"""Ops that make tensors and change their shapes: fill, reshape, transpose, concat, split."""
