"""Kernels that only the message of an error needs run where the error is raised."""

import itertools

import numpy as np
import pytest

import treadle as td
from treadle.core.switches import disabled

x = np.arange(10, dtype=np.float64)
COLUMNS = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
STARTS = np.array([0, 3, 3, 8], np.int32)


def rows_of(x, columns, starts):
    """Positions that only the gather reads, from a part whose bounds the loop decides."""
    y = td.zeros([starts.shape[0] - 1], x.dtype)
    for i in td.range(starts.shape[0] - 1):
        y[i] = td.reduce_sum(td.gather(x, columns[starts[i] : starts[i + 1]]))
    return y


def twice(x, columns, starts):
    """Two checks that show the same positions."""
    found = columns[1:]
    return td.gather(x, found) + td.gather(-2.0 * x, found)


def chosen(x, columns, starts):
    """Positions that the program gives, too."""
    found = columns[::2]
    return td.gather(x, found), found


NUMPY = {
    rows_of: lambda: [x[COLUMNS[a:b]].sum() for a, b in itertools.pairwise(STARTS)],
    twice: lambda: x[COLUMNS[1:]] + -2.0 * x[COLUMNS[1:]],
    chosen: lambda: x[COLUMNS[::2]],
}


def schedule_of(program, *args):
    return td.inspect.stages(td.function(program), *args)["schedule"]


def refused(program, columns):
    with pytest.raises(td.errors.InvalidArgumentError) as caught:
        td.function(program)(x, columns, STARTS)
    return str(caught.value)


@pytest.mark.parametrize("program", [rows_of, twice])
def test_positions_are_stored_where_they_are_refused(program):
    text = schedule_of(program, x, COLUMNS, STARTS)
    checks = [line for line in text.split("\n") if "check %" in line]
    assert text.count("on failure: kernel") == len(checks) > 0
    with disabled("told_late"):
        assert "on failure" not in schedule_of(program, x, COLUMNS, STARTS)


def test_positions_that_are_a_result_are_stored():
    assert "on failure" not in schedule_of(chosen, x, COLUMNS, STARTS)


@pytest.mark.parametrize("program", [rows_of, twice, chosen])
def test_the_error_shows_what_eager_execution_shows(program):
    columns = COLUMNS.copy()
    columns[4] = 77
    found = refused(program, columns)
    with disabled("told_late"):
        assert found == refused(program, columns)
    assert "77" in found


@pytest.mark.parametrize("program", [rows_of, twice, chosen])
def test_results_are_the_same(program):
    def results():
        found = td.function(program)(x, COLUMNS, STARTS)
        return [np.asarray(value) for value in td.nest.flatten(found)]

    found = results()
    with disabled("told_late"):
        wanted = results()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found[0], np.asarray(NUMPY[program]()))


def test_checks_of_parts_leave_the_short_way_of_a_call():
    """Python is told of no call whose program only raises errors, so the call stays native, and the
    program can be kept on disk."""
    made = td.function(rows_of).get_concrete_function(x, COLUMNS, STARTS).executable
    assert made.program.callbacks is not None and not made.program.needs_frame
