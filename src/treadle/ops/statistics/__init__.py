"""Elements in order, and how often they occur: sorting, counts, bins."""
