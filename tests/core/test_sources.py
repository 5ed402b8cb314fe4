"""The digest of the source files."""

import shutil
import subprocess
import sys
from pathlib import Path

import treadle


def digest(folder):
    code = "from treadle.core.sources import sources\nprint(sources())"
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
