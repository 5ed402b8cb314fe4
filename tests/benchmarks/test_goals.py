"""Reports beside the goals."""

from typing import Any

import pytest

from benchmarks.goals import AHEAD, GOALS, table, verdict
from benchmarks.workload import all_workloads


def row(ours: float | None, peer: str | None = None, best: float = 0.0) -> dict[str, Any]:
    cells: dict[str, Any] = {"treadle": {"error": "x"} if ours is None else {"median_us": ours}}
    if peer:
        cells[peer] = {"median_us": best}
    return {"libraries": cells, "best_peer": peer}


def test_goals_are_of_workloads_that_exist() -> None:
    names = list(all_workloads())
    assert [g for g in GOALS if g not in names] == []
    assert [a for a in AHEAD if not any(n.startswith(a) for n in names)] == []


@pytest.mark.parametrize(
    ("name", "ours", "best", "found"),
    [
        ("call, 1 tensor", 0.15, None, "met"),
        ("call, 1 tensor", 0.3, None, "2.00 x too slow"),
        ("call, 1 tensor", 0.3, 2.0, "2.00 x too slow"),
        ("call, 1 tensor", 0.3, 5.8, "met as a ratio"),
        ("call, 1 tensor", 0.6, 5.8, "2.00 x too slow"),
        ("matmul 256x256x256", 60.0, 61.0, "met"),
        ("conv 5x5 50x28x28x1 to 32, forward", 66.0, 60.0, "1.10 x too slow"),
        ("lstm step T100 b32 h128 Adam", 100.0, 120.0, "1.25 x too slow"),
        ("lstm step T100 b32 h128 Adam", 80.0, 120.0, "met"),
        ("matmul 256x256x256", 60.0, None, ""),
        ("dataset batches", 60.0, 1.0, ""),
    ],
)
def test_verdicts(name: str, ours: float, best: float | None, found: str) -> None:
    assert verdict(name, ours, best) == found


def test_the_table_has_a_line_for_each_workload() -> None:
    rows = {"gelu 10^6": row(100.0, "jax", 230.0), "import": row(None), "dataset batches": row(7.0)}
    head, _, *lines = table({"workloads": rows}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert head.count("|") == 8
    assert cells == [
        ["gelu 10^6", "110", "100", "jax 230", "0.43", "0.48", "met"],
        ["import", "150,000", "failed", "", "", "0.23", ""],
        ["dataset batches", "", "7.00", "", "", "", ""],
    ]
