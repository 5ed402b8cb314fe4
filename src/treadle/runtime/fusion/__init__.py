"""From a region of graph nodes to kernels: which nodes share a loop nest."""
