"""Keras's own tests, which its wheel has, on treadle."""
