"""The runner of Keras's own tests: where private names are looked up, and what is counted."""

from __future__ import annotations

import unittest
from pathlib import Path

import pytest

import treadle as td
from tests.strangers.keras_own.names import Finder, Names, exported
from tests.strangers.keras_own.run import entry_of
from tests.strangers.libraries import FAILED, PASSED, SKIPPED, Suite

SOURCES = {
    "layers/__init__.py": "",
    "layers/core/dense.py": """
@keras_export("keras.layers.Dense")
class Dense:
    pass

@keras_export(["keras.layers.NoSuch", "keras.layers.Flatten"])
class Flat:
    pass

class Hidden:
    pass
""",
    "ops/numpy.py": """
@keras_export(["keras.ops.add", "keras.ops.numpy.add"])
def add(x, y):
    pass
""",
    "layers/core/dense_test.py": '@keras_export("keras.layers.No")\nclass No: pass\n',
    "testing/__init__.py": "",
}


@pytest.fixture
def names(tmp_path: Path) -> Names:
    for file, text in SOURCES.items():
        place = tmp_path / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Names(tmp_path, exported(tmp_path))


def test_exported_names_are_those_beside_the_definitions(names: Names) -> None:
    assert names.table == {
        "layers.core.dense": {
            "Dense": ["keras.layers.Dense"],
            "Flat": ["keras.layers.NoSuch", "keras.layers.Flatten"],
        },
        "ops.numpy": {"add": ["keras.ops.add", "keras.ops.numpy.add"]},
    }


def test_classes_of_operations_take_the_settings_of_functions(names: Names) -> None:
    total = names.found("ops.numpy", "Sum")(axis=0, keepdims=True)
    assert total([[1.0, 2.0], [3.0, 4.0]]).numpy().tolist() == [[4.0, 6.0]]
    assert names.found("ops.numpy", "Add")(name="own").name == "own"


def test_private_names_are_looked_up_by_their_public_ones(names: Names) -> None:
    assert names.found("layers.core.dense", "Dense") is td.keras.layers.Dense
    assert names.found("layers", "Dense") is td.keras.layers.Dense
    assert names.found("layers.core.dense", "Flat") is td.keras.layers.Flatten
    assert names.found("ops", "add") is td.keras.ops.add
    assert names.found("backend", "backend")() == "tensorflow"
    assert names.found("backend", "convert_to_tensor")([1.0]).dtype == td.float32


def test_what_treadle_does_not_have_leaves_a_test_out(names: Names) -> None:
    hidden = names.found("layers.core.dense", "Hidden")
    with pytest.raises(unittest.SkipTest, match="private: keras.src.layers.core.dense.Hidden"):
        hidden()
    with pytest.raises(unittest.SkipTest):
        hidden.attribute
    assert not isinstance(1, hidden)


def test_modules_that_tests_share_are_those_of_the_wheel(names: Names) -> None:
    finder = Finder(names)
    shared = finder.find_spec("keras.src.layers.core.dense_test")
    assert shared.origin == str(names.source / "layers" / "core" / "dense_test.py")
    assert finder.find_spec("keras.src.layers.core.dense").loader is finder
    assert finder.find_spec("keras.src.layers.nothing") is None
    assert finder.find_spec("keras.layers") is None


def test_counts_of_a_file(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "none.xml", in_time=True)
    suite.outcomes = {"a": PASSED, "b": FAILED, "c": FAILED, "d": SKIPPED, "e": FAILED}
    suite.errors = {
        "b": 'AssertionError: "x must be" does not match "y is"',
        "c": "AttributeError: 'Dense' object has no attribute '_kernel'",
        "e": "ValueError: no",
    }
    entry, wrong = entry_of(suite)
    assert entry == {
        "passed": 1, "the same error with another text": 1, "failed": 1, "not applicable": 2
    }
    assert wrong == {"e": "ValueError: no"}
