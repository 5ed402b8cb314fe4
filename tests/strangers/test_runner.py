"""The runner of others' programs, on programs of our own."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strangers import run
from tests.strangers.parts import cut_down, parts_of
from tests.strangers.short_loops import PASSES, shortened
from tests.strangers.small_data import stand_in

PROGRAM = '''
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras.layers import Dense
import tensorflow_datasets as tfds

EPOCHS = 500
(x, y), _ = tf.keras.datasets.mnist.load_data()

@tf.function
def total(a):
    return tf.reduce_sum(a)

model = keras.Sequential([keras.layers.Flatten(), Dense(4), Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(x[:64] / 255.0, y[:64], epochs=EPOCHS)
assert len(history.history["loss"]) == 2
assert float(total(tf.ones([3]))) == 3.0
assert next(iter(tfds.load("mnist", split="train", as_supervised=True)))[0].shape == (28, 28, 1)
'''
STOPS = PROGRAM + "\ntf.no_such_function(1)\nimport no_such_package\nno_such_package.f()\n"


@pytest.mark.thorough
def test_a_program_that_runs_and_one_that_stops(tmp_path: Path) -> None:
    (tmp_path / "runs.py").write_text(PROGRAM)
    found = run.outcome_of(tmp_path / "runs.py", limit=60)
    assert found == run.Outcome("runs", 14, 0, []), found
    (tmp_path / "stops.py").write_text(STOPS)
    found = run.outcome_of(tmp_path / "stops.py", limit=60)
    assert (found.outcome, found.parts, found.failed) == ("stops", 17, 3)
    assert len(found.stops_at) == 1 and "no_such_function" in found.stops_at[0]


def test_programs_that_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "lacks.py").write_text("import no_such_package as p\np.f()\nx = 1\n")
    assert run.outcome_of(tmp_path / "lacks.py", limit=60).outcome == "cannot be told here"


@pytest.mark.thorough
def test_how_far_a_program_comes_until_the_limit(tmp_path: Path) -> None:
    program = tmp_path / "long.py"
    # No loop, which would end early.
    program.write_text("x = 1\nprint(x)\nany(print(i) for i in range(10**12) if i < 39)\n")
    found = run._run(program, 3, sys.executable, "treadle", None)
    told = run.progress(found)
    assert (found["parts"], len(told["seconds"]), told["printed"]) == (3, 2, 39)
    assert 0 < told["unfinished"] < 4 and "long.py" in found["at"]


LOOPS = """
import tensorflow as tf

@tf.function
def traced(x, rows):
    for i in range(3):
        x += i
    for i in tf.range(3):
        x += tf.cast(i, tf.float32)
    for row in rows:
        x += tf.cast(row, tf.float32)
    while tf.reduce_sum(x) < 100.0:
        x *= 2.0
    return x

assert float(traced(1.0, tf.data.Dataset.range(3))) == 160.0

from beside import counted

def train(steps=10**12):
    for step in counted(steps):
        passes = 0
        while True:
            passes += 1
            if passes == 1000:
                break
    return step, passes

def batches():
    while True:
        yield tf.ones([8, 3]), tf.ones([8, 1])

step, passes = train()
assert 1 <= step < 10**9 and passes == 1000
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(batches(), steps_per_epoch=10**9)
assert int(model.optimizer.iterations) == 4
kept = model.fit(tf.ones([8, 3]), tf.ones([8, 1]), 4, 10**6)
assert len(kept.history["loss"]) == 2
"""


BESIDE = """
def counted(steps):
    found = []
    for step in range(steps):
        found.append(step)
    return found
"""


@pytest.mark.thorough
def test_long_loops_and_trainings_end_early(tmp_path: Path) -> None:
    program = tmp_path / "loops.py"
    program.write_text(LOOPS)
    (tmp_path / "beside.py").write_text(BESIDE)
    found = run._run(program, 15, sys.executable, "treadle", None)
    assert not run._errors(found), found
    assert not found["limit"] and sum(part["seconds"] for part in found["list"]) > 1.5


def test_which_loops_are_shortened() -> None:
    def text(code: str) -> str:
        return ast.unparse(shortened(ast.parse(code), "a"))

    assert text("for i in x:\n    f(i)") == "for i in few_passes__(x):\n    f(i)"
    for kept in ("y = [i for i in x]", "def f():\n    while x:\n        yield 1"):
        assert text(kept) == kept
    found = text("def f():\n    def g():\n        yield 1\n    while x:\n        pass")
    assert "loop_begins__('a, loop 1')" in found
    assert "while loop_goes_on__('a, loop 1') and x" in found
    assert PASSES > 1  # so that what a second pass finds is seen


TESTS = """
import unittest
import pytest
import tensorflow as tf
from helper import two

class SumsTest(tf.test.TestCase):
    def test_right(self):
        self.assertEqual(two(), 2)
    def test_wrong(self):
        self.assertAllEqual(tf.constant([1]) + 1, [3])

@pytest.mark.parametrize("n", [1, 2])
def test_of_one(n):
    assert n == 1
