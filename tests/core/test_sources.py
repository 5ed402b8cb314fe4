"""The digest of the source files."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import treadle

pytestmark = pytest.mark.thorough


def digest(folder, package="runtime"):
    code = f"from treadle.core.sources import sources\nprint(sources({package!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(folder)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_it_changes_with_every_file_and_only_then(tmp_path):
    package = Path(treadle.__file__).parent
    shutil.copytree(package, tmp_path / "treadle", ignore=shutil.ignore_patterns("__pycache__"))
    first = digest(tmp_path)
    assert digest(tmp_path) == first  # compiled files appear meanwhile
    changed = tmp_path / "treadle" / "runtime" / "cpu" / "nest" / "loops.py"
    changed.write_text(changed.read_text() + "# more\n")
    second = digest(tmp_path)
    (tmp_path / "treadle" / "ops" / "new.py").write_text("")
    assert len({first, second, digest(tmp_path)}) == 3


def test_it_is_of_a_package_and_of_those_below_it(tmp_path):
    package = Path(treadle.__file__).parent
    shutil.copytree(package, tmp_path / "treadle", ignore=shutil.ignore_patterns("__pycache__"))
    first = digest(tmp_path), digest(tmp_path, "autograph")
    (tmp_path / "treadle" / "runtime" / "new.py").write_text("")
    second = digest(tmp_path), digest(tmp_path, "autograph")
    (tmp_path / "treadle" / "keras" / "new.py").write_text("")
    assert second[0] != first[0] and second[1] == first[1]
    assert (digest(tmp_path), digest(tmp_path, "autograph")) == second
