"""Kernels are compiled for GPUs, without one: by nvcc, which TREADLE_TEST_CUDA=1 says is here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.runtime.gpu import test_row_routines
from tests.runtime.gpu.test_kernels import compiled, compiled_parts, functions
from tests.runtime.gpu.test_routines import compiled_cases
from treadle.runtime.gpu.kernels import PRELUDE

LIBRARIES = {
    "cases": compiled, "in parts": compiled_parts, "functions": lambda: functions()[0],
    "routines": compiled_cases, "rows": lambda: test_row_routines.compiled()[0],
}  # fmt: skip
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")


def test_nvcc_is_where_it_must_be() -> None:
    if os.environ.get("TREADLE_TEST_CUDA") == "1":
        assert shutil.which("nvcc"), "TREADLE_TEST_CUDA=1 asks for tests with nvcc"


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kernels", LIBRARIES)
def test_kernels_compile(architecture: str, kernels: str, tmp_path: Path) -> None:
    library = LIBRARIES[kernels]()
    source = tmp_path / "kernels.cu"
    text = "\n".join(code.text for _, code in library.distinct.values())
    source.write_text(f'#include "{PRELUDE}"\n{text}\n')
    command = ["nvcc", f"-arch={architecture}", "-cubin", "-w", "-o", str(tmp_path / "made")]
    found = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[:4000]
