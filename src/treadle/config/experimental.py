"""How much memory programs use (``td.config.experimental``)."""

from __future__ import annotations

from treadle.core.devices import find_device
from treadle.runtime.devices import backend

__all__ = ["get_memory_info", "reset_memory_stats"]

def get_memory_info(device: str) -> dict[str, int]:
    """Bytes of memory that treadle manages on a device, "CPU:0".

    Unlike TensorFlow's it knows the processor, too. It counts what compiled programs have: their
    workspaces, lists and arrays of sizes found out, and results, variables and constants from
    256 KiB on; smaller arrays and those of eager operations are NumPy's. What a call needs is known
    before it runs: stage "memory" of `td.inspect`.

    Returns:
        "current": bytes in use, where blocks up to 1 GiB are rounded up to powers of two;
        "peak": the most in use at once since the start or `reset_memory_stats`;
        "kept": bytes that wait to be used again, which TREADLE_KEEP_BYTES bounds and
        `td.clear_caches` frees.

    Raises:
        ValueError: there is no such device.
    """
    return backend(find_device(device)).program_memory.use()


def reset_memory_stats(device: str) -> None:
    """Let the peak of `get_memory_info` begin at what is in use now.

    Raises:
        ValueError: there is no such device.
    """
    backend(find_device(device)).program_memory.reset_peak()
