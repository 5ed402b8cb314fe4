"""The runner of TensorFlow's own tests: where private names are looked up, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.strangers.libraries import FAILED, PASSED, Suite
from tests.strangers.tensorflow_own import run, unexported
from tests.strangers.tensorflow_own.names import Helpers, Table, by_mode
from treadle.compat.v1.values import Mode


def test_private_names_are_looked_up_by_their_public_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mode, "eager", True)
    names = {
        "ops.math_ops": {
            "reduce_sum": {"v2": ["math.reduce_sum", "reduce_sum"]},
            "nothing": {"v2": ["math.nothing"]},
        },
        "ops.gen_math_ops": {"mat_mul": {"raw": "MatMul", "parameters": ["a", "b"]}},
    }
    (tmp_path / "names.json").write_text(json.dumps(names))
    table = Table(tmp_path / "names.json")
    assert int(table.found("ops.math_ops", "reduce_sum")([1, 2])) == 3
    product = table.found("ops.gen_math_ops", "mat_mul")([[2.0]], td.constant([[3.0]]))
    assert product.numpy().tolist() == [[6.0]]
    assert table.found("ops.math_ops", "nothing") is None
    assert table.missing("ops.math_ops", "nothing") == "math.nothing"
    assert table.missing("ops.math_ops", "private") is None


def test_classes_of_both_modes_know_objects_of_both() -> None:
    both = by_mode(list, dict)
    assert isinstance([], both) and isinstance({}, both) and not isinstance(1, both)


def test_shared_modules_are_found_in_the_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "tensorflow" / "python" / "kernel_tests" / "random"
    folder.mkdir(parents=True)
    (folder / "util.py").write_text("")
    helpers = Helpers(tmp_path)
    name = "tensorflow.python.kernel_tests.random"
    assert helpers.find_spec(name).submodule_search_locations == [str(folder)]
    assert helpers.find_spec(f"{name}.util").origin == str(folder / "util.py")
    shared = tmp_path / "tensorflow" / "python" / "autograph" / "tests"
    shared.mkdir(parents=True)
    found = helpers.find_spec("tensorflow.python.autograph.tests")
    assert found.submodule_search_locations == [str(shared)]
    assert helpers.find_spec("tensorflow.python.framework.test_util") is None
    assert helpers.find_spec("numpy.kernel_tests") is None


def test_the_greatest_difference_of_jacobians_is_nan_where_one_is() -> None:
    ones, nan = np.ones((2, 2)), np.array([[1.0, np.nan], [1.0, 1.0]])
    assert unexported.max_error([ones, ones], [ones, ones * 3]) == 2
    assert np.isnan(unexported.max_error([nan, ones], [ones, ones * 3]))


def test_counts_of_a_file(tmp_path: Path) -> None:
    ours = Suite(tmp_path / "none.xml", in_time=True)
    ours.outcomes, ours.errors = {"a": PASSED, "b": FAILED, "c": FAILED}, {"b": "E", "c": "E"}
    theirs = {"a": PASSED, "b": PASSED, "c": FAILED, "d": PASSED}
    entry, wrong = run.entry_of("x_test.py", ours, theirs)
    assert entry == {
        "file": "x_test.py", "cases": 4, "pass with TensorFlow": 3, "pass here": 1,
        "skipped here": 0, "not run here": 1,
    }  # fmt: skip
    assert wrong == {"b": "E"}
    results = tmp_path / "results.json"
    run.written(results, [entry])
    run.written(results, [entry | {"pass here": 2}])
    (found,) = json.loads(results.read_text())["files"]
    assert found["pass here"] == 2 and found["pass before"] == 1
