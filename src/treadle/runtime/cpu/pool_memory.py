"""What the pool (`threads.py`) and its machine code (`pool_code.py`) agree on."""

from __future__ import annotations

HEAD = 64  # bytes of the pool before the slots: busy, workers, spare threads, patience
PATIENCE = 24  # where the head has the last of these
SLOT = 256  # bytes a worker: its job, whether it sleeps, a mutex and a condition variable


def patience(spins: int) -> int:
    """How often a caller that waits pauses before it lets another thread have the core, where a
    worker pauses `spins` times before it sleeps."""
    return spins // 10
