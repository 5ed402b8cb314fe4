"""The runner of programs' calls, on programs of our own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.strangers.collected import KINDS, recording
from tests.strangers.numba_own.recorded import Recorder
from tests.strangers.numba_own.run import judged, told

WITH_DOCTESTS = '''
def double(x):
    """
    >>> double(2.0)
    4.0
    >>> double("a")
    'aa'
    """
    return x * 2


def keyed(x):
    """
    >>> keyed(3.5)
    1
    """
    return {x: 1}[x]
'''
BENCHMARK = """
import numpy as np
def initialize(N, datatype=np.float64):
    return np.ones(N, datatype), np.zeros(N)
"""
KERNEL = """
def kernel(N, a, b):
    for i in range(1, N):
        b[i] = b[i - 1] + a[i]
"""
RUN_AS = """
#pythran export total(float list)
#runas x = [1.0, 2.0] ; total(x)
def total(x):
    return sum(x)
"""
MEASURED = """
import pyperf
def steps(n):
    k = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        k += 1
    return k
def bench(loops, n):
    begun = pyperf.perf_counter()
    steps(n)
    return pyperf.perf_counter() - begun
if __name__ == "__main__":
    runner = pyperf.Runner()
    runner.argparser.add_argument("--n", type=int, default=27)
    runner.bench_time_func("steps", bench, runner.parse_args().n)
"""


def recorded(kind: str, file: Path, tmp_path: Path) -> dict[str, Any]:
    known, path = set(sys.modules), list(sys.path)
    calls = tmp_path / "calls.jsonl"
    try:
        KINDS[kind](file, f"collected_{kind}", Recorder(calls))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - known:
            if name == "pyperf" or name.startswith("collected_"):
                del sys.modules[name]
    found = judged(calls)
    return {name.rpartition(":")[2]: about["outcome"] for name, about in found.items()}


def test_doctests(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(WITH_DOCTESTS)
    found = recorded("doctests", tmp_path / "module.py", tmp_path)
    assert found == {"double": "agrees", "keyed": "refused"}
    counts = told(judged(tmp_path / "calls.jsonl"))
    assert counts["counts"] == {"agrees": 1, "refused": 1}
    assert "used as a key" in counts["others"][0]["cause"]


def test_npbench(tmp_path: Path) -> None:
    folder = tmp_path / "npbench" / "benchmarks" / "sums"
    folder.mkdir(parents=True)
    (folder / "sums.py").write_text(BENCHMARK)
    (folder / "sums_numpy.py").write_text(KERNEL)
    about = {
        "relative_path": "sums", "module_name": "sums", "func_name": "kernel",
        "parameters": {"S": {"N": 9}}, "input_args": ["N", "a", "b"],
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["a", "b"]},
    }  # fmt: skip
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "sums.json").write_text(json.dumps({"benchmark": about}))
    file = tmp_path / "bench_info" / "sums.json"
    assert recorded("npbench", file, tmp_path) == {"kernel": "agrees"}


@pytest.mark.parametrize(("kind", "text"), [("pythran", RUN_AS), ("pyperf", MEASURED)])
def test_programs_that_call_their_functions(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(text)
    name = {"pythran": "total", "pyperf": "steps"}[kind]
    assert recorded(kind, tmp_path / "program.py", tmp_path) == {name: "agrees"}


def test_a_call_that_is_compared_has_the_functions_of_its_module() -> None:
    seen: list[Any] = []

    class Calls:
        def call(self, function: Any, args: Any, kwargs: Any) -> Any:
            seen.append(names["inner"])
            return function(*args, **kwargs)

    names: dict[str, Any] = {"seen": seen}
    exec("def inner(x): return x\ndef outer(x): return inner(x) + 1.0", names)
    own = {name: names[name] for name in ("inner", "outer")}
    recorder: Any = Calls()
    names |= {name: recording(recorder, function, own) for name, function in own.items()}
    assert names["outer"](2.0) == 3.0
    assert seen == [own["inner"]]
    assert names["inner"] is not own["inner"]
