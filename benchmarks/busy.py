"""Other processes that keep processors busy while something is timed, as on a shared machine."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_COMPUTE = "print(flush=True)\nwhile True: pass"


@contextmanager
def busy_processes(count: int) -> Iterator[list[int]]:
    """A block beside which so many processes compute; gives their numbers."""
    others = [
        subprocess.Popen([sys.executable, "-I", "-c", _COMPUTE], stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()  # it computes from now on
        yield [other.pid for other in others]
    finally:
        for other in others:
            other.kill()
            other.communicate()
