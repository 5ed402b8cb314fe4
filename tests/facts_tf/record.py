"""Records what TensorFlow gives for the programs: ``python tests/facts_tf/record.py [group ...]``.

Run it with a Python that has tensorflow; the tests read the JSON only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def text_of(version: str, facts: dict[str, Any]) -> str:
    """The JSON of a group: a line for each program, in the order of its file."""
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    return f'{{"tensorflow": {json.dumps(version)},\n{lines}}}\n'


def main(names: list[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(HERE.parents[1]))
    import tensorflow as tf

    from tests.facts_tf.registry import GROUPS, programs, run

    tf.get_logger().setLevel("ERROR")
    for group in names or GROUPS:
        facts = {name: run(fn, tf) for name, fn in programs(group).items()}
        (HERE / "facts" / f"{group}.json").write_text(text_of(tf.__version__, facts))
        print(f"{group}: {len(facts)} facts from TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main(sys.argv[1:])
