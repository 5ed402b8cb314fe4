"""Compilers of CUDA C: NVRTC from its wheel, which needs no installation, and nvcc.

    pip install nvidia-cuda-nvrtc-cu12  # the extra "nvrtc"

Kernels include no headers of CUDA.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from treadle.runtime.gpu.kernels import PRELUDE


class Compiler(Protocol):
    """Attributes:
    name: with its version.
    """

    name: str

    def compile(self, text: str, architecture: str) -> bytes:
        """The machine code of kernels.

        Raises:
            CompileError: the compiler refuses them.
        """


class CompileError(AssertionError):
    """The words of a compiler."""


class Nvcc:
    def __init__(self, path: str) -> None:
        self.path = path
        words = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        self.name = "nvcc " + words.rpartition("release ")[2].partition(",")[0]

    def compile(self, text: str, architecture: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "kernels.cu", Path(folder) / "made"
            source.write_text(whole(text))
            command = [self.path, f"-arch={architecture}", "-cubin", "-w", "-o", str(made)]
            found = subprocess.run([*command, str(source)], capture_output=True, text=True)
            if found.returncode:
                raise CompileError(found.stderr[:4000])
            return made.read_bytes()


class Nvrtc:
    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._do("Version", ctypes.byref(major), ctypes.byref(minor))
        self.name = f"NVRTC {major.value}.{minor.value}"

    def compile(self, text: str, architecture: str) -> bytes:
        program = ctypes.c_void_p()
        source = whole(text).encode()
        self._do("CreateProgram", ctypes.byref(program), source, b"k.cu", 0, None, None)
        options = [f"--gpu-architecture={architecture}", "-w"]
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        try:
            if self.library.nvrtcCompileProgram(program, len(options), given):
                raise CompileError(self._text(program, "ProgramLog").decode()[:4000])
            return self._text(program, "CUBIN")
        finally:
            self._do("DestroyProgram", ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._do(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._do(f"Get{what}", program, buffer)
        return buffer.raw

    def _do(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, f"nvrtc{name}")(*arguments)
        assert not status, f"nvrtc{name}: error {status}"


def whole(text: str) -> str:
    """Kernels with what comes before them."""
    return f"{PRELUDE.read_text()}\n{text}\n"


@functools.cache
def compilers() -> list[Compiler]:
    """Those that are here, the fastest first."""
    found: list[Compiler] = []
    nvcc = shutil.which("nvcc")
    libraries = [*_in_wheels("**/libnvrtc.so.*")]
    if libraries:
        found.append(Nvrtc(libraries[0]))
    if nvcc:
        found.append(Nvcc(nvcc))
    return found


def _in_wheels(pattern: str) -> Iterator[Path]:
    """Files of NVIDIA's wheels."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or []:
        yield from sorted(Path(folder).glob(pattern))
