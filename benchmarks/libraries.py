"""The libraries compared, and how each of them runs a workload's method."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Library:
    """`package` is imported and given to the first of `methods` that the workload defines.

    `wrap` makes the method's second argument from the package, `environment` is set before the
    package is imported.
    """

    name: str
    package: str
    methods: tuple[str, ...]
    wrap: Callable[[Any], Callable[[Any], Any]] | None = None
    ours: bool = False
    environment: dict[str, str] = field(default_factory=dict)


def eager(_module: Any) -> Callable[[Any], Any]:
    return lambda f: f


def xla(tf: Any) -> Callable[[Any], Any]:
    wrap: Callable[[Any], Any] = tf.function(jit_compile=True)
    return wrap


_ALL = [
    Library("treadle", "treadle", ("tf2",), lambda td: td.function, ours=True),
    Library("treadle-eager", "treadle", ("tf2",), eager, ours=True),
    Library("numpy", "numpy", ("numpy",)),
    # The wheels' OpenBLAS takes Haswell's kernels on many processors that have AVX-512.
    Library("openblas-512", "numpy", ("openblas",), environment={"OPENBLAS_CORETYPE": "SkylakeX"}),
    Library("jax", "jax", ("jax",)),
    Library("tf", "tensorflow", ("tensorflow", "tf2"), lambda tf: tf.function),
    Library("tf-xla", "tensorflow", ("tensorflow", "tf2"), xla),
    Library("torch", "torch", ("torch",), eager),
    Library("torch-compile", "torch", ("torch",), lambda torch: torch.compile),
    Library("numba", "numba", ("numba",)),
]


def has_avx512() -> bool:
    """Whether /proc/cpuinfo says so; other systems are not asked."""
    info = Path("/proc/cpuinfo")
    return info.exists() and "avx512f" in info.read_text()


LIBRARIES = {
    library.name: library for library in _ALL if library.name != "openblas-512" or has_avx512()
}
