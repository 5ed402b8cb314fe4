"""The libraries compared, and how each of them runs a workload's method."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import on_gpu

Wrap = Callable[[Any], Callable[[Any], Any]]


@dataclass(frozen=True)
class Library:
    """`package` is imported and given to the first of `methods` that the workload defines.

    `wrap` makes the method's second argument from the package, `environment` is set before the
    package is imported. `gpu` says how the library works on a GPU, if it does; `device` is the
    kind that it works on now. What is `asked` for takes part where it is named only.
    """

    name: str
    package: str
    methods: tuple[str, ...]
    wrap: Wrap | None = None
    ours: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    gpu: on_gpu.Use | None = None
    device: str = "CPU"
    asked: bool = False

    def on(self, kind: str) -> Library | None:
        """The library on the first device of a kind; None where it works on no such device."""
        if kind == "CPU":
            return self
        if self.gpu is None:
            return None
        return replace(self, device=kind, wrap=self.gpu.wrap or self.wrap)

    def module(self) -> Any:
        """The package.

        Raises:
            ImportError: it is not installed.
            NoGpu: it finds no GPU, where it is to work on one.
        """
        module = importlib.import_module(self.package)
        if self.device == "GPU":
            _prepared(self.name)
        return module

    def wait(self) -> None:
        """Return when all calls of jobs by now have their results."""
        if self.gpu is not None and self.device == "GPU":
            self.gpu.wait(self.module())


@functools.cache
def _prepared(name: str) -> None:
    """A library is made ready once in a process."""
    library = LIBRARIES[name]
    assert library.gpu is not None
    library.gpu.prepare(importlib.import_module(library.package))


def eager(_module: Any) -> Callable[[Any], Any]:
    return lambda f: f


def xla(tf: Any) -> Callable[[Any], Any]:
    wrap: Callable[[Any], Any] = tf.function(jit_compile=True)
    return wrap


_ALL = [
    Library(
        "treadle", "treadle", ("tf2",), lambda td: td.function, ours=True, gpu=on_gpu.TENSORFLOW
    ),
    Library("treadle-eager", "treadle", ("tf2",), eager, ours=True, gpu=on_gpu.TENSORFLOW),
    Library("numpy", "numpy", ("numpy",)),
    # The wheels' OpenBLAS takes Haswell's kernels on many processors that have AVX-512.
    Library("openblas-512", "numpy", ("openblas",), environment={"OPENBLAS_CORETYPE": "SkylakeX"}),
    Library("jax", "jax", ("jax",), gpu=on_gpu.JAX),
    Library("jax-eager", "jax", ("jax",), environment={"JAX_DISABLE_JIT": "1"}, asked=True),
    Library(
        "tf", "tensorflow", ("tensorflow", "tf2"), lambda tf: tf.function, gpu=on_gpu.TENSORFLOW
    ),
    Library("tf-eager", "tensorflow", ("tensorflow", "tf2"), eager, asked=True),
    Library("tf-xla", "tensorflow", ("tensorflow", "tf2"), xla, gpu=on_gpu.TENSORFLOW),
    Library("torch", "torch", ("torch",), eager, gpu=on_gpu.TORCH),
    Library(
        "torch-compile", "torch", ("torch",), lambda torch: torch.compile,
        gpu=replace(on_gpu.TORCH, wrap=on_gpu.tuned),
    ),
    Library("numba", "numba", ("numba",)),
    Library("onnxruntime", "onnxruntime", ("onnxruntime",), asked=True),
]  # fmt: skip


def has_avx512() -> bool:
    """Whether /proc/cpuinfo says so; other systems are not asked."""
    info = Path("/proc/cpuinfo")
    return info.exists() and "avx512f" in info.read_text()


LIBRARIES = {
    library.name: library for library in _ALL if library.name != "openblas-512" or has_avx512()
}
