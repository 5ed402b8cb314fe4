"""``td.sysconfig``: what programs are made with."""

from __future__ import annotations

from collections import OrderedDict
from importlib import metadata
from typing import Any

from treadle.names import missing_in
from treadle.runtime.gpu import discovery

__all__ = ["get_build_info"]


def get_build_info() -> OrderedDict[str, Any]:
    """Facts about the compilers that programs are made with.

    Returns:
        "cpu_compiler": llvmlite with its version, or "" where it is missing; "is_cuda_build":
        whether CuPy is installed, by which programs reach GPUs, and with it "cuda_version", what
        CuPy is made for ("" where it cannot be imported); "is_rocm_build" and
        "is_tensorrt_build": False.
    """
    found: OrderedDict[str, Any] = OrderedDict(cpu_compiler=_llvmlite())
    if discovery.is_installed():
        found["cuda_version"] = discovery.cuda_version()
    found["is_cuda_build"] = discovery.is_installed()
    found["is_rocm_build"] = found["is_tensorrt_build"] = False
    return found


def _llvmlite() -> str:
    try:
        return f"llvmlite {metadata.version('llvmlite')}"
    except metadata.PackageNotFoundError:
        return ""


__getattr__ = missing_in(__name__)
