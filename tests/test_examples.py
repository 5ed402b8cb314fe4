"""The programs of examples/: each runs in a process of its own and asserts its result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distribute.launching import needs_mpi

pytestmark = pytest.mark.thorough

FOLDER = Path(__file__).parent.parent / "examples"
FILES = sorted(FOLDER.glob("*.py"))
SEEDS = sorted(FOLDER.glob("seeds/*.py"))  # docs/seeds.md tells what they are
MARKS = {"two_workers_mpi": needs_mpi}
SECONDS = 300  # on a busy machine; alone, each takes a tenth of it at most


@pytest.mark.parametrize(
    "file", [pytest.param(f, id=f.stem, marks=MARKS.get(f.stem, ())) for f in [*FILES, *SEEDS]]
)
def test_runs(file: Path, tmp_path: Path) -> None:
    # Strict: a part of a program that runs in the interpreter is an error.
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), "TREADLE_STRICT": "1"}
    done = subprocess.run(
        [sys.executable, str(file)], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert not os.listdir(tmp_path), "an example leaves files behind"


def test_the_table_has_every_program_and_no_other() -> None:
    rows = re.findall(r"^\| \[(\w+\.py)\]\(\1\) \|", (FOLDER / "README.md").read_text(), re.M)
    assert rows == sorted(rows) and set(rows) == {file.name for file in FILES}
