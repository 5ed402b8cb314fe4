"""Compares what two libraries wrote: ``python -m tests.keras.random_models.compare A B``."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

# How far results may differ, of their largest: training adds rounding errors up.
CLOSE = {
    "called": 2e-4, "predicted": 2e-4, "gradients": 1e-3, "losses": 1e-3, "trained": 3e-3,
    "again": 3e-3,
}  # fmt: skip


def difference(expected: list[Any], actual: list[Any], close: float) -> str:
    """What differs first; nothing where all is equal."""
    if len(expected) != len(actual):
        return f"{len(expected)} and {len(actual)} values"
    for i, (a, b) in enumerate(zip(expected, actual, strict=True)):
        if a is None or b is None:
            if a is not b:
                return f"[{i}]: one is None"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"[{i}]: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
        largest = max(1.0, float(np.nanmax(np.abs(a), initial=0.0)))
        if not np.allclose(a, b, rtol=close, atol=close * largest, equal_nan=True):
            return f"[{i}]: by {np.nanmax(np.abs(a - b)):.3g} of {largest:.3g}, {a.shape}"
    return ""


def main(first: str, second: str) -> None:
    expected, actual = (pickle.loads(Path(name).read_bytes()) for name in (first, second))
    equal = 0
    for seed in sorted(expected.keys() & actual.keys()):
        a, b = expected[seed], actual[seed]
        if "error" in a or "error" in b:
            if "error" in a and "error" in b:
                equal += 1
            else:
                print(seed, "the first" if "error" in a else "the second", (a | b)["error"][:300])
            continue
        wrong = {key: difference(a[key], b[key], CLOSE[key]) for key in CLOSE if key in a}
        wrong = {key: text for key, text in wrong.items() if text}
        equal += not wrong
        if wrong:
            print(seed, wrong, a["layers"])
    print(f"{equal} of {len(expected.keys() & actual.keys())} are equal")


if __name__ == "__main__":
    main(*sys.argv[1:])
