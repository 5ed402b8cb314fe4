"""Programs for GPUs by the real CuPy, on a made-up CUDA: where CuPy, NVRTC and the headers of CUDA
are installed, in this Python or in that of TREADLE_TEST_CUPY."""

import os
import subprocess

import pytest

from tests.runtime.gpu.made_up_cuda import HERE
from tests.runtime.gpu.test_cupy_driver import interpreters

LOOK = "from tests.runtime.gpu.made_up_cuda import headers; headers()"
PARTS = {
    "the driver": ["through_cupy.py"],
    "programs": ["test_on_a_gpu.py", "-k", "test_programs"],
    "recorded control": ["test_on_a_gpu.py", "-k", "decides_about and (1.5 or 0.01)"],
    "training steps": ["test_on_a_gpu.py", "-k", "test_training_steps or bits"],
}


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(HERE.parents[2] / "src"), str(HERE.parents[2])])
    return {**os.environ, "PYTHONPATH": path, "TREADLE_CACHE_DIR": ""}


def with_headers() -> list[str]:
    return [
        p for p in interpreters()
        if not subprocess.run([p, "-c", LOOK], env=environment(), capture_output=True).returncode
    ]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("python", with_headers())
def test_programs_go_through_all_of_cupy(python: str, part: str) -> None:
    plugins = ["-p", "tests.runtime.gpu.made_up_cuda", "-p", "no:cacheprovider"]
    name, *chosen = PARTS[part]
    command = [python, "-m", "pytest", "-q", "--thorough", *plugins, str(HERE / name), *chosen]
    ran = subprocess.run(
        command, env=environment(), cwd=HERE.parents[2], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
