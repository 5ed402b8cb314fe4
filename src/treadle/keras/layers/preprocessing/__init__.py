"""Layers that make numbers of a program's data ready for a model."""
