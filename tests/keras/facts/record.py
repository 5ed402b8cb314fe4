"""Records what TensorFlow gives for the cases: ``python tests/keras/facts/record.py``.

Run it with a Python that has tensorflow; the tests read the JSON only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def rounded(value: Any) -> Any:
    """Floats to 8 significant digits: enough for float32."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def main() -> None:
    sys.path.insert(0, str(HERE))
    import cases
    import tensorflow as tf

    facts = {key: rounded(fn(tf, name)) for key, (fn, name) in cases.cases().items()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    (HERE / "facts.json").write_text(f'{{"tensorflow": {json.dumps(tf.__version__)},\n{lines}}}\n')
    print(f"{len(facts)} facts from TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
