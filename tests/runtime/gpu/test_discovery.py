"""What is found of GPUs, with made-up CuPys."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from treadle.runtime.gpu import discovery


class CUDARuntimeError(RuntimeError):
    """CuPy's."""


def properties(number):
    return {"name": b"NVIDIA H200", "totalGlobalMem": 1 << 37, "major": 9, "minor": number}


def runtime(made_for=12050, driver=12040, count=2, version="14.1.0", is_hip=False):
    def found():
        if isinstance(count, Exception):
            raise count
        return count

    return SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError, runtimeGetVersion=lambda: made_for,
        driverGetVersion=lambda: driver, getDeviceCount=found, getDeviceProperties=properties,
        is_hip=is_hip, version=version,
    )  # fmt: skip


@pytest.fixture
def cupy(monkeypatch):
    """Puts a made-up CuPy in the place of the real one, if there is one."""

    def put(made):
        find, load = importlib.util.find_spec, importlib.import_module

        def loaded(name):
            if name != "cupy":
                return load(name)
            if isinstance(made, Exception):
                raise made
            module = ModuleType("cupy")
            module.cuda, module.__version__ = SimpleNamespace(runtime=made), made.version
            return module

        def spec(name):
            if name != "cupy":
                return find(name)
            return None if made is None else SimpleNamespace()

        monkeypatch.setattr(importlib.util, "find_spec", spec)
        monkeypatch.setattr(importlib, "import_module", loaded)
        discovery._search.forget()

    yield put
    discovery._search.forget()


def test_gpus(cupy):
    cupy(runtime())
    first, second = discovery.physical_gpus()
    assert first == (0, "NVIDIA H200", 1 << 37, (9, 0)) and second.compute_capability == (9, 1)
    assert discovery.why_none() == "" and discovery.is_installed()
    assert discovery.cuda_version() == "12.5"


NONE = [
    (None, 'not installed: pip install "treadle[cuda13]" or pip install "treadle[cuda12]", as', ""),
    (ImportError("libcuda.so.1 is missing"), "cannot be imported: libcuda.so.1 is missing. ", ""),
    (runtime(driver=0), "there is no driver of NVIDIA GPUs: install NVIDIA's", "12.5"),
    (runtime(driver=11080), "CuPy is made for CUDA 12.5, the driver for 11.8: install a driver "
     "for CUDA 12.0 or newer", "12.5"),
    (runtime(made_for=13000), "CuPy is made for CUDA 13.0, the driver for 12.4: install a newer "
     'driver, or pip install "treadle[cuda12]"', "13.0"),
    (runtime(count=CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")),
     "CUDA finds no GPU: cudaErrorNoDevice: no", "12.5"),
    (runtime(count=0), "CUDA finds no GPU", "12.5"),
    (runtime(version="12.3.0"), "CuPy 12.3.0 is too old, 14 is needed: pip install", "12.5"),
    (runtime(is_hip=True), "CuPy is made for GPUs of AMD: pip install", ""),
]  # fmt: skip


@pytest.mark.parametrize(("made", "text", "version"), NONE)
def test_none(cupy, made, text, version):
    cupy(made)
    assert discovery.physical_gpus() == [] and text in discovery.why_none()
    assert discovery.cuda_version() == version
    assert discovery.is_installed() == (made is not None)


def test_hidden_devices_are_told(cupy, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    cupy(runtime(count=0))
    assert discovery.why_none().endswith("CUDA finds no GPU (CUDA_VISIBLE_DEVICES is '7')")


@pytest.mark.parametrize(
    ("driver", "text"),
    [(12040, 'installed: pip install "treadle[cuda12]"'),
     (13000, 'installed: pip install "treadle[cuda13]" or pip install "treadle[cuda12]"'),
     (11080, "installed: install a driver for CUDA 12.0 or newer")],
)  # fmt: skip
def test_the_cupy_that_fits_the_driver(cupy, monkeypatch, driver, text):
    monkeypatch.setattr(discovery, "driver_version", lambda: driver)
    cupy(None)
    assert discovery.why_none().endswith(text)


class Library:
    """A driver's library."""

    def cuDriverGetVersion(self, place):
        place._obj.value = 12060
        return 0


def test_the_version_of_the_driver(monkeypatch):
    monkeypatch.setattr(discovery.ctypes, "CDLL", lambda name: Library())
    assert discovery.has_driver() and discovery.driver_version() == 12060
    monkeypatch.setattr(discovery.ctypes, "CDLL", missing)
    assert not discovery.has_driver() and discovery.driver_version() == 0


def missing(name):
    raise OSError(f"{name}: cannot open shared object file")


# What a package "cupy" consists of, and what programs are told in a scope of a GPU.
PACKAGES = {
    "none": (None, "CuPy, by which treadle reaches GPUs, is not installed: pip install"),
    "broken": ("raise ImportError('libcudart.so.12: cannot open')",
               "CuPy cannot be imported: libcudart.so.12: cannot open. For another one: pip"),
    "old driver": ("made_for, driver = 13000, 12020", "install a newer driver, or pip install "
                   '"treadle[cuda12]"'),
    "no driver": ("made_for, driver = 12090, 0", "there is no driver of NVIDIA GPUs: install"),
}  # fmt: skip
MADE = """
class CUDARuntimeError(RuntimeError): pass
class runtime:
    CUDARuntimeError = CUDARuntimeError
    runtimeGetVersion = staticmethod(lambda: made_for)
    driverGetVersion = staticmethod(lambda: driver)
class cuda: runtime = runtime
"""
PROGRAM = """
import sys
import treadle as td
assert "cupy" not in sys.modules
with td.device("GPU:0"):  # soft placement
    assert td.constant(1.0).device.endswith("CPU:0")
try:
    td.constant(1.0).gpu()
except RuntimeError as error:
    print(str(error).split(chr(10))[0])
td.config.set_soft_device_placement(False)
try:
    with td.device("GPU:0"):
        pass
except td.errors.InvalidArgumentError as error:
    print(str(error).split(chr(10))[0])
"""


@pytest.mark.parametrize("name", PACKAGES)
def test_what_programs_are_told(tmp_path, name):
    package, text = PACKAGES[name]
    if package is not None:
        (tmp_path / "cupy").mkdir()
        end = "" if package.startswith("raise") else MADE
        (tmp_path / "cupy" / "__init__.py").write_text(package + end)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    copied, placed = ran.stdout.splitlines()
    assert copied.startswith("GPU:0 unknown device. There is no GPU: ") and text in copied
    assert "Could not satisfy device specification" in placed and text in placed
