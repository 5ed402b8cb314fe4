"""All that is to be found out on a GPU, within some minutes: `python -m benchmarks.gpu_session`.

For machines that are lent for a short time and reach no network. Each stage is a process with a
limit of its own; what fails is told with its last words, and the next stage runs all the same.
After each one `session.json` says what is known by then, and `session.txt` has all that the stages
printed.

    python -m benchmarks.gpu_session --rehearsal    # without a GPU, some days before

goes through the same stages with a recorder in the place of the GPU, and less to do in each, so
that no stage fails for a reason that has nothing to do with a GPU. What it prints is no figure of
one, and says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

HERE = Path(__file__).parents[1]
# What a stage needs to run at all; pip's name where it differs.
PACKAGES = {
    "numpy": "numpy", "llvmlite": "llvmlite", "gast": "gast", "ml_dtypes": "ml_dtypes",
    "rich": "rich", "pytest": "pytest", "hypothesis": "hypothesis", "cupy": "cupy-cuda13x",
}  # fmt: skip
# Workloads that are compared: beginnings of their names.
WORKLOADS = (
    "call, 1 tensor", "cnn step", "large ", "matmul 1024", "matmul bfloat16 1024", "mlp step",
    "rnn gradient", "softmax 1024", "layer norm 1024", "transformer block step",
)  # fmt: skip
REHEARSED = ("call, 1 tensor", "mlp step")
LAST_WORDS = 1500  # characters of a stage that failed


@dataclass(frozen=True)
class Stage:
    """A process.

    Attributes:
        name: what is found out.
        command: arguments of Python, or of the program that they begin with.
        seconds: its limit.
        environment: what is added to that of the session.
        less: the command of a rehearsal; None: it wants a GPU.
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    environment: tuple[tuple[str, str], ...] = ()
    less: tuple[str, ...] | None = None


@dataclass
class Result:
    """What came of a stage: it is "done", "failed", "cut off" at its limit, or "left out" for want
    of time."""

    name: str
    outcome: str
    seconds: float = 0.0
    words: str = ""


def stages(out: Path) -> list[Stage]:
    """In the order of what is wanted most."""
    python = sys.executable
    tests = (python, "-m", "pytest", "-q", "-rfE", "--tb=short", "--thorough")
    names = (*tests, "tests/runtime/gpu/test_cupy_driver.py")
    on_gpu = (*tests, "tests/runtime/gpu/test_on_a_gpu.py", "-k")
    first = "gpu_is or programs or training or decides or bits or small or thread or functions"
    then = "matrices or convolutions or many_calls or other"
    # In a rehearsal the parameters are few: the shim's kernels are compiled one by one.
    few = "gpu_is or (programs and (softmax or loop)) or (training and dense) or thread"
    little = "(matrices and float32 and solve) or (convolutions and float32 and same)"
    wanted = (("TREADLE_TEST_GPU", "1"),)
    benchmarks = (python, "-m", "benchmarks", "--device", "GPU:0", "--rounds", "3")
    alone = ("--seconds", "0.1", "--libraries", "treadle", "--out", str(out / "treadle.json"))
    peers = ("--seconds", "0.1", "--libraries", "treadle,torch-compile,jax")
    beside = (*peers, "--out", str(out / "peers.json"))
    found = (python, "-c", "from treadle.cli import main; main()", "env")
    quick = (python, "-m", "benchmarks", "--device", "GPU:0", "--rounds", "1")
    return [
        Stage("the machine", ("nvidia-smi",), 20),
        Stage("what treadle finds", found, 60, less=found),
        Stage("names and signatures of CuPy", names, 60),
        Stage("programs, steps, recordings", (*on_gpu, first), 120, wanted, (*on_gpu, few)),
        Stage("treadle's speed", (*benchmarks, *alone, *WORKLOADS), 120,
              less=(*quick, *alone, *REHEARSED)),
        Stage("matrices, convolutions, memory, other libraries", (*on_gpu, then), 120, wanted,
              (*on_gpu, little)),
        Stage("speed beside the peers", (*benchmarks, *beside, *WORKLOADS), 360,
              less=(*quick, *beside, *REHEARSED)),
    ]  # fmt: skip


