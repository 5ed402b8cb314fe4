"""Programs that change variables part by part do so in the variables' memory, or as if they did."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td

pytestmark = pytest.mark.thorough

ROWS, WIDTH = 9, 4


def changes(v, w, i, x, steps, out):
    """A sequence of reads and changes of two variables. `out` collects what is read."""
    for step in steps:
        match step:
            case "slice":
                v[2:5].assign(x[:3])
            case "row":
                v[i].assign(x[0])
            case "shifted":
                v[1:].assign(v[:-1])
            case "add to part":
                v[:2].assign_add(x[:2])
            case "scatter":
                v.scatter_add(td.IndexedSlices(x[:2], td.stack([i, i])))
            case "scatter rows of itself":
                v.scatter_update(td.IndexedSlices(v[2:4] * 2.0, td.stack([i, 8])))
            case "whole":
                v.assign(v * 0.5)
            case "scatter other":
                w.scatter_sub(td.IndexedSlices(x[:2], td.stack([0, i])))
            case "exchange":
                old = v.value()
                v.assign(w)
                w.assign(old)
            case "from other":
                v[:3].assign(w[1:4])
            case "read":
                out.append(v * 1.0)
            case "read rows":
                out.append(td.gather(v, [0, 3]))
            case "keep":
                out.append(v.value())
            case "largest":
                out.append(td.reduce_max(w))
    return out


STEPS = (
    "slice", "row", "shifted", "add to part", "scatter", "scatter rows of itself", "whole",
    "scatter other", "exchange", "from other", "read", "read rows", "keep", "largest",
)  # fmt: skip


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=7))
def test_compiled_sequences_are_eager_ones(steps):
    random = np.random.default_rng(len(steps))
    starts = random.standard_normal((2, ROWS, WIDTH)).astype(np.float32)
    x = td.constant(random.standard_normal((5, WIDTH)).astype(np.float32))
    results = []
    for staged in (False, True):
        v, w = td.Variable(starts[0]), td.Variable(starts[1])

        def run(i, x, v=v, w=w):
            return changes(v, w, i, x, steps, [])

        call = td.function(run) if staged else run
        found = [call(td.constant(i), x) for i in (6, 0)]
        results.append([*td.nest.flatten(found), v.value(), w.value()])
    for eager, compiled in zip(*results, strict=True):
        assert eager.numpy().tobytes() == compiled.numpy().tobytes(), steps


def schedule_of(fn, *specs):
    return td.inspect.stages(td.function(fn), *specs)["schedule"]


V = td.Variable(np.zeros((4000, 16), np.float32))
X, I = td.TensorSpec([64, 16]), td.TensorSpec([64], td.int32)


def two_slices(x, i):
    V[3:67].assign(x)
    V[100].assign(x[0])


def scatters(x, i):
    V.scatter_mul(td.IndexedSlices(x, i))
    V.scatter_div(td.IndexedSlices(x, i))
    V.scatter_max(td.IndexedSlices(x, i))


def slice_and_scatter(x, i):
    V[i[0]].assign(x[0])
    V.scatter_nd_sub(td.expand_dims(i, 1), x)
    V[7:9].assign_add(x[:2])


def decayed(x, i):
    V.assign(V * 0.9)
    V.scatter_add(td.IndexedSlices(x, i))
    V[0].assign(x[1])


@pytest.mark.parametrize("fn", [two_slices, scatters, slice_and_scatter, decayed])
def test_several_changes_happen_in_the_variable(fn):
    schedule = schedule_of(fn, X, I)
    assert len(re.findall(r"(?:slice_update|scatter_\w+) in v\d", schedule)) >= 2, schedule
    assert "copy" not in schedule, schedule
    (workspace,) = re.findall(r"workspace: (\d+) bytes", schedule)
    assert int(workspace) < 2 * 64 * 16 * 4, schedule


def test_an_old_value_that_is_kept_is_copied_before():
    v = td.Variable(np.arange(6, dtype=np.float32))

    @td.function
    def f():
        old = v.value()
        v[0].assign(10.0)
        v[1].assign(20.0)
        return old, v.value()

    old, new = f()
    assert old.numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert new.numpy().tolist() == [10.0, 20.0, 2.0, 3.0, 4.0, 5.0]
