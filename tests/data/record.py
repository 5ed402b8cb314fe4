"""Records what TensorFlow gives for the programs: ``python tests/data/record.py``.

Run it with a Python that has tensorflow; the tests read the JSON only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(HERE.parents[1]))
    import tensorflow as tf

    from tests.data.facts_of import PROGRAMS, fact

    tf.get_logger().setLevel("ERROR")
    facts = {name: fact(program, tf) for name, program in PROGRAMS.items()}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    text = f'{{"tensorflow": {json.dumps(tf.__version__)},\n{lines}}}\n'
    (HERE / "facts" / "datasets.json").write_text(text)
    print(f"{len(facts)} facts from TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
