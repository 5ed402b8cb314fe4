"""Records what Keras gives for the cases: ``python tests/keras/training/record.py [GROUP...]``.

Run it with a Python that has tensorflow; the tests read the JSON only. With names of groups, such
as ``fit``, the facts of the others stay; with ``new`` all that are there.
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
    import keras
    import tensorflow as tf

    path, groups = HERE / "facts.json", sys.argv[1:]
    known = json.loads(path.read_text()) if groups else {}
    facts = {
        key: known[key] if key in known and key.partition(":")[0] not in groups
        else rounded(fn(tf, name, lambda f: f))
        for key, (fn, name) in cases.cases().items()
    }  # fmt: skip
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    head = f'"keras": {json.dumps(keras.__version__)}'
    path.write_text(f"{{{head},\n{lines}}}\n")
    print(f"{len(facts)} facts from Keras {keras.__version__}")


if __name__ == "__main__":
    main()