"""


@pytest.mark.thorough
def test_files_of_tests_are_programs_whose_parts_are_the_tests(tmp_path: Path) -> None:
    (tmp_path / "sums_test.py").write_text(TESTS)
    (tmp_path / "helper.py").write_text("def two():\n    return 2\n")
    found = run.outcome_of(tmp_path / "sums_test.py", limit=60)
    # `test_session` of the test case is one of them, as in TensorFlow.
    assert (found.outcome, found.parts, found.failed) == ("stops", 5, 2)
    assert any("AssertionError" in text for text in found.stops_at), found
    (tmp_path / "test_none.py").write_text("import no_such_package\n")
    assert run.outcome_of(tmp_path / "test_none.py", limit=60).outcome == "cannot be told here"


def test_programs_see_the_files_beside_them(tmp_path: Path) -> None:
    (tmp_path / "package" / "inside").mkdir(parents=True)
    (tmp_path / "package" / "names.py").write_text("x = 1\n")
    (tmp_path / "package" / "inside" / "table.txt").write_text("5")
    program = tmp_path / "package" / "inside" / "reads.py"
    program.write_text("import package.names\nassert open('table.txt').read() == '5'\n")
    assert run.outcome_of(program, limit=60, root=tmp_path) == run.Outcome("runs", 2, 0, [])


def test_parts_are_cut_down(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {"cell_type": "code", "source": ["!pip install x\n", "n = 1"]},
    ]
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    assert [cut_down(part) for part in parts_of(notebook)] == ["\nn = 1"]
    assert cut_down("if x:\n    %run y\nn = 1") == "if x:\n    pass\nn = 1"
    assert cut_down("num_epochs = 1_000") == "num_epochs = 2"
    assert cut_down("fit(x, epochs=20, batch_size=32)") == "fit(x, epochs=2, batch_size=32)"
    assert cut_down("for i in range(1000):\n    pass") == "for i in range(12):\n    pass"
    assert cut_down("timeit(f, number=1_000)") == "timeit(f, number=12)"
    assert cut_down("%%bash\nls") == ""
    page = tmp_path / "a.md"
    blocks = "```python\nx = 1\n```\n", "```\n2\n```\n", "  ```python hl=1\n  y = 2\n  ```\n"
    page.write_text("# A\n" + "words\n".join(blocks))
    assert parts_of(page) == ["x = 1\n", "y = 2\n"]
    module = tmp_path / "b.py"
    module.write_text("@f\ndef g():\n    return 1\n\nx = 2\n")
    assert parts_of(module) == ["@f\ndef g():\n    return 1", "x = 2"]
    assert Path(stand_in(tmp_path / "files", "a.txt")).read_text().count("\n") == 400


def test_outcomes_are_put_into_the_results(tmp_path: Path) -> None:
    repository = tmp_path / "mirrors" / "owner+name" / "repo"
    repository.mkdir(parents=True)
    (repository / "guide.ipynb").write_text('{"cells": []}')
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "One notebook"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    place = run.checked_out(tmp_path / "mirrors", "owner/name", "0" * 40, tmp_path / "out")
    assert place is not None and run.program_in(place, "guide") == place / "guide.ipynb"
    assert run.checked_out(tmp_path / "mirrors", "owner/other", None, tmp_path / "out") is None
    record = {"repository": "owner/name", "file": "guide", "outcome": "stops", "stops_at": ["a"]}
    results = {"list": [record, {**record, "outcome": "runs", "stops_at": []}]}
    assert list(run.wanted(results["list"], "stops", "guide")) == [record]
    run.update(results, record, run.Outcome("runs", 3, 0, []), "2026-01-01")
    assert results["run"] == 2 and results["stop"] == 0 and results["stop_at"] == {}
    assert record["before"] == "stops" and record["run_again"] == "2026-01-01"
    new = run.new_record(tmp_path / "mirrors", "owner/name:guide.ipynb", results["list"])
    run.update(results, new, run.Outcome("stops", 2, 1, ["b"]), "2026-01-02")
    assert (results["programs"], results["stop"], results["stop_at"]) == (3, 1, {"b": 1})
    assert new["added"] == "2026-01-02" and len(new["commit"]) == 40
    with pytest.raises(ValueError, match="in the results"):
        run.new_record(tmp_path / "mirrors", "owner/name:guide.ipynb", results["list"])


def test_parts_that_tensorflow_did_not_come_to_do_not_count() -> None:
    good, bad = {"seconds": 1.0}, {"seconds": 1.0, "error": "KeyError: 'lr'"}
    here = {"parts": 3, "limit": False, "list": [good, bad, bad]}
    there = {"parts": 3, "limit": True, "list": [good, good], "unfinished": 9.0, "printed": 0}
    assert run.judged(here, there).stops_at == ["KeyError: 'lr'"]
    there["list"] = [good]
    assert run.judged(here, there).outcome == "cannot be told here"


def test_outcomes_are_kept_of_a_run_that_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [{"repository": "a/b", "file": n, "outcome": "stops", "stops_at": []} for n in "xyz"]
    (tmp_path / "results.json").write_text(json.dumps({"list": records}))
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    (tmp_path / "a+b").mkdir()
    for name in "xyz":
        (tmp_path / "a+b" / f"{name}.py").write_text("x = 1\n")

    def outcome(program: Path, *args: object) -> run.Outcome:
        if program.stem == "y":
            raise KeyboardInterrupt
        return run.Outcome("runs", 1, 0, [])

    monkeypatch.setattr(run, "outcome_of", outcome)
    with pytest.raises(KeyboardInterrupt):
        run.main(["--mirrors", str(tmp_path), "--write"])
    results = json.loads((tmp_path / "results.json").read_text())
    assert [record["outcome"] for record in results["list"]] == ["runs", "stops", "stops"]
    assert (results["run"], results["stop"]) == (1, 2)


def test_the_results_are_counted() -> None:
    results = json.loads(run.RESULTS.read_text())
    programs = results["list"]
    assert results["programs"] == len(programs)
    keys = ("run", "stop", "run_until_the_time_limit", "cannot_be_told_here")
    for key, outcome in zip(keys, run.OUTCOMES, strict=True):
        assert results[key] == sum(program["outcome"] == outcome for program in programs)
