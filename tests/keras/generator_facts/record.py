"""Records what Keras gives: ``python -m tests.keras.generator_facts.record``.

Run it with a Python that has tensorflow, scipy and pandas; the tests read ``facts.npz`` only.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.keras.generator_facts.cases import CASES, pictures, results

FACTS = Path(__file__).parent / "facts.npz"


def main() -> None:
    arrays: dict[str, Any] = {}
    described: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        pictures(folder)
        for key in CASES:
            found = results(key, tf.keras.preprocessing, folder)
            described[key] = [
                v if isinstance(v, str) else v.tolist() if v.dtype.kind == "U" else None
                for v in found
            ]
            numbers = [v for v, d in zip(found, described[key], strict=True) if d is None]
            for place_of, value in enumerate(numbers):
                arrays[f"{key}/{place_of}"] = value.astype("f4") if value.dtype == "f8" else value
    arrays["described"] = np.array(json.dumps({"tensorflow": tf.__version__, "cases": described}))
    np.savez_compressed(FACTS, **arrays)
    print(f"{len(CASES)} cases, {FACTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
