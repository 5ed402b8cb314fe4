"""How libraries work on a GPU: their arrays are made there, float32 is multiplied as float32, and
calls return before the GPU has done their work, as in a program that seldom looks at a result.

A process sees one GPU, chosen by its environment, so that it is the first one for all libraries.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class NoGpu(Exception):
    """A library finds no GPU to work on."""


@dataclass(frozen=True)
class Use:
    """How a library works on a GPU; each function gets the library's package.

    Attributes:
        prepare: let its arrays be made on the GPU and float32 be multiplied exactly.

            Raises:
                NoGpu: it finds none.
        wait: return when the GPU has done all of its work.
        wrap: what compiles for a GPU, where that differs; see `benchmarks.libraries.Library`.
    """

    prepare: Callable[[Any], None]
    wait: Callable[[Any], None]
    wrap: Callable[[Any], Callable[[Any], Any]] | None = None


def environment(device: str) -> dict[str, str]:
    """The environment of a process that sees one device, "CPU:0" or such as "GPU:1", and that
    leaves the memory of a GPU to others that work on it.

    Raises:
        ValueError: the environment hides this GPU.
    """
    kind, _, number = device.partition(":")
    if kind == "CPU":
        return {"CUDA_VISIBLE_DEVICES": "-1"}
    shown = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = shown.split(",") if shown else []
    if numbers and int(number) >= len(numbers):
        raise ValueError(f"there is no {device}: CUDA_VISIBLE_DEVICES is {shown!r}")
    return {
        "CUDA_VISIBLE_DEVICES": numbers[int(number)] if numbers else number,
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }


# -- treadle and TensorFlow ------------------------------------------------------------------------


def _prepare_tensorflow(tf: Any) -> None:
    if not tf.config.list_physical_devices("GPU"):
        reason = tf.runtime.gpu.discovery.why_none() if tf.__name__ == "treadle" else "no GPU"
        raise NoGpu(f"{tf.__name__}: {reason}")
    tf.config.experimental.enable_tensor_float_32_execution(False)


TENSORFLOW = Use(_prepare_tensorflow, lambda tf: tf.test.experimental.sync_devices())


# -- JAX -------------------------------------------------------------------------------------------


def _prepare_jax(jax: Any) -> None:
    if jax.default_backend() != "gpu":
        raise NoGpu(f"JAX works on the {jax.default_backend()}")
    jax.config.update("jax_default_matmul_precision", "highest")
    array = type(jax.numpy.zeros(()))
    jax.really_wait = array.block_until_ready
    # The methods of workloads end calls by these two.
    jax.block_until_ready = array.block_until_ready = lambda result: result


def _wait_for_jax(jax: Any) -> None:
    """What is submitted last is done last."""
    jax.really_wait(jax.numpy.zeros(()) + 1.0)


JAX = Use(_prepare_jax, _wait_for_jax)


# -- PyTorch ---------------------------------------------------------------------------------------


def _prepare_torch(torch: Any) -> None:
    """Workloads make all tensors from arrays, or from other tensors."""
    if not torch.cuda.is_available():
        raise NoGpu("PyTorch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    from_numpy = torch.from_numpy
    torch.from_numpy = lambda array: from_numpy(array).to("cuda")


def tuned(torch: Any) -> Callable[[Any], Any]:
    """The compiler of PyTorch that tries out kernels and submits them as CUDA graphs."""
    return functools.partial(torch.compile, mode="max-autotune")


TORCH = Use(_prepare_torch, lambda torch: torch.cuda.synchronize())
