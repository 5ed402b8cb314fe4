"""Tracebacks from functions have the user's frames that plain Python has, line by line."""

from __future__ import annotations

import os
import sys
import traceback

import pytest

import treadle as td

sys.path.insert(0, os.path.dirname(__file__))

import buggy_programs


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.value


def user_frames(error):
    """(line, function, text) of the program's frames; no others but this file's may be there."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(f.lineno, f.name, f.line) for f in frames if f.filename == buggy_programs.__file__]


def files(error):
    return {f.filename for f in traceback.extract_tb(error.__traceback__)}


def arguments(program):
    x, i = td.constant([1.0, 2.0]), td.constant(7)
    return (x, -i + 5) if program is buggy_programs.in_branch_shape else (x, i)


@pytest.mark.parametrize("program", buggy_programs.PROGRAMS, ids=lambda f: f.__name__)
def test_frames_of_plain_python(program):
    plain = error_of(lambda: program(*arguments(program)))
    assert user_frames(plain)
    compiled = td.function(program)
    for _ in range(2):  # the second call takes the fast path
        found = error_of(lambda: compiled(*arguments(program)))
        assert user_frames(found) == user_frames(plain)
        assert files(found) <= {__file__, buggy_programs.__file__}
        if program is buggy_programs.assertion:  # as in TensorFlow
            assert isinstance(found, td.errors.InvalidArgumentError)
        else:
            assert type(found) is type(plain)


def test_causes_inside_py_function():
    program = buggy_programs.py_function
    for f in (program, td.function(program)):
        cause = error_of(lambda f=f: f(*arguments(program))).__cause__
        assert isinstance(cause, KeyError)
        assert user_frames(cause)[-1][1:] == ("python_part", "return table[int(a)]")
