"""What is asked of each workload: `python -m benchmarks.goals REPORT.json` sets a report beside
it, as a Markdown table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import markdown, microseconds

# (what to reach, the best peer when the goal was set): microseconds a call; for first calls and
# imports the whole time. On a faster or slower machine their ratio is what counts.
GOALS: dict[str, tuple[float, float]] = {
    "eager add, 4 floats": (0.25, 0.22),
    "call, 1 tensor": (0.15, 2.9),
    "call, 1 ndarray": (0.15, 4.0),
    "call, 3 tensors": (0.2, 3.5),
    "call, 3 ndarrays": (0.2, 3.5),
    "call, list of 20": (2, 23),
    "call, dict of 20": (3, 25),
    "gelu 10^3": (0.5, 4.1),
    "gelu 10^6": (110, 230),
    "gelu 10^7": (1_300, 2_270),
    "black-scholes 10^6": (370, 800),
    "softmax 1024x1024": (90, 212),
    "layer norm 1024x1024": (60, 113),
    "cross-entropy and gradient 4096x1000": (420, 2_390),
    "Adam, 3.3 million parameters": (450, 888),
    "bias + relu + max pool 50x28x28x32": (35, 95),
    "scalar while, 10^4 steps": (11, 13.4),
    "tanh while over 128 floats, 10^3 steps": (20, 58),
    "mandelbrot 200x200, 100 steps": (1_850, 1_850),
    "mlp step 784-100-10 b50 Adam": (65, 170),
    "mlp step 784-512-512-10 b128 Adam": (1_000, 1_320),
    "cnn step 32-64-1024 b50 Adam": (9_000, 13_600),
    "rnn forward T100 b32 h64": (150, 390),
    "rnn gradient T100 b32 h64": (350, 1_200),
    "50 batch sizes, cold": (100_000, 330_000),
    "first call, mlp step, cold": (150_000, 80_000),
    "first call, mlp step, warm cache": (30_000, 80_000),
    "first call, cnn step, cold": (400_000, 130_000),
    "first call, cnn step, warm cache": (80_000, 130_000),
    "import": (150_000, 640_000),
}
# The best peer's time divided by ours, at least; by the beginning of the name.
AHEAD: dict[str, float] = {
    "lstm step T100 b32 h128 Adam": 1.5,
    "transformer block step b8 t128 d256 h4 Adam": 1.5,
    "matmul": 1.0,
    "conv": 1.0,
    "depthwise": 1.0,
}


def goal_of(name: str) -> tuple[str, str]:
    """The goal in microseconds and the ratio to the best peer's time, as text; "" for none."""
    if name in GOALS:
        goal, peer = GOALS[name]
        return microseconds(goal), f"{goal / peer:.2f}"
    ratio = _ahead(name)
    return "", f"{1 / ratio:.2f}" if ratio else ""


def _ahead(name: str) -> float | None:
    return next((ratio for start, ratio in AHEAD.items() if name.startswith(start)), None)


def verdict(name: str, ours: float, best: float | None) -> str:
    """`met`, `met as a ratio` to the best peer, or by how much the time is above both."""
    goal, peer = GOALS.get(name, (None, None))
    if goal is not None and ours <= goal:
        return "met"
    allowed = goal / peer if goal and peer else 1 / (_ahead(name) or float("inf"))
    if best is None or not (goal or allowed):
        return f"{ours / goal:.2f} x too slow" if goal else ""
    limit = max(best * allowed, goal or 0)
    if ours > limit:
        return f"{ours / limit:.2f} x too slow"
    return "met as a ratio" if goal else "met"


def table(report: dict[str, Any]) -> str:
    """A Markdown table of treadle, the goals and the best peers."""
    lines = [["workload (µs)", "goal", "treadle", "best peer", "ratio", "ratio asked", "verdict"]]
    for name, row in report["workloads"].items():
        cells, (goal, asked) = row["libraries"], goal_of(name)
        ours = cells.get("treadle", cells.get("treadle-eager", {})).get("median_us")
        if ours is None:
            lines.append([name, goal, "failed", "", "", asked, ""])
            continue
        peer = row["best_peer"]
        best = cells[peer]["median_us"] if peer else None
        theirs = f"{peer} {microseconds(best)}" if peer else ""
        ratio = f"{ours / best:.2f}" if best else ""
        found = [microseconds(ours), theirs, ratio, asked, verdict(name, ours, best)]
        lines.append([name, goal, *found])
    return markdown(lines)


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())))
