"""The tests that take long, of which the plain command runs one case, or none where they have one
only: `long_tests.txt` lists them.

A run of the tests with ``--record-seconds FILE`` appends to a file how long the processor worked
for each, in all threads and processes that the test waited for. This makes the list anew of such
files; what they do not have stays as it is::

    python -m pytest -q -n auto --thorough --record-seconds /tmp/seconds
    python -m tests.long_tests /tmp/seconds
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
ROOT = Path(__file__).parents[1]
LONG = 0.5  # seconds of the processor, the mean of a test's cases


def function_of(nodeid: str) -> str:
    """The name that a test has without its case."""
    return nodeid.split("[")[0]


def listed() -> frozenset[str]:
    """The tests that take long, by file and function."""
    return frozenset(LIST.read_text().split())


def measured(lines: Iterable[str]) -> dict[str, float]:
    """Seconds of each test, the mean of its cases, from lines of a record.

    Of several runs of a case the shortest counts. Of three cases or more the longest does not
    count: it may have made what all of them share.
    """
    least: dict[str, float] = {}
    for line in lines:
        seconds, nodeid = line.rstrip("\n").split(" ", 1)
        least[nodeid] = min(float(seconds), least.get(nodeid, float("inf")))
    found: dict[str, list[float]] = {}
    for nodeid, shortest in least.items():
        found.setdefault(function_of(nodeid), []).append(shortest)
    for cases in found.values():
        if len(cases) > 2:
            cases.remove(max(cases))
    return {name: sum(cases) / len(cases) for name, cases in found.items()}


def renewed(known: Iterable[str], seconds: dict[str, float]) -> list[str]:
    """The list after new measurements; tests of files that are gone go, too."""
    kept = {name for name in known if name not in seconds}
    long = {name for name, mean in seconds.items() if mean > LONG}
    return sorted(name for name in kept | long if (ROOT / name.split("::")[0]).exists())


if __name__ == "__main__":
    record = [line for name in sys.argv[1:] for line in Path(name).open(encoding="utf-8")]
    names = renewed(listed(), measured(record))
    LIST.write_text("".join(f"{name}\n" for name in names))
    print(f"{len(names)} tests take more than {LONG} s")
