"""Python numbers and sequences whose values only the running program knows."""
