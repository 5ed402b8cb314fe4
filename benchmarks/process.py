"""The runner's side of a worker process."""

import os
import pickle
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from benchmarks import on_gpu
from benchmarks.libraries import LIBRARIES

ROOT = Path(__file__).parent.parent


class WorkerError(Exception):
    """A request that failed in the worker; `missing` when the library is not installed."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class Process:
    """A running worker; what it writes to standard error is kept for the report of a crash.

    `cache` is the folder for compile caches on disk. The libraries whose cache is off by default
    keep one only when `warm`, so that a cold start does not pay for filling it. `root` is the
    checkout that is timed, `device` what the library works on, as "GPU:0".
    """

    def __init__(
        self, library: str, peers_python: str, cache: str, warm: bool = False, root: Path = ROOT,
        device: str = "CPU:0",
    ) -> None:  # fmt: skip
        ours = LIBRARIES[library].ours or LIBRARIES[library].package == "numpy"
        python = sys.executable if ours else peers_python
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        kind = device.partition(":")[0]
        own = LIBRARIES[library].environment | on_gpu.environment(device)
        self._child = subprocess.Popen(
            [python, "-m", "benchmarks.worker", library, *([kind] if kind != "CPU" else [])],
            cwd=root, env=environment(cache, warm, root) | own,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def ask(self, method: str, *arguments: Any) -> Any:
        """The answer of one of the Worker's methods; raises WorkerError."""
        assert self._child.stdin and self._child.stdout
        try:
            pickle.dump((method, arguments), self._child.stdin)
            self._child.stdin.flush()
            kind, value = pickle.load(self._child.stdout)
        except (EOFError, BrokenPipeError):
            self._log.seek(0)
            text = self._log.read().decode(errors="replace")[-2000:]
            raise WorkerError(f"the worker ended (status {self._child.wait()}):\n{text}") from None
        if kind != "ok":
            raise WorkerError(value, missing=kind == "missing")
        return value

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def close(self) -> None:
        assert self._child.stdin and self._child.stdout
        with suppress(BrokenPipeError):  # it has ended by itself, a request still in the pipe
            self._child.stdin.close()
        try:
            self._child.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def environment(cache: str, warm: bool, root: Path = ROOT) -> dict[str, str]:
    """The worker's environment: a checkout importable, compile caches under `cache`.

    Compiled Python is kept for every library alike: a user's imports find it, too.
    """
    opted_in = {
        "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    paths = [str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]
    return {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TREADLE_CACHE_DIR": f"{cache}/treadle",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torch",
        **(opted_in if warm else {}),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
