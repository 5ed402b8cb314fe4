"""Workloads in treadle and its peers, timed side by side: `python -m benchmarks --help`."""
