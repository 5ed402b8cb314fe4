"""Runs the functions of Numba's own tests with `td.jit`, and says what became of them.

    PYTHON -m tests.strangers.numba_own.run [MODULE ...] [--calls FILE] [--write]

PYTHON is an interpreter that has Numba with its tests. Each module runs in a process of its own
(`recorded`). A function's outcome is the worst one of its calls. ``--write`` puts the counts into
the results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.strangers.run import ROOT

RESULTS = ROOT / "docs" / "results" / "numba_own_tests.json"
MODULES = """
    analysis array_analysis array_attr array_constants array_exprs array_iterators
    array_manipulation array_methods array_reductions array_return blackscholes boundscheck builtins
    chained_assign closure complex comprehension conditions_as_predicates controlflow dataflow
    dictimpl dictobject dicts dyn_array dyn_func errormodels exceptions extended_arg fancy_indexing
    flow_control generators getitem_on_types globals heapq indexing inlining interproc iteration
    listobject lists locals looplifting mandelbrot map_filter_reduce mathlib maxmin
    mixed_tuple_unroller multi3 nan nested_calls np_functions np_randomgen numberctor numbers
    operators optional overlap parfors polynomial practical_lowering_issues print random range
    recarray_usecases record_dtype recursion return_values sets slices sort ssa stencils storeslice
    try_except tuples typedlist ufuncs unicode unpack_sequence usecases vectorization withlifting
    linalg hashing enums
""".split()
# From the best to the worst.
ORDER = (
    "agrees", "agrees but for a type", "too slow", "no error", "other error", "refused", "differs",
)  # fmt: skip


def run(module: str, calls: Path, limit: float) -> str:
    """Record a module's calls; gives how its process ended."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.strangers.numba_own.recorded", module]
    try:
        ended = subprocess.run(
            [*command, str(calls)], timeout=limit, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return "stopped by the time limit"
    return "ended" if not ended.returncode else f"ended with {ended.returncode}"


def judged(calls: Path) -> dict[str, dict[str, Any]]:
    """The outcome of each function, and of the calls that are not as the plain function's the
    first cause."""
    found: dict[str, dict[str, Any]] = {}
    for line in calls.read_text().splitlines():
        call = json.loads(line)
        known = found.setdefault(call["function"], {"outcome": "agrees", "calls": 0})
        known["calls"] += 1
        if ORDER.index(call["outcome"]) > ORDER.index(known["outcome"]):
            known |= {k: call[k] for k in ("outcome", "cause", "args")}
    return found


def told(functions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The counts of the results."""
    counts = Counter(f["outcome"] for f in functions.values())
    modules: dict[str, Counter[str]] = defaultdict(Counter)
    causes: dict[str, list[str]] = defaultdict(list)
    for name, function in functions.items():
        modules[name.partition(":")[0].rpartition(".")[2]][function["outcome"]] += 1
        if function["outcome"] != "agrees":
            causes[alike(f"{function['outcome']}: {function['cause']}")].append(name)
    by_number = sorted(causes.items(), key=lambda pair: -len(pair[1]))
    return {
        "date": str(datetime.date.today()),
        "what": "functions that the tests of Numba compile, each called with the tests' arguments "
        "plainly and twice with td.jit: results, types, what is printed and arguments that change",
        "functions": len(functions),
        "counts": {outcome: counts[outcome] for outcome in ORDER if counts[outcome]},
        "by_module": {name: dict(found) for name, found in sorted(modules.items())},
        "causes": {cause: len(names) for cause, names in by_number if len(names) > 1},
        "others": [
            {"function": name} | {k: v for k, v in f.items() if k != "calls"}
            for name, f in sorted(functions.items())
            if f["outcome"] != "agrees"
        ],
    }


def alike(cause: str) -> str:
    """A cause without what differs from one function to the next."""
    cause = re.sub(r" at /.*", "", cause)
    cause = re.sub(r"'[^']*'", "'_'", cause)
    return re.sub(r"\d+(\.\d+)?", "#", cause)[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the functions of Numba's tests.")
    parser.add_argument("modules", nargs="*", default=MODULES, help="without numba.tests.test_")
    parser.add_argument("--calls", type=Path, help="a file for what became of each call")
    parser.add_argument("--limit", type=float, default=300, help="seconds for a module")
    parser.add_argument("--pause", type=Path, help="begin no module while this file exists")
    parser.add_argument("--write", action="store_true", help="put the counts into the results")
    options = parser.parse_args()
    calls = options.calls or Path(tempfile.mkdtemp()) / "calls.jsonl"
    calls.touch()
    for module in options.modules:
        while options.pause is not None and options.pause.exists():
            time.sleep(2)
        name = module if "." in module else f"numba.tests.test_{module}"
        print(name, run(name, calls, options.limit), flush=True)
    found = told(judged(calls))
    print(json.dumps({k: found[k] for k in ("functions", "counts")}))
    for cause, number in found["causes"].items():
        print(number, cause)
    if options.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
