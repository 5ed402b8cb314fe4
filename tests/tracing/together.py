"""Threads that begin at once."""

import threading
from collections.abc import Callable
from typing import Any


def together(*jobs: Callable[[], Any], seconds: float = 20) -> list[Any]:
    """Run the jobs in threads that start at once; gives their results.

    Raises:
        the first error of a job.
        AssertionError: a thread has not ended after so many seconds.
    """
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(jobs))

    def run(i: int, job: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            results[i] = job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i, j), daemon=True) for i, j in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    assert not any(t.is_alive() for t in threads), "a deadlock"
    if errors:
        raise errors[0]
    return results
