import os
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.cli import main
from treadle.version import __version__

SRC = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "COMMAND"),
        (["knit"], "knit"),
        (["demo", "--epochs", "0"], "at least 1"),
        (["demo", "--epochs", "many"], "many"),
        (["bench", "--only", "no such"], "scalar loop"),
        (["bench", "--json", "/no/such/folder/x.json"], "/no/such/folder/x.json"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(argv, part, capsys):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("treadle: ") and captured.err.count("\n") == 1
    assert part in captured.err


def treadle(*argv, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "treadle", *argv],
        env={**os.environ, "PYTHONPATH": str(SRC)}, text=True, capture_output=True, timeout=120,
        **kwargs,
    )  # fmt: skip


def test_version():
    done = treadle("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"treadle {__version__}")


def test_exit_status_of_the_process():
    done = treadle("knit")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m treadle bench --help | head -1",
        shell=True, env={**os.environ, "PYTHONPATH": str(SRC)}, text=True, capture_output=True,
    )  # fmt: skip
    assert done.stderr == ""
