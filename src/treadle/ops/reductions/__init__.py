"""Ops along axes: sums, running sums, sums of groups, counts, sorting."""
