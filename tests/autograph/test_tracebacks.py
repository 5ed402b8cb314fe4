"""Tracebacks of errors at conversion, tracing and running: the user's frames, nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import traceback

import pytest

import treadle as td

PROGRAM = """
import treadle as td


def grow(x, k):
    while td.reduce_sum(x) < 100.0:
        x = x + 1.0
        if k > 2.0:
            x = td.matmul(x, x)  # tracing fails
    return x


@td.function
def tracing(x, k):
    y = grow(x, k)
    return y


def pick(x, i):
    def inner(i):
        if i > 0:
            i = i + 10
        return td.gather(x, i)  # running fails

    for _ in td.range(2):
        z = inner(i)
    return z


@td.function
def running(x, i):
    return pick(x, i)


@td.function
def calls_running(x, i):
    return running(x, i) + 1.0


def yields(x):
    while x > 0:
        yield x  # conversion fails


@td.function
def converting(x):
    return td.function(yields)(x)


def python_error(x):
    if x > 0:
        return {}["missing"]
    return x


@td.function
def recursive(x, n):
    if n == 0:
        return python_error(x)
    if x > 0:
        x = recursive.python_function(x, n - 1)
    return x
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("traceback") / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    namespace = {"__name__": "program", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    return namespace


def frames(program, call):
    """(function, source line) of every frame of the error that `call` raises, ours left out."""
    try:
        call()
    except Exception as error:
        found = traceback.extract_tb(error.__traceback__)
        assert found[0].filename == __file__ and found[1].name == "<lambda>"
        assert {f.filename for f in found[2:]} == {program["__file__"]}
        return [(f.name, f.line) for f in found[2:]]
    raise AssertionError("no error")


VECTOR = [1.0, 2.0]


def test_while_tracing(program):
    x, k = td.constant(VECTOR), td.constant(3.0)
    assert frames(program, lambda: program["tracing"](x, k)) == [
        ("tracing", "y = grow(x, k)"),
        ("grow", "x = td.matmul(x, x)  # tracing fails"),
    ]


def test_while_running(program):
    x, i = td.constant(VECTOR), td.constant(1)
    inside = [
        ("running", "return pick(x, i)"),
        ("pick", "z = inner(i)"),
        ("inner", "return td.gather(x, i)  # running fails"),
    ]
    assert frames(program, lambda: program["running"](x, i)) == inside
    assert program["running"](x, td.constant(0)).numpy() == 1.0  # still usable
    assert frames(program, lambda: program["running"](x, i)) == inside  # the fast path
    outer = ("calls_running", "return running(x, i) + 1.0")
    assert frames(program, lambda: program["calls_running"](x, i)) == [outer, *inside]


def test_while_converting(program):
    x = td.constant(1.0)
    call = ("converting", "return td.function(yields)(x)")
    assert frames(program, lambda: program["converting"](x)) == [call]


def test_python_errors_and_recursion(program):
    found = frames(program, lambda: program["recursive"](td.constant(1.0), 2))
    deeper = ("recursive", "x = recursive.python_function(x, n - 1)")
    assert found == [
        deeper,
        deeper,
        ("recursive", "return python_error(x)"),
        ("python_error", 'return {}["missing"]'),
    ]


def test_locals_for_debuggers(program):
    with pytest.raises(KeyError) as e:
        program["recursive"](td.constant(1.0), 0)
    last = e.value.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    assert set(last.tb_frame.f_locals) == {"x"}
    assert last.tb_frame.f_globals is program


def test_causes_keep_the_users_frames(program):
    @td.function
    def f(x):
        try:
            return td.matmul(x, x)
        except ValueError as error:
            raise RuntimeError("outer") from error

    with pytest.raises(RuntimeError) as e:
        f(td.constant(VECTOR))
    for error in (e.value, e.value.__cause__):
        files = {f.filename for f in traceback.extract_tb(error.__traceback__)}
        assert files == {__file__}


def test_all_frames_on_request(program):
    td.debugging.disable_traceback_filtering()
    try:
        assert not td.debugging.is_traceback_filtering_enabled()
        with pytest.raises(ValueError) as e:
            program["tracing"](td.constant(VECTOR), td.constant(3.0))
    finally:
        td.debugging.enable_traceback_filtering()
    files = [f.filename for f in traceback.extract_tb(e.value.__traceback__)]
    assert any(f.startswith("<autograph of grow") for f in files)
    assert any(f.endswith("loops.py") for f in files)


def test_what_the_interpreter_prints(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + "\n\nrunning(td.constant([1.0, 2.0]), td.constant(1))\n")
    source = os.path.dirname(os.path.dirname(td.__file__))
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
    )
    head, _, rest = done.stderr.partition(", in running\n")
    assert head.startswith("Traceback") and head.count("File ") == 2
    lines = rest.splitlines()
    assert [line.strip() for line in lines[:5]] == [
        "return pick(x, i)",
        f'File "{path}", line 26, in pick',
        "z = inner(i)",
        f'File "{path}", line 23, in inner',
        "return td.gather(x, i)  # running fails",
    ]
    assert lines[5].startswith("treadle.core.errors.InvalidArgumentError: gather")
