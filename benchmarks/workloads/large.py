"""Arrays far larger than the caches of a GPU: what takes the time is moving them once."""

from benchmarks.workloads.elementwise import BlackScholes, Gelu
from benchmarks.workloads.rows import LayerNorm, Softmax

ELEMENTS = 1 << 26
ROWS = {"rows": ELEMENTS >> 12, "columns": 1 << 12}
WHERE = {"kinds": ("GPU",), "moves": 8 * ELEMENTS}  # each element is read and written

WORKLOADS = [
    Gelu("large gelu 2^26", n=ELEMENTS, **WHERE),
    Softmax("large softmax 16384x4096", **ROWS, **WHERE),
    LayerNorm("large layer norm 16384x4096", **ROWS, **WHERE),
    BlackScholes("large black-scholes 2^24", n=ELEMENTS >> 2, kinds=("GPU",), moves=6 * ELEMENTS),
]
