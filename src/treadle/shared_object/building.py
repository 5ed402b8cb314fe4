"""From object files and C source to a shared object, by a C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.errors import FailedPreconditionError, UnimplementedError
from treadle.runtime.cpu.target import Target, this_machine
from treadle.shared_object.library import Library
from treadle.shared_object.source import constant_symbol, source_text, variable_symbol

_FLAGS = (
    "-shared", "-fPIC", "-O2", "-std=gnu11", "-fvisibility=hidden", "-pthread",
    "-Wl,-z,defs", "-Wl,-z,noexecstack", "-Wl,--gc-sections", "-Wl,--build-id=none", "-s",
)  # fmt: skip
_ALIGNMENT = 64  # of constants and variables: a cache line


def compiler_for(target: Target, chosen: str | None = None) -> list[str]:
    """The command of a C compiler for a machine.

    Args:
        chosen: the command, if the caller names it.

    Raises:
        UnimplementedError: the machine runs no Linux.
        FailedPreconditionError: there is no compiler.
    """
    if "linux" not in target.triple:
        text = f"shared objects are written for Linux, not for {target.triple}"
        raise UnimplementedError(None, None, text)
    is_here = target.arch == this_machine().arch
    if chosen is None and is_here:
        chosen = os.environ.get("CC")
    if chosen is not None:
        command = shlex.split(chosen)
        if command and shutil.which(command[0]):
            return command
        raise FailedPreconditionError(None, None, f"there is no C compiler {chosen!r}")
    triple = f"{target.arch}-linux-gnu"
    names = ["cc", "gcc", "clang"] if is_here else [f"{triple}-gcc"]
    for name in names:
        if shutil.which(name):
            return [name]
    if shutil.which("clang") and shutil.which("ld.lld"):
        return ["clang", f"--target={triple}", "-fuse-ld=lld"]
    raise FailedPreconditionError(None, None, _no_compiler(target, names, is_here))


def _no_compiler(target: Target, names: list[str], is_here: bool) -> str:
    looked = ", ".join(names)
    package = "gcc libc6-dev" if is_here else f"gcc-{target.arch.replace('_', '-')}-linux-gnu"
    more = "" if is_here else ", or clang with lld"
    return (
        f"a shared object for {target.arch} is linked by a C compiler, and there is none: looked "
        f"for {looked}{more}. On Debian: apt-get install {package}; or name one: compiler=..."
    )


def build(library: Library, header: str, command: list[str]) -> bytes:
    """The shared object.

    Raises:
        FailedPreconditionError: the compiler refuses; the error has what it says.
    """
    with tempfile.TemporaryDirectory(prefix="treadle-") as name:
        folder = Path(name)
        folder.joinpath(f"{library.prefix}.h").write_text(header)
        folder.joinpath("library.c").write_text(source_text(library))
        files = ["library.c"]
        for number, data in enumerate(library.objects.files()):
            folder.joinpath(f"{number}.o").write_bytes(data)
            files.append(f"{number}.o")
        if _write_data(library, folder):
            files.append("data.S")
        line = [*command, *_FLAGS, f"-Wl,-soname,{library.file}", "-o", "out.so", *files, "-lm"]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            text = f"{shlex.join(line)} failed:\n{done.stderr.strip()[-4000:]}"
            raise FailedPreconditionError(None, None, text)
        return folder.joinpath("out.so").read_bytes()


def _write_data(library: Library, folder: Path) -> bool:
    """Constants and first values of variables, for the assembler; False where there are none."""
    lines, offset = [], 0
    with open(folder / "data.bin", "wb") as file:
        for section, symbol, array in _arrays(library):
            data = np.ascontiguousarray(array)
            file.write(data.tobytes())
            lines += [
                f"\t.section {section}", f"\t.balign {_ALIGNMENT}", f"\t.globl {symbol}",
                f"\t.hidden {symbol}", f"\t.type {symbol}, %object", f"{symbol}:",
            ]  # fmt: skip
            if data.nbytes:
                lines.append(f'\t.incbin "data.bin", {offset}, {data.nbytes}')
            else:
                lines.append("\t.byte 0")
            offset += data.nbytes
    lines += ['\t.section .note.GNU-stack,"",%progbits', ""]
    folder.joinpath("data.S").write_text("\n".join(lines))
    return len(lines) > 2


def _arrays(library: Library) -> Iterator[tuple[str, str, Any]]:
    """The section, the symbol and the elements of all arrays."""
    for number, constant in enumerate(library.constants):
        yield '.rodata,"a",%progbits', constant_symbol(number), constant
    for number, value in enumerate(library.values):
        yield '.data,"aw",%progbits', variable_symbol(number), value
