"""Writes deviations.md from the data of tests/facts_tf: ``PYTHONPATH=src:. python
docs/make_deviations.py``. The counts in results/facts.json are written with it."""

from __future__ import annotations

from pathlib import Path

from tests.facts_tf import count
from tests.facts_tf.calls import TABLES, calls
from tests.facts_tf.comparison import deviations
from tests.facts_tf.parameters import recorded_parameters
from tests.facts_tf.registry import GROUPS, programs

INTRODUCTION = """\
# Deviations from TensorFlow

{count} small programs, and {sets} argument sets of {functions} functions, are run with TensorFlow
2.21 and with treadle, and their values, dtypes, shapes, numbers of traces and exception types are
compared (`tests/facts_tf/`), and the parameters of {parameters} functions and methods: names, order
and defaults. This is what differs, on purpose. An exception counts as the same if
an `except` for TensorFlow's type catches treadle's. `tests/facts_tf/mutate.py` compares sets
that are changed at random. `PYTHONPATH=src:. python docs/make_deviations.py` writes this page.

| | TensorFlow | treadle | why | programs |
|---|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    small = sum(len(programs(group)) for group in GROUPS)
    rows = [
        f"| {d.title} | {d.tensorflow} | {d.treadle} | {d.reason} | "
        f"{', '.join(f'`{name}`' for name in d.facts)} |\n"
        for d in deviations()
    ]
    every = [call for table in TABLES for call in calls(table)]
    functions = len({call.name for call in every})
    introduction = INTRODUCTION.format(
        count=small, sets=len(every), functions=functions, parameters=len(recorded_parameters())
    )
    return introduction + "".join(rows)


if __name__ == "__main__":
    (Path(__file__).parent / "deviations.md").write_text(page())
    count.write()
