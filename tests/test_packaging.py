"""The wheel, and the promises of pyproject.toml."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import treadle
from treadle.runtime.cpu.shipped_code import LEVELS

ROOT = Path(__file__).parent.parent
SHIPPED = {f"treadle/runtime/cpu/shipped/{level}.zip" for level in LEVELS}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one that .ci/run has built and installed, or a new one: building compiles code."""
    if (built := os.environ.get("TREADLE_TEST_WHEEL")) is not None:
        return Path(built)
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.thorough
def test_wheel_is_pure_python_and_small(wheel: Path) -> None:
    assert wheel.name == f"treadle-{treadle.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 4_200_000  # about 1,500 files of Python, 0.6 MB of machine code
    with zipfile.ZipFile(wheel) as archive:
        sizes = {f.filename: f.compress_size for f in archive.infolist()}
    others = {n for n in sizes if n.startswith("treadle/") and not n.endswith(".py")}
    assert others == {
        "treadle/py.typed", "treadle/datasets/digits.npz", "treadle/datasets/LICENSE-digits.txt",
        "treadle/runtime/gpu/prelude.cuh", "treadle/shared_object/support.c", *SHIPPED,
    }  # fmt: skip
    own = {n: size for n, size in sizes.items() if n.startswith("treadle/")}  # without the index
    assert max(size for name, size in own.items() if name not in SHIPPED) < 60_000
    assert all(20_000 < sizes[name] < 400_000 for name in SHIPPED)


@pytest.mark.thorough
def test_wheel_has_everything_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {n for n in names if n.startswith("treadle/")}
    assert {
        "treadle/__init__.py", "treadle/py.typed",
        "treadle/datasets/digits.npz", "treadle/datasets/LICENSE-digits.txt",
    } <= package  # fmt: skip
    assert all(".dist-info/" in name for name in names - package)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    sources = {str(p.relative_to(ROOT / "src")) for p in (ROOT / "src/treadle").rglob("*.py")}
    assert sources <= package


@pytest.mark.thorough
def test_console_script(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        assert "treadle = treadle.cli:main" in archive.read(points).decode()


def test_requirements_stay_few() -> None:
    required = {requirement.partition(">")[0] for requirement in PROJECT["dependencies"]}
    assert required == {"numpy", "llvmlite", "gast", "ml_dtypes", "rich"}
    assert {"cuda12", "cuda13", "plot", "bench", "test", "docs", "dev"} <= set(
        PROJECT["optional-dependencies"]
    )
