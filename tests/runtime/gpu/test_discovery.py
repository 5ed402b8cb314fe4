"""What is found of GPUs, with made-up CuPys."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType, SimpleNamespace

import pytest

from treadle.runtime.gpu import discovery


class CUDARuntimeError(RuntimeError):
    """CuPy's."""


def properties(number):
    return {"name": b"NVIDIA H200", "totalGlobalMem": 1 << 37, "major": 9, "minor": number}


def runtime(made_for=12050, driver=12040, count=2):
    def found():
        if isinstance(count, Exception):
            raise count
        return count

    return SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError, runtimeGetVersion=lambda: made_for,
        driverGetVersion=lambda: driver, getDeviceCount=found, getDeviceProperties=properties,
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
            module.cuda = SimpleNamespace(runtime=made)
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


@pytest.mark.parametrize(
    ("made", "text", "version"),
    [
        (None, "CuPy, by which treadle reaches GPUs, is not installed", ""),
        (ImportError("libcuda.so.1 is missing"), "cannot be imported: libcuda.so.1 is missing", ""),
        (runtime(driver=0), "there is no driver of NVIDIA GPUs", "12.5"),
        (runtime(driver=11080), "CuPy is made for CUDA 12.5, the driver for 11.8", "12.5"),
        (runtime(count=CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")),
         "CUDA finds no GPU: cudaErrorNoDevice: no", "12.5"),
        (runtime(count=0), "CUDA finds no GPU", "12.5"),
    ],
)  # fmt: skip
def test_none(cupy, made, text, version):
    cupy(made)
    assert discovery.physical_gpus() == [] and text in discovery.why_none()
    assert discovery.cuda_version() == version
    assert discovery.is_installed() == (made is not None)
