"""Records what Keras gives for the calls: ``python tests/keras/ops_facts/record.py``.

Run it with a Python that has keras and tensorflow; the tests read the files only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


def main() -> None:
    os.environ["KERAS_BACKEND"] = "tensorflow"
    sys.path.insert(0, str(HERE.parents[2]))
    import keras

    from tests.keras.ops_facts.cases import CALLS, INPUTS, made, parts

    arrays: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for call in CALLS:
        found = parts(made(keras, call, INPUTS))
        facts[call] = [[dtype, list(shape)] for dtype, shape, _ in found]
        arrays |= {f"{call}/{n}": values for n, (_, _, values) in enumerate(found)}
    text = json.dumps({"keras": keras.__version__, "calls": facts})
    np.savez_compressed(HERE / "facts.npz", described=np.array(text), **arrays)
    print(f"{len(facts)} facts from Keras {keras.__version__}")


if __name__ == "__main__":
    main()
