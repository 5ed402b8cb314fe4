"""Ops along axes: sums, running sums, norms."""
