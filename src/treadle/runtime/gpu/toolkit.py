"""NVIDIA's tools where they are installed: compilers of CUDA C, and what prints machine code.

No GPU is needed. Programs are compiled by CuPy; these are for `td.inspect` and for the tests.

    pip install nvidia-cuda-nvrtc-cu12  # a compiler: the extra "nvrtc"

Kernels include no headers of CUDA.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from treadle.runtime.gpu.driver import Needs
from treadle.runtime.gpu.kernels import OPTIONS, PRELUDE


class Compiled(NamedTuple):
    """What a compiler made of kernels.

    Attributes:
        code: machine code, a file that `disassembled` reads.
        ptx: NVIDIA's assembly for all architectures.
        needs: what each function takes of a multiprocessor, by name.
    """

    code: bytes
    ptx: str
    needs: dict[str, Needs]


class CompileError(RuntimeError):
    """The words of a compiler that refuses kernels."""


class NoTool(RuntimeError):
    """No tool was found; the message says which ones were looked for."""


class Compiler(Protocol):
    """A compiler of CUDA C.

    Attributes:
        name: with its version.
    """

    name: str

    def compile(self, text: str, architecture: str) -> Compiled:
        """What becomes of kernels, given without the prelude.

        Raises:
            CompileError: the compiler refuses them.
        """


class Nvcc:
    """The compiler of a CUDA toolkit."""

    def __init__(self, path: str) -> None:
        self.path = path
        words = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        self.name = "nvcc " + words.rpartition("release ")[2].partition(",")[0]

    def compile(self, text: str, architecture: str) -> Compiled:
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "kernels.cu", Path(folder) / "made"
            source.write_text(whole(text))
            options = [*OPTIONS, "-cubin", "-w", "-Xptxas=-v", "--keep", f"--keep-dir={folder}"]
            command = [self.path, f"-arch={architecture}", *options, f"-o={made}", str(source)]
            found = subprocess.run(command, capture_output=True, text=True)
            if found.returncode:
                raise CompileError(found.stderr[:4000])
            ptx = (Path(folder) / "kernels.ptx").read_text()
            return Compiled(made.read_bytes(), ptx, _needs(found.stdout + found.stderr))


class Nvrtc:
    """The compiler as a library, which CuPy uses, too."""

    def __init__(self, path: Path | str) -> None:
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._do("Version", ctypes.byref(major), ctypes.byref(minor))
        self.name = f"NVRTC {major.value}.{minor.value}"

    def compile(self, text: str, architecture: str) -> Compiled:
        program = ctypes.c_void_p()
        source = whole(text).encode()
        self._do("CreateProgram", ctypes.byref(program), source, b"k.cu", 0, None, None)
        options = [*OPTIONS, f"--gpu-architecture={architecture}", "-w", "--ptxas-options=-v"]
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        try:
            refused = self.library.nvrtcCompileProgram(program, len(options), given)
            words = self._text(program, "ProgramLog").rstrip(b"\0").decode()
            if refused:
                raise CompileError(words[:4000])
            ptx = self._text(program, "PTX").rstrip(b"\0").decode()
            return Compiled(self._text(program, "CUBIN"), ptx, _needs(words))
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
        if status:
            raise RuntimeError(f"nvrtc{name}: error {status}")


def whole(text: str) -> str:
    """Kernels with what comes before them."""
    return f"{PRELUDE.read_text()}\n{text}\n"


@functools.cache
def compilers() -> list[Compiler]:
    """Those that are here, the fastest first."""
    found: list[Compiler] = []
    libraries = [*_in_wheels("**/libnvrtc.so.*"), *_in_toolkits("lib64/libnvrtc.so")]
    library = libraries[0] if libraries else ctypes.util.find_library("nvrtc")
    if library is not None:
        found.append(Nvrtc(library))
    nvcc = tool("nvcc")
    if nvcc is not None:
        found.append(Nvcc(nvcc))
    return found


def compiler() -> Compiler:
    """The fastest one that is here.

    Raises:
        NoTool: there is none.
    """
    for found in compilers():
        return found
    raise NoTool(
        "no compiler of CUDA C was found: install NVRTC (pip install nvidia-cuda-nvrtc-cu12), or "
        "let PATH or CUDA_PATH lead to nvcc"
    )


def disassembled(code: bytes) -> str:
    """The instructions of machine code (SASS).

    Raises:
        NoTool: neither of the tools that print them is here.
        RuntimeError: the tool refuses the code, such as one that is newer than the tool.
    """
    tools = [(tool(name), option) for name, option in _DISASSEMBLERS.items()]
    path, option = next(((p, o) for p, o in tools if p is not None), (None, ""))
    if path is None:
        raise NoTool(
            "neither nvdisasm nor cuobjdump was found, which print machine code: they come with a "
            "CUDA toolkit, to which PATH or CUDA_PATH must lead"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.cubin"
        file.write_bytes(code)
        found = subprocess.run([path, option, str(file)], capture_output=True, text=True)
    if found.returncode:
        words = (found.stderr or found.stdout)[:2000]
        raise RuntimeError(f"{Path(path).name} refuses the code: {words}")
    return found.stdout


_DISASSEMBLERS = {"nvdisasm": "--print-code", "cuobjdump": "-sass"}  # with an option of each


def tool(name: str) -> str | None:
    """Where a program of a CUDA toolkit is: on PATH, in a toolkit, or in a wheel."""
    found = shutil.which(name)
    if found is None:
        found = next(map(str, (*_in_toolkits(f"bin/{name}"), *_in_wheels(f"**/bin/{name}"))), None)
    return found


def _in_toolkits(name: str) -> Iterator[Path]:
    """A file of the toolkits that the environment names, or of the one that is installed."""
    for folder in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if folder and (Path(folder) / name).exists():
            yield Path(folder) / name


def _in_wheels(pattern: str) -> Iterator[Path]:
    """Files of NVIDIA's wheels."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or []:
        yield from sorted(Path(folder).glob(pattern))


_TOLD = re.compile(
    r"Function properties for (\w+)\s.*?(\d+) bytes stack frame|Used (\d+) registers", re.DOTALL
)


def _needs(words: str) -> dict[str, Needs]:
    """What the assembler tells of functions: the registers of a kernel after its memory."""
    found: dict[str, Needs] = {}
    name, local = "", 0
    for told in _TOLD.finditer(words):
        if told[1]:
            name, local = told[1], int(told[2])
        else:
            found[name] = Needs(int(told[3]), local)
    return found
