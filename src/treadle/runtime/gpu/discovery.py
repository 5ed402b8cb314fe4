"""The GPUs of this machine, as CuPy finds them. CuPy is imported when somebody asks."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from typing import Any, NamedTuple

from treadle.core import locks

OLDEST_CUPY = 14
OLDEST_DRIVER = 12000  # that such a CuPy is for


class PhysicalGPU(NamedTuple):
    """A GPU of this machine.

    Attributes:
        number: the CUDA runtime's.
        name: the product's, as "NVIDIA H200".
        memory: in bytes.
        compute_capability: (major, minor).
    """

    number: int
    name: str
    memory: int
    compute_capability: tuple[int, int]


class _Found(NamedTuple):
    """What was found, or why nothing was. `made_for`: the version of CUDA, as 12050 for 12.5."""

    gpus: list[PhysicalGPU]
    why_none: str
    made_for: int = 0


def physical_gpus() -> list[PhysicalGPU]:
    """The GPUs that programs can be made for; `why_none` says why there are none."""
    return _search().gpus


def why_none() -> str:
    """Why there is no GPU: no CuPy, no driver, a wrong version; "" where there is one."""
    return _search().why_none


def may_find() -> bool:
    """Whether it is worth while to import CuPy in order to look for GPUs: it is installed, there is
    a driver of CUDA, and the environment does not hide all devices."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1")
    return not hidden and has_driver() and is_installed()


def has_driver() -> bool:
    """Whether the system has the library of a driver of CUDA, which may not find a GPU."""
    return driver_library() is not None


def driver_version() -> int:
    """The version of CUDA that the driver is for, as 12040 for 12.4; 0 where there is none."""
    library, version = driver_library(), ctypes.c_int()
    if library is None or library.cuDriverGetVersion(ctypes.byref(version)):
        return 0
    return version.value


def driver_library() -> Any:
    """The library of the driver; None where there is none."""
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


def is_installed() -> bool:
    """Whether there is CuPy, which may not find a GPU."""
    return importlib.util.find_spec("cupy") is not None


def cuda_version() -> str:
    """The version of CUDA that CuPy is made for; "" where it cannot be imported."""
    made_for = _search().made_for
    return _version(made_for) if made_for else ""


@locks.made_once
def _search() -> _Found:
    driver = driver_version()
    if not is_installed():
        text = "CuPy, by which treadle reaches GPUs, is not installed"
        return _Found([], f"{text}: {_install(driver)}")
    try:
        cupy: Any = importlib.import_module("cupy")
        runtime = cupy.cuda.runtime
        made_for = runtime.runtimeGetVersion()
    except Exception as error:  # its own message names libraries and versions
        text = f"CuPy cannot be imported: {str(error).strip() or type(error).__name__}"
        return _Found([], f"{text}. For another one: {_install(driver)}")
    if getattr(runtime, "is_hip", False):
        return _Found([], f"CuPy is made for GPUs of AMD: {_install(driver)}")
    version = str(getattr(cupy, "__version__", OLDEST_CUPY))
    if int(version.partition(".")[0]) < OLDEST_CUPY:
        text = f"CuPy {version} is too old, {OLDEST_CUPY} is needed"
        return _Found([], f"{text}: {_install(driver)}", made_for)
    try:
        driver = runtime.driverGetVersion()
        if not driver:
            return _Found([], f"there is no driver of NVIDIA GPUs: {_NO_DRIVER}", made_for)
        if made_for // 1000 > driver // 1000:
            text = f"CuPy is made for CUDA {_version(made_for)}, the driver for {_version(driver)}"
            newer = "install a newer driver, or " if driver >= OLDEST_DRIVER else ""
            return _Found([], f"{text}: {newer}{_install(driver)}", made_for)
        gpus = [_record(i, runtime.getDeviceProperties(i)) for i in range(runtime.getDeviceCount())]
    except runtime.CUDARuntimeError as error:  # such as cudaErrorNoDevice, in CUDA's words
        return _Found([], f"CUDA finds no GPU: {error}{_hidden()}", made_for)
    return _Found(gpus, "" if gpus else f"CUDA finds no GPU{_hidden()}", made_for)


def _install(driver: int) -> str:
    """How the CuPy is installed that fits a driver."""
    if driver and driver < OLDEST_DRIVER:
        return f"install a driver for CUDA {_version(OLDEST_DRIVER)} or newer"
    fitting = [major for major in (12, 13) if not driver or major <= driver // 1000]
    names = " or ".join(f'pip install "treadle[cuda{n}]"' for n in reversed(fitting))
    return names if len(fitting) == 1 or driver else f"{names}, as the driver's CUDA is"


def _hidden() -> str:
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if value is None else f" (CUDA_VISIBLE_DEVICES is {value!r})"


_NO_DRIVER = "install NVIDIA's, and see that nvidia-smi lists the GPU"


def _record(number: int, properties: dict[str, Any]) -> PhysicalGPU:
    name = properties["name"]
    text = name.decode() if isinstance(name, bytes) else str(name)
    capability = properties["major"], properties["minor"]
    return PhysicalGPU(number, text, properties["totalGlobalMem"], capability)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
