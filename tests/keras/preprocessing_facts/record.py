"""Records what Keras gives: ``python -m tests.keras.preprocessing_facts.record``.

Run it with a Python that has tensorflow; the tests read ``facts.json`` only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.keras.preprocessing_facts.cases import CASES, described

FACTS = Path(__file__).parent / "facts.json"


def rounded(value: Any) -> Any:
    """Floats to 8 significant digits: enough for float32."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def main() -> None:
    facts: dict[str, Any] = {"tensorflow": tf.__version__}
    for key, case in CASES.items():
        layer, inputs = case(tf.keras.layers)
        found = described(layer, layer(inputs))
        facts[key] = {name: rounded(value) for name, value in found.items()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    FACTS.write_text(f"{{{lines}}}\n")
    print(f"{len(CASES)} cases, {FACTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
