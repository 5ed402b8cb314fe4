"""What issue 4 asks of each workload: `python -m benchmarks.goals REPORT.json` sets a report beside
it, as a Markdown table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import markdown, microseconds

# Microseconds a call; for first calls and imports the whole time.
GOALS: dict[str, float] = {
    "eager add, 4 floats": 0.25,
    "call, 1 tensor": 0.15,
    "call, 1 ndarray": 0.15,
    "call, 3 tensors": 0.2,
    "call, 3 ndarrays": 0.2,
    "call, list of 20": 2,
    "call, dict of 20": 3,
    "gelu 10^3": 0.5,
    "gelu 10^6": 110,
    "gelu 10^7": 1_300,
    "black-scholes 10^6": 370,
    "softmax 1024x1024": 90,
    "layer norm 1024x1024": 60,
    "cross-entropy and gradient 4096x1000": 420,
    "Adam, 3.3 million parameters": 450,
    "bias + relu + max pool 50x28x28x32": 35,
    "scalar while, 10^4 steps": 11,
    "tanh while over 128 floats, 10^3 steps": 20,
    "mandelbrot 200x200, 100 steps": 1_850,
    "mlp step 784-100-10 b50 Adam": 65,
    "mlp step 784-512-512-10 b128 Adam": 1_000,
    "cnn step 32-64-1024 b50 Adam": 9_000,
    "rnn forward T100 b32 h64": 150,
    "rnn gradient T100 b32 h64": 350,
    "50 batch sizes, cold": 100_000,
    "first call, mlp step, cold": 150_000,
    "first call, mlp step, warm cache": 30_000,
    "first call, cnn step, cold": 400_000,
    "first call, cnn step, warm cache": 80_000,
    "import": 150_000,
}
# The best peer's time divided by ours, at least; by the beginning of the name.
AHEAD: dict[str, float] = {
    "lstm step T100 b32 h128 Adam": 1.5,
    "transformer block step b8 t128 d256 h4 Adam": 1.5,
    "matmul": 1.0,
    "conv": 1.0,
    "depthwise": 1.0,
}


def goal_of(name: str) -> tuple[str, float, bool]:
    """(the goal as text, its value, whether it is a ratio to the best peer); "" for none."""
    if name in GOALS:
        return microseconds(GOALS[name]), GOALS[name], False
    for start, ratio in AHEAD.items():
        if name.startswith(start):
            return "ahead" if ratio == 1 else f"{ratio:g} x ahead", ratio, True
    return "", 0.0, False


def verdict(name: str, ours: float, best: float | None) -> str:
    """`met`, or by how much the time is above what it should be."""
    text, goal, relative = goal_of(name)
    if not text or (relative and best is None):
        return ""
    limit = best / goal if relative and best is not None else goal
    return "met" if ours <= limit else f"{ours / limit:.2f} x too slow"


def table(report: dict[str, Any]) -> str:
    """A Markdown table of treadle, the goals and the best peers."""
    lines = [["workload (µs)", "goal", "treadle", "best peer", "ratio", "verdict"]]
    for name, row in report["workloads"].items():
        cells = row["libraries"]
        ours = cells.get("treadle", cells.get("treadle-eager", {})).get("median_us")
        if ours is None:
            lines.append([name, goal_of(name)[0], "failed", "", "", ""])
            continue
        peer = row["best_peer"]
        best = cells[peer]["median_us"] if peer else None
        theirs = f"{peer} {microseconds(best)}" if peer else ""
        ratio = f"{ours / best:.2f}" if best else ""
        found = [goal_of(name)[0], microseconds(ours), theirs, ratio, verdict(name, ours, best)]
        lines.append([name, *found])
    return markdown(lines)


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())))
