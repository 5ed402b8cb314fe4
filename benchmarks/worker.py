"""A process that runs the workloads of one library: requests come in and answers go out as pickles.

It imports neither NumPy nor the library before it is asked to: importing is itself a workload.
"""

import os
import pickle
import sys
import traceback
import types
from typing import Any, BinaryIO

from benchmarks.libraries import LIBRARIES
from benchmarks.measure import call, measure, measure_once
from benchmarks.on_gpu import NoGpu
from benchmarks.workload import Job, load


class Worker:
    """Holds the job in hand and answers one request at a time."""

    def __init__(self, library: str, kind: str = "CPU") -> None:
        found = LIBRARIES[library].on(kind)
        assert found is not None, f"{library} works on no {kind}"
        self.library = found
        self.job: Job | None = None

    def prepare(self, place: tuple[str, int]) -> list[Any] | None:
        """Build the job and return the results of its first calls; None: no such method."""
        workload = load(place)
        self.job = workload.job(self.library)
        if self.job is None:
            return None
        return [as_arrays(call(self.job)) for _ in range(workload.checks)]

    def time(self, seconds: float, clock: str = "wall") -> Any:
        assert self.job is not None
        return measure(self.job, seconds, self.library.wait, clock)

    def first(self, place: tuple[str, int], clock: str = "wall") -> Any:
        """(timing, results) of a fresh workload's only call; None: no such method."""
        job = load(place).job(self.library)
        if job is None:
            return None
        timing, result = measure_once(job, self.library.wait, clock)
        return timing, [as_arrays(result)]

    def drop(self) -> None:
        self.job = None

    def figures(self) -> dict[str, Any]:
        """What treadle finds of the device."""
        from benchmarks import device  # imports treadle

        return device.figures(self.library)

    def version(self) -> str:
        module = __import__(self.library.package)
        return str(getattr(module, "__version__", "?"))


def as_arrays(value: Any) -> Any:
    """NumPy arrays in place of a library's tensors, in lists in place of any containers."""
    import numpy as np

    if value is None or isinstance(value, (str, types.ModuleType)):
        return None
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [as_arrays(item) for item in value]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # which NumPy does not know
        value = value.float()
    array = np.array(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def serve(worker: Worker, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer (method, arguments) until the requests end: ("ok", value) or ("error", text)."""
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = "ok", getattr(worker, method)(*arguments)
        except (ImportError, NoGpu) as error:
            answer = "missing", str(error)
        except Exception:
            answer = "error", traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()


def main() -> None:
    # Libraries print to standard output at will: the answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(Worker(*sys.argv[1:]), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
