"""Ops on strings: their NumPy forms are all there is, compiled programs call them."""
