"""Records what TensorFlow gives: ``python tests/facts_tf/record.py [group or table ...]``.

A group is a file of `programs/`, a table a file of `calls/`. Run it with a Python that has
tensorflow; the tests read the JSON only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def text_of(version: str, facts: dict[str, Any]) -> str:
    """The JSON: a line for each program or function, in the order of its file."""
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    return f'{{"tensorflow": {json.dumps(version)},\n{lines}}}\n'


def main(names: list[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(HERE.parents[1]))
    import tensorflow as tf

    from tests.facts_tf.calls import TABLES, facts_of
    from tests.facts_tf.registry import GROUPS, programs, run

    tf.get_logger().setLevel("ERROR")
    for name in names or [*GROUPS, *TABLES]:
        if name in TABLES:
            folder, facts = "calls", facts_of(tf, name)
        else:
            folder, facts = "facts", {key: run(fn, tf) for key, fn in programs(name).items()}
        (HERE / folder / f"{name}.json").write_text(text_of(tf.__version__, facts))
        print(f"{name}: {len(facts)} facts from TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])
