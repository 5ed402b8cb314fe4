"""Prints where treadle differs: ``PYTHONPATH=src python tests/facts_tf/differ.py [group ...]``.

Deliberate deviations are included, so this shows what `deviations.json` has to say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import treadle as td
from tests.facts_tf.comparison import differences, recorded
from tests.facts_tf.registry import GROUPS, programs, run


def main(names: list[str]) -> None:
    for group in names or GROUPS:
        facts = recorded(group)
        for name, fn in programs(group).items():
            for path, (tf_value, td_value) in differences(facts[name], run(fn, td)).items():
                print(f"{group}.{name} {path}")
                print(f"    tensorflow: {json.dumps(tf_value)}")
                print(f"    treadle:    {json.dumps(td_value)}")


if __name__ == "__main__":
    main(sys.argv[1:])
