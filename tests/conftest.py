"""Settings that must be there before NumPy is imported."""

import os

# Several workers share the cores: BLAS threads of each would only get in each other's way.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
