"""A file per family; each has a list WORKLOADS."""
