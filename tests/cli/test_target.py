import pytest

import treadle as td
from treadle.cli.errors import UsageError
from treadle.cli.target import find_function, parse_argument
from treadle.examples.collatz import collatz
from treadle.examples.digits_cnn import Trainer


def test_functions_and_methods_of_modules():
    assert find_function("treadle.examples.collatz:collatz") is collatz
    assert find_function("treadle.examples.digits_cnn:Trainer.epoch") is Trainer.epoch


def test_function_in_a_file(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_function("mine.py:double")(4) == 8
    assert find_function("mine:double")(4) == 8


@pytest.mark.parametrize(
    ("target", "part"),
    [
        ("collatz", "MODULE:FUNCTION"),
        ("treadle.cli.demo:", "MODULE:FUNCTION"),
        ("no_such_module:f", "no_such_module"),
        ("no/such/file.py:f", "no file"),
        ("treadle.examples.collatz:colatz", "did you mean 'collatz'"),
        ("treadle.cli.demo:BATCH", "int, not a function"),
    ],
)
def test_what_cannot_be_found(target, part):
    with pytest.raises(UsageError, match=part):
        find_function(target)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("float32[3,4]", [3, 4], "float32"),
        ("int32[]", [], "int32"),
        ("float64[None, 8]", [None, 8], "float64"),
    ],
)
def test_tensor_arguments(text, shape, dtype):
    assert parse_argument(text) == td.TensorSpec(shape, td.as_dtype(dtype))


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("'x'", "x"), ("[1, 2.5]", [1, 2.5])])
def test_literal_arguments(text, value):
    assert parse_argument(text) == value


@pytest.mark.parametrize(
    ("text", "part"),
    [("foo", "Python literal"), ("float33[2]", "no dtype 'float33'"), ("int32[x]", "the dims")],
)
def test_wrong_arguments(text, part):
    with pytest.raises(UsageError, match=part):
        parse_argument(text)
