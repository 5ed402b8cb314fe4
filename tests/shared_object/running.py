"""C programs that call exported libraries, for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = "/usr/aarch64-linux-gnu"  # where Debian has the libraries of the other machine
CROSS, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"
HAS_CROSS = shutil.which(CROSS) is not None and os.path.exists(f"{ROOT}/include/stdio.h")
HAS_QEMU = HAS_CROSS and shutil.which(QEMU) is not None

# Every program begins with this: files of arrays, and a check of what functions return.
_BEGIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{header}"

static void *read_file(const char *name)
{{
    FILE *file = fopen(name, "rb");
    if (!file) {{ perror(name); exit(3); }}
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    void *data = malloc(size ? size : 1);
    if (fread(data, 1, size, file) != (size_t)size) exit(3);
    fclose(file);
    return data;
}}

static void write_file(const char *name, const void *data, size_t size)
{{
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(data, 1, size, file) != size) exit(3);
    fclose(file);
}}

#define CHECK(call) do {{ int status = (call); if (status != 0) {{ \\
    fprintf(stderr, "%s: %d: %s\\n", #call, status, {prefix}_error()); exit(4); }} }} while (0)

"""


class Program:
    """A C program linked with a library.

    Args:
        exported: what `td.shared_object.export` gave.
        body: the text of the program after what all begin with.
        flags: further ones for the compiler, such as of a sanitizer.
        is_arm: it runs on an emulated aarch64.
    """

    def __init__(
        self, exported: Any, body: str, flags: Sequence[str] = (), is_arm: bool = False
    ) -> None:
        self.folder: Path = exported.library.parent
        self.is_arm = is_arm
        source = self.folder / "program.c"
        begin = _BEGIN.format(header=exported.header.name, prefix=exported.header.stem)
        source.write_text(begin + body)
        compiler = CROSS if is_arm else "cc"
        line = [
            compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1",
            *flags, "program.c", f"-L{self.folder}", f"-l:{exported.library.name}", "-pthread",
            "-lm", f"-Wl,-rpath,{self.folder}", "-o", "program",
        ]  # fmt: skip
        done = subprocess.run(line, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def __call__(self, **arrays: Any) -> list[str]:
        """Run it, with files of arrays in its folder; gives the lines that it prints."""
        for name, array in arrays.items():
            (self.folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
        line = [*((QEMU, "-L", ROOT) if self.is_arm else ()), str(self.folder / "program")]
        clean = {"PATH": os.environ["PATH"]}  # nothing says where Python's libraries are
        done = subprocess.run(
            line, cwd=self.folder, capture_output=True, text=True, env=clean, check=False
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout.splitlines()

    def result(self, name: str, like: Any) -> np.ndarray:
        """An array that the program wrote, of the dtype and shape of another."""
        wanted = np.asarray(like)
        data = (self.folder / name).read_bytes()
        return np.frombuffer(data, wanted.dtype).reshape(wanted.shape)
