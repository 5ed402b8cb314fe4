"""Programs that MPI starts with several workers."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

MPIEXEC = Path(sys.prefix, "bin", "mpiexec")  # of the wheel of MPI
HAS_MPI = MPIEXEC.exists() and importlib.util.find_spec("mpi4py") is not None

needs_mpi = pytest.mark.skipif(not HAS_MPI, reason="needs MPI: pip install treadle[mpi]")

_HEAD = """\
import json, os, sys, time
import numpy as np
import treadle as td

def tell(*values):
    line = json.dumps([np.asarray(v).tolist() for v in values])
    sys.stdout.write(f"worker {rank}: {line}\\n")
    sys.stdout.flush()

strategy = td.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
size = strategy.num_replicas_in_sync
"""


def start(
    code: str, workers: int, folder: Path, *arguments: object, head: str = _HEAD, **env: str
) -> subprocess.Popen[str]:
    """Start a program.

    Args:
        code: follows the lines of `head`.
        folder: where the file of the program is put.
    """
    program = folder / "program.py"
    program.write_text(head + textwrap.dedent(code))
    command = [str(MPIEXEC), "-n", str(workers), sys.executable, str(program)]
    kept = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    return subprocess.Popen(
        [*command, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1", **env},
    )  # fmt: skip


def finish(started: subprocess.Popen[str], seconds: float = 300) -> tuple[int, str, str]:
    """(exit status, output, errors) of a program; it must end in that time."""
    try:
        out, err = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        out, err = started.communicate()
        pytest.fail(f"the workers did not end\n{out}\n{err}")
    return started.returncode, out, err


def told(code: str, workers: int, folder: Path, *arguments: object, **env: str) -> list[list[str]]:
    """What each worker of a program told, line by line."""
    status, out, err = finish(start(code, workers, folder, *arguments, **env))
    assert status == 0, out + err
    lines: list[list[str]] = [[] for _ in range(workers)]
    for line in out.splitlines():
        if line.startswith("worker "):
            who, _, what = line.removeprefix("worker ").partition(": ")
            lines[int(who)].append(what)
    return lines
