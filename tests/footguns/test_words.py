"""What errors and reports say, where users meet them first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import treadle as td
from treadle import keras

NAMES: dict[str, Any] = {
    "log": (td, "td.math.log"),
    "top_k": (td, "td.math.top_k"),
    "relu": (td.math, "td.nn.relu"),
    "multi_dot": (td.linalg, "np.linalg.multi_dot"),
    "matmull": (td.linalg, "Near it is matmul"),
    "Dens": (keras.layers, "Near it is Dense"),
    "sobol_sample": (td.math, "td.random.uniform"),
    "ragged": (td.compat.v1, "use dense or sparse ones"),
    "StructuredTensor": (td, "td.RaggedTensor"),
    "placeholder": (td, "treadle.compat.v1"),
    "load_op_library": (td, "td.numpy_function"),
    "no_such_thing": (td.nn, "docs/api.md"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_a_module_does_not_have(name: str) -> None:
    module, hint = NAMES[name]
    with pytest.raises(AttributeError) as found:
        getattr(module, name)
    assert repr(name) in str(found.value)
    assert hint in str(found.value)
    assert not hasattr(module, name)


@pytest.mark.parametrize(
    ("a", "b", "advice"),
    [
        ("int32", "float32", r"cast the first with td.cast\(x, td.float32\)"),
        ("float32", "int64", r"cast the second with td.cast\(y, td.float32\)"),
        ("float32", "float64", r"cast the first with td.cast\(x, td.float64\)"),
        ("uint8", "int32", r"cast the first with td.cast\(x, td.int32\)"),
        ("complex64", "float64", r"cast the second with td.cast\(y, td.complex64\)"),
    ],
)
def test_the_advice_loses_nothing_that_need_not_be(a: str, b: str, advice: str) -> None:
    x, y = td.ones([2], a), td.ones([2], b)
    for f in (lambda x, y: x * y, td.function(lambda x, y: x * y)):
        with pytest.raises(TypeError, match=advice):
            f(x, y)


@pytest.mark.filterwarnings("error")  # the product is native
def test_shapes_in_a_loop_are_explained() -> None:
    @td.function
    def power(x: Any, w: Any) -> Any:
        for _ in td.range(3):
            x = td.matmul(x, w)
        return x

    with pytest.raises(td.errors.InvalidArgumentError) as found:
        power(td.ones([2, 3]), td.ones([3, 4]))
    assert "inner dims" in str(found.value)
    assert "gufunc" not in str(found.value)


def test_uncaught_eager_errors_show_the_users_frames(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "import treadle as td\n\ndef f():\n    return td.ones([3, 2]) + td.ones([3, 4])\n\nf()\n"
    )
    command = [sys.executable, str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    frames = [line for line in ran.stderr.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) == 2, ran.stderr
    assert all("program.py" in line for line in frames)


def test_the_report_of_many_traces_is_a_page() -> None:
    @td.function
    def f(x: Any) -> Any:
        return x + 1

    with pytest.warns(RuntimeWarning):
        for size in range(1, 31):
            f(td.ones([size]))
    report = f.explain()
    text = str(report)
    assert len(report.traces) == 30
    assert text.count("\n") < 45
    assert "20 more traces" in text
    assert "x (20 times)" in text
    assert "trace 30" in text


ARGUMENTS: dict[str, Any] = {
    "axis": (lambda x: td.reduce_sum(x, axis="a"), "An axis is an integer, not 'a'"),
    "half an axis": (lambda x: td.reduce_sum(x, axis=0.5), "An axis is an integer"),
    "perm": (lambda x: td.transpose(x, "a"), "perm is a sequence of integers"),
    "cond": (lambda x: td.cond(True, x, x), "true_fn is a function"),
    "body": (lambda x: td.while_loop(lambda x: True, 3, [x]), "body is a function"),
    "loop_vars": (lambda x: td.while_loop(lambda x: x, lambda x: x, 3), "loop_vars is a list"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_the_wrong_kind(name: str) -> None:
    fn, message = ARGUMENTS[name]
    with pytest.raises(TypeError, match=message) as found:
        fn(td.ones([2]))
    assert "test_words.py" in str(found.value)


def test_structures_without_end() -> None:
    deep: Any = [1.0]
    for _ in range(3000):
        deep = [deep]
    for call in (td.nest.flatten, td.function(lambda x: x)):
        with pytest.raises(ValueError, match="nested too deeply"):
            call(deep)
    with pytest.raises(ValueError, match="nested too deeply"):
        td.nest.assert_same_structure(deep, deep)


@pytest.mark.parametrize("word", ["and", "or"])
def test_a_condition_of_many_terms(word: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    file = tmp_path / "long.py"
    file.write_text(f"def f(x):\n    return {f' {word} '.join(f'x != {i}' for i in range(60))}\n")
    exec(compile(file.read_text(), str(file), "exec"), names)
    f = td.function(names["f"])
    for x in (0, 50, 500):
        assert f(td.constant(x)).numpy() == names["f"](x)
