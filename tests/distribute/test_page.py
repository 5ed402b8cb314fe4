"""The programs of docs/distribute.md print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distribute.launching import HAS_MPI, finish, start

pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[2] / "docs" / "distribute.md"
PROGRAM = re.compile(
    r"^```py\n# (\w+\.py), started by: (.*?)\n(.*?)^```\n\n```text\n(.*?)^```", re.M | re.S
)
PROGRAMS = PROGRAM.findall(PAGE.read_text())


def printed(command: str, code: str, folder: Path) -> str:
    """What a program prints that is started as the page says."""
    if command.startswith("mpiexec -n 2"):
        status, out, err = finish(start(code, 2, folder, head=""))
    else:
        program = folder / "program.py"
        program.write_text(code)
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=100
        )
        status, out, err = done.returncode, done.stdout, done.stderr
    assert status == 0, err
    return out


def test_there_are_programs() -> None:
    assert [name for name, *_ in PROGRAMS] == ["workers.py", "packs.py", "mirrored.py"]


@pytest.mark.parametrize("program", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_program(program: tuple[str, ...], tmp_path: Path) -> None:
    _, command, code, shown = program
    if command.startswith("mpiexec") and not HAS_MPI:
        pytest.skip("needs MPI: pip install treadle[mpi]")
    assert printed(command, code, tmp_path) == shown


def test_one_worker_prints_the_same(tmp_path: Path) -> None:
    _, _, code, shown = PROGRAMS[0]
    assert printed("python", code, tmp_path) == shown
