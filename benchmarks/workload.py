"""What a workload is, and where workloads are found."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from benchmarks.libraries import Library

# What a library's method returns: a callable without arguments, or (callable, argument, ...).
# Calling it does the work once and returns when the result is there; a GPU may still be at work
# then (`Library.wait`).
Job = Callable[[], Any] | tuple[Any, ...]


class Workload:
    """The same work for several libraries.

    A subclass defines a method for each library that can do the work; one it lacks is left out:

        numpy(np)             plain NumPy
        tf2(tf, function)     a TensorFlow 2 program: runs as treadle eager and graph, and as
                              TensorFlow graph and XLA; `function` is that library's decorator
        tensorflow(tf, function)   the same for TensorFlow alone, where it should be told apart
        jax(jax)              jitted
        torch(torch, compile) `compile` is torch.compile, or the identity for eager; tensors are
                              made by torch.from_numpy, or from other tensors
        numba(numba)          njit
        onnxruntime(runtime)  a session of a model of ONNX

    Every method starts from the same data, so that results can be compared: the first `checks`
    calls of every library must agree within `tolerance` (relative to the largest magnitude).

    A `fresh` workload is timed over one first call, in a new process for each round; with
    `warm` those processes share one compile cache on disk.

    `kinds` are the kinds of devices that it says something about. `moves` is how many bytes must
    go between the device and its memory, where that is what takes the time.
    """

    checks = 1
    tolerance = 1e-5
    fresh = False
    warm = False
    kinds: tuple[str, ...] = ("CPU", "GPU")
    moves: int | None = None
    without: tuple[str, ...] = ()  # libraries that have the method but cannot or should not run it

    def __init__(self, name: str, **parameters: Any) -> None:
        self.name = name
        for key, value in parameters.items():
            setattr(self, key, value)

    def job(self, library: Library) -> Job | None:
        """The work in one library, or None where no method of this class does it."""
        if library.name in self.without:
            return None
        methods = (getattr(self, name, None) for name in library.methods)
        method = next(filter(None, methods), None)
        if method is None:
            return None
        module = library.module()
        job: Job | None = method(module, library.wrap(module)) if library.wrap else method(module)
        return job


FOLDER = "benchmarks.workloads"


def all_workloads(kind: str = "CPU") -> dict[str, tuple[str, int]]:
    """Where each workload for a kind of device is, by name: (module, index in its list
    WORKLOADS)."""
    found: dict[str, tuple[str, int]] = {}
    for info in pkgutil.iter_modules(importlib.import_module(FOLDER).__path__):
        module = importlib.import_module(f"{FOLDER}.{info.name}")
        for index, workload in enumerate(module.WORKLOADS):
            if workload.name in found:
                raise ValueError(f"two workloads are named {workload.name!r}")
            found[workload.name] = info.name, index
    return {name: place for name, place in found.items() if kind in load(place).kinds}


def load(place: tuple[str, int]) -> Workload:
    """The workload at a place, importing no other module of workloads."""
    module, index = place
    workload: Workload = importlib.import_module(f"{FOLDER}.{module}").WORKLOADS[index]
    return workload
