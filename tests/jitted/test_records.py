"""Arrays of records (structured dtypes) in jitted functions, against NumPy."""

import numpy as np
import pytest

import treadle as td

DTYPE = np.dtype([("x", "f8"), ("y", "i4"), ("v", "f4", (2,))])
NESTED = np.dtype([("at", [("x", "f8"), ("y", "f8")]), ("mass", "f8")])


def particles(count=5):
    made = np.zeros(count, DTYPE)
    made["x"], made["y"] = np.arange(count) + 0.5, np.arange(count)[::-1]
    made["v"] = np.arange(2 * count).reshape(count, 2)
    return made


def check(function, *arguments):
    """A function's results and what its arguments hold, for two calls."""
    jitted = td.jit(function)
    for _ in range(2):
        plain, own = ([a.copy() if hasattr(a, "copy") else a for a in arguments] for _ in range(2))
        assert repr(jitted(*own)) == repr(function(*plain))
        assert repr(own) == repr(plain)


def reads(r):
    return r["x"].sum() + r["v"][1, 0], r.shape, r.size, len(r), r.ndim, r.itemsize


def changes(r):
    for i in range(len(r)):
        r[i]["x"] += r[i]["y"]
        r["y"][i] = 2 * i
        if r[i]["x"] > 3:
            r[i]["x"] = 0
    return r


def iterates(r):
    total = 0.0
    for row in r:
        total += row["x"] * row["v"].sum()
    return total, r[1], r[1]["x"]


def makes(r):
    out = np.empty(r.shape[0] + 1, dtype=DTYPE)
    count = 0
    for i in range(r.shape[0]):
        if r["x"][i] > 1:
            out[count] = r[i]
            count += 1
    out[count] = (7.0, 1, 0.0)
    return out[: count + 1]


def parts(r):
    one = np.zeros(1, DTYPE)[0]
    one["x"] = 3
    r[0] = (1.0, 2, 3.0)
    r[-1] = r[1]
    return one, r[::-1], r[["x", "y"]]["y"], r[r["x"] > 2]["x"], r.copy(), np.zeros_like(r)


@pytest.mark.parametrize("function", [reads, changes, iterates, makes, parts])
@pytest.mark.parametrize("count", [3, 50])
def test_records(function, count):
    check(function, particles(count))


def test_attributes_of_recarrays():
    def move(r, dt):
        for i in range(r.shape[0]):
            r[i].x += dt * r[i].y
            r[i].y = i
        row = r[0]
        row.x = 5.0
        return r.x.sum() + row.x

    check(move, particles().view(np.recarray), 0.1)


def test_records_in_records():
    def centre(r):
        x, total = 0.0, 0.0
        for i in range(len(r)):
            x += r[i]["at"]["x"] * r["mass"][i]
            total += r["mass"][i]
            r[i]["at"]["y"] = x
        return x / total

    check(centre, np.array([((1.0, 2.0), 3.0), ((4.0, 5.0), 6.0)], NESTED))


def test_an_argument_that_is_returned_is_the_callers():
    made = particles()
    assert td.jit(changes)(made) is made


def test_a_record_as_argument():
    check(lambda row: row["x"] * row["v"][1], particles()[3])


def test_records_that_the_graph_cannot_hold_are_refused():
    with pytest.raises(TypeError, match="jitted functions do not take"):
        td.jit(reads)(np.zeros(3, [("name", "U5"), ("x", "f8")]))


def test_numpys_functions_take_the_fields():
    with pytest.raises(TypeError, match="use the fields"):
        td.jit(lambda r: np.sort(r))(particles())
