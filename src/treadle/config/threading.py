"""How many threads work (``td.config.threading``)."""

from __future__ import annotations

from treadle.core import processors
from treadle.runtime.cpu import thread_count

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
    "threads_in_use",
    "usable_processors",
]

occupied = thread_count.occupied
_inter_op = 0


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """How many threads share the work of compiled programs; 0: the system decides.

    Unlike TensorFlow's it may be called at any time. It holds for all Python threads from the next
    kernel on, and wins over TREADLE_NUM_THREADS; results do not depend on it. Of more threads than
    there are processors only as many run: the work is divided among them. Programs compiled for
    fewer threads may keep to fewer in the kernels that need memory for each thread.

    Raises:
        ValueError: the number is not an int from 0 to 256.
    """
    thread_count.request(_checked(num_threads))


def get_intra_op_parallelism_threads() -> int:
    """The number set by `set_intra_op_parallelism_threads`; 0 where the system decides."""
    return thread_count.requested()


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """How many threads the stages of data pipelines use under AUTOTUNE; 0: the system decides.

    The operations of one program run one after another, each on all threads, so there is nothing
    else for this number to set.

    Raises:
        ValueError: the number is not an int from 0 to 256.
    """
    global _inter_op
    _inter_op = _checked(num_threads)


def get_inter_op_parallelism_threads() -> int:
    """The number set by `set_inter_op_parallelism_threads`; 0 where the system decides."""
    return _inter_op


def threads_in_use() -> int:
    """How many threads share the work of compiled programs now.

    What was set, else TREADLE_NUM_THREADS, else `usable_processors`.
    """
    return thread_count.threads()


def usable_processors() -> int:
    """How many processors this process may use.

    Its CPU affinity counts, and the limits of its control groups (a container's share, rounded up).
    """
    return processors.usable()


def _checked(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"the number of threads must be an int, got {number!r}")
    if not 0 <= number <= thread_count.MOST_THREADS:
        raise ValueError(
            f"the number of threads must be from 1 to {thread_count.MOST_THREADS}, or 0 to let "
            f"the system decide; got {number}"
        )
    return number
