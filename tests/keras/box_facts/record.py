"""Records what Keras gives: ``python -m tests.keras.box_facts.record``.

Run it with a Python that has tensorflow; the tests read ``facts.json`` only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.keras.box_facts.cases import CASES

FACTS = Path(__file__).parent / "facts.json"


def recorded(array: Any) -> dict[str, Any]:
    """An array: floats to 7 significant digits."""
    numbers = array.reshape(-1).tolist()
    if array.dtype.kind == "f":
        numbers = [float(f"{number:.7g}") for number in numbers]
    return {"shape": list(array.shape), "dtype": str(array.dtype), "numbers": numbers}


def main() -> None:
    facts: dict[str, Any] = {"tensorflow": tf.__version__, "keras": tf.keras.version()}
    for key, case in CASES.items():
        facts[key] = {name: recorded(value) for name, value in case(tf.keras).items()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    FACTS.write_text(f"{{{lines}}}\n")
    print(f"{len(CASES)} cases, {FACTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
