"""Whether compilers of CUDA C accept kernels."""

import functools
import subprocess
import tempfile
from pathlib import Path

from treadle.runtime.gpu.kernels import OPTIONS
from treadle.runtime.gpu.toolkit import CompileError, Compiler, Nvcc, whole

ARCHITECTURES = ("sm_80", "sm_90")


def check(compiler: Compiler, text: str) -> None:
    """Compile kernels for all architectures, as quickly as the compiler can.

    nvcc translates the text once, for the oldest architecture: no kernel asks which one it is
    compiled for. The assembler takes the result for each. Both optimise as little as they can.

    Raises:
        CompileError: the compiler refuses them; the message begins with the architecture where
            that is known.
    """
    if not isinstance(compiler, Nvcc):
        for architecture in ARCHITECTURES:
            try:
                compiler.compile(text, architecture)
            except CompileError as error:
                raise CompileError(f"{architecture}: {error}") from None
        return
    virtual = f"compute_{ARCHITECTURES[0].removeprefix('sm_')}"
    targets = [f"-gencode=arch={virtual},code={a}" for a in ARCHITECTURES]
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernels.cu", Path(folder) / "made"
        source.write_text(whole(text))
        options = [*OPTIONS, "-fatbin", "-w", *targets, *_quickly(compiler.path), f"-o={made}"]
        found = subprocess.run(
            [compiler.path, *options, str(source)], capture_output=True, text=True, check=False
        )
        if found.returncode:
            raise CompileError(found.stderr[:4000])
        assert made.stat().st_size > len(ARCHITECTURES) * text.count("TD_KERNEL")


@functools.cache
def _quickly(path: str) -> list[str]:
    """The option of nvcc that leaves out optimisations, where it has one (from CUDA 12.9 on)."""
    words = subprocess.run([path, "--help"], capture_output=True, text=True, check=False).stdout
    return ["--Ofast-compile=max"] if "--Ofast-compile" in words else []
