"""What the pool (`threads.py`) and its machine code (`pool_code.py`) agree on."""

from __future__ import annotations

HEAD = 64  # bytes of the pool before the slots: busy, workers, spare threads
SLOT = 256  # bytes a worker: its job, whether it sleeps, a mutex and a condition variable
