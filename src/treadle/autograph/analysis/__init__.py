"""Data-flow analyses over the statements of one function."""