def rehearsed(stages: Sequence[Stage]) -> list[Stage]:
    """The stages that need no GPU, with a recorder in its place, and time for a busy machine."""
    path = ("PYTHONPATH", str(HERE / "tests/runtime/gpu/stand_in"))
    return [
        replace(s, command=s.less, seconds=10 * s.seconds, environment=(*s.environment, path))
        for s in stages
        if s.less is not None
    ]


def missing() -> list[str]:
    """Packages that are not installed, by pip's names."""
    return [pip for name, pip in PACKAGES.items() if importlib.util.find_spec(name) is None]


def session(
    stages: Sequence[Stage], out: Path, seconds: float, device: str = "a GPU"
) -> list[Result]:
    """Run stages one after the other, as long as there is time.

    Args:
        device: what they are run on.
    """
    end, results = time.monotonic() + seconds, list[Result]()
    out.mkdir(parents=True, exist_ok=True)
    for stage in stages:
        left = end - time.monotonic()
        result = _run(stage, out, min(stage.seconds, left)) if left > 5 else None
        results.append(result or Result(stage.name, "left out"))
        print(_line(results[-1]), flush=True)
        told = {"device": device, "minutes": seconds / 60, "stages": [asdict(r) for r in results]}
        (out / "session.json").write_text(json.dumps(told, indent=1) + "\n")
    return results


def _run(stage: Stage, out: Path, limit: float) -> Result:
    """One stage in a group of processes of its own, which ends as a whole."""
    begin = time.monotonic()
    own = dict(stage.environment)
    first, last = own.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")
    path = [first, str(HERE / "src"), str(HERE), last]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **own}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        try:
            process = subprocess.Popen(
                stage.command, stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=HERE, env=environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Result(stage.name, "failed", 0.0, str(error))
        try:
            outcome = "done" if process.wait(limit) == 0 else "failed"
        except subprocess.TimeoutExpired:
            outcome = "cut off"
        finally:
            if process.poll() is None or outcome == "cut off":
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        printed.seek(0)
        text = printed.read()
    took = round(time.monotonic() - begin, 1)
    with (out / "session.txt").open("a") as log:
        log.write(f"===== {stage.name}: {outcome} after {took} s\n{text}\n")
    return Result(stage.name, outcome, took, "" if outcome == "done" else text[-LAST_WORDS:])


def _line(result: Result) -> str:
    text = f"{result.outcome:9} {result.seconds:6.1f} s  {result.name}"
    return text + "".join(f"\n    {line}" for line in result.words.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_session", description=__doc__)
    parser.add_argument("--minutes", type=float, default=9.0, help="for all (%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("gpu_session"), help="a folder (%(default)s)"
    )
    parser.add_argument(
        "--wheels", type=Path, help="a folder of wheels, from which packages that are missing come"
    )
    parser.add_argument(
        "--rehearsal", action="store_true", help="without a GPU: a recorder stands in for it"
    )
    options = parser.parse_args()
    if missing() and options.wheels:
        install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        names = [str(p) for p in sorted(options.wheels.glob("*.whl"))]
        subprocess.run([*install, *names], check=False)
        importlib.invalidate_caches()
    if missing():
        print(f"not installed: {', '.join(missing())}; stages that need them fail", flush=True)
    todo, device = stages(options.out.resolve()), "a GPU"
    if options.rehearsal:
        todo, device = rehearsed(todo), "a recorder on the processor (a rehearsal)"
        print("A rehearsal: a recorder stands in for the GPU, and no figure is one of a GPU")
    results = session(todo, options.out, 60 * options.minutes, device)
    sys.exit(any(r.outcome != "done" for r in results))


if __name__ == "__main__":
    main()
