"""Counts the facts: ``PYTHONPATH=src:. TREADLE_PORTABLE_CALLS=1 python -m tests.facts_tf.count``
writes docs/results/facts.json.

The records of ops that the argument sets reach are found by calling them eagerly. The rest is read
from the data; docs/make_deviations.py writes that, too, and a test compares it.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import treadle as td
from tests.facts_tf.calls import IN_A_FUNCTION, TABLES, calls, eagerly, recorded_calls
from tests.facts_tf.comparison import deviations
from tests.facts_tf.parameters import recorded_parameters
from tests.facts_tf.registry import GROUPS, HERE, programs
from treadle.ops import registry
from treadle.ops.loading import load_all_ops

PAGE = Path(__file__).parents[2] / "docs" / "results" / "facts.json"


def counts() -> dict[str, Any]:
    """What the data says."""
    every = [call for table in TABLES for call in calls(table)]
    facts = [fact for t in TABLES for of in recorded_calls(t).values() for fact in of.items()]
    in_functions = [text for text, _ in facts if text.endswith(IN_A_FUNCTION)]
    errors = [text for text, fact in facts if isinstance(fact, str) and fact[:6] == "raises"]
    places = {d.title: sum(map(len, d.facts.values())) for d in deviations()}
    return {
        "tensorflow": json.loads((HERE / "parameters.json").read_text())["tensorflow"],
        "argument sets": len(every),
        "public names": len({call.name for call in every}),
        "outcomes that are errors": len(errors),
        "outcomes that differ in a function": len(in_functions),
        "programs": sum(len(programs(group)) for group in GROUPS),
        "signatures": len(recorded_parameters()),
        "deviating places": sum(places.values()),
        "deviating places by reason": places,
    }


def reached() -> list[str]:
    """The names of op records that run when all argument sets are called eagerly."""
    names: set[str] = set()
    run = registry._run_eagerly

    def noted(op: Any, *rest: Any) -> Any:
        names.add(op.name)
        return run(op, *rest)

    with mock.patch.object(registry, "_run_eagerly", noted):
        for table in TABLES:
            for call in calls(table):
                eagerly(td, call)
    return sorted(names)


def write(**more: Any) -> None:
    """Write the counts anew, and what else is given; the rest of the file stays."""
    written = json.loads(PAGE.read_text()) | counts() | more
    PAGE.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    load_all_ops()
    ops = reached()
    missing = sorted(set(registry.OPS) - set(ops))
    write(**{"op records reached eagerly": len(ops), "op records": len(registry.OPS)},
          **{"not reached": missing})  # fmt: skip
    print(len(ops), "op records reached")
