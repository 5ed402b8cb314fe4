"""What `explain`, concrete functions and `inspect` say of jitted functions."""

import numpy as np
import pytest

import treadle as td


def add_to_head(a, n, scale):
    for i in range(n):
        a[i] += scale
    return a.sum()


@pytest.fixture
def jitted():
    return td.jit(add_to_head)


def test_a_report_names_what_the_caller_gave(jitted):
    jitted(np.zeros(4), 2, 1.5)
    report = str(jitted.explain())
    assert "a: f64[4], n: 2, scale: a float" in report
    assert "nearest to trace 1:\n      the trace before found which arrays are changed" in report
    assert "kinds" not in report and "_last" not in report


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ((np.zeros(5), 2, 1.5), "-> f64[5] (another shape)"),
        ((np.zeros(4, np.float32), 2, 1.5), "-> f32[4] (another dtype)"),
        ((np.zeros((4, 1)), 2, 1.5), "-> f64[4, 1] (another rank)"),
        ((np.zeros(4), 3, 1.5), "n: 2 -> an int (an int is a constant of the program until"),
        ((np.zeros(4), 2, 2), "scale: a float -> 2"),
        ((np.zeros(4), 2, np.float32(2)), "scale: a float -> f32[]"),
    ],
)
def test_every_trace_says_why(jitted, second, words):
    jitted(np.zeros(4), 2, 1.5)
    jitted(*second)
    assert words in str(jitted.explain())
    assert str(td.explain_retraces(jitted)) == str(jitted.explain())


def test_in_place_changes_are_no_cause_of_the_warning_of_many_traces(jitted, recwarn):
    for size in range(1, 12):
        jitted(np.zeros((2,) * size), 1, 1.5)
    assert "9 of them because of a" in str(recwarn.pop(RuntimeWarning).message)
    assert jitted.experimental_get_tracing_count() > 20


def test_one_array_given_twice_is_told():
    together = td.jit(lambda x, y: x + y)
    x = np.ones(3)
    together(x, x)
    assert "y: the same array as x" in str(together.explain())


def test_python_code_that_runs_once_is_that_of_the_function():
    seen = []

    def noting(x):
        seen.append(1)
        return x + 1

    jitted = td.jit(noting)
    jitted(np.ones(2))
    assert "seen.append(1)" in str(jitted.explain())


def test_concrete_functions_print_as_the_caller_calls_them(jitted):
    jitted(np.zeros(4), 2, 1.5)
    assert [repr(c) for c in jitted.concrete_functions] == [
        "<ConcreteFunction add_to_head(a: f64[4], n=2, scale: f64[]) -> [f64[]]>",
        "<ConcreteFunction add_to_head(a: buffer f64[4], n=2, scale: f64[]) -> [f64[]]>",
    ]


def test_specs_stand_for_arrays(jitted):
    spec = td.TensorSpec([4], td.float64)
    made = jitted.get_concrete_function(spec, 2, 1.5)
    assert made is jitted.get_concrete_function(np.zeros(4), 2, 1.5)
    jitted(np.zeros(4), 2, 1.5)
    assert jitted.experimental_get_tracing_count() == 2  # as values, and with `a` changed in place
    number = td.TensorSpec([], td.float32)
    assert "scale: f32[]" in repr(jitted.get_concrete_function(spec, 2, number))


def test_a_dim_that_is_not_known_is_refused(jitted):
    with pytest.raises(TypeError, match=r"f64\[\?\].*give a number for every dim"):
        jitted.get_concrete_function(td.TensorSpec([None], td.float64), 2, 1.5)


def test_every_stage_can_be_inspected(jitted):
    stages = td.inspect.stages(jitted, td.TensorSpec([4], td.float64), 2, 1.5)
    assert list(stages)[:2] == ["source", "autograph"]
    assert {"graph", "graph after passes", "schedule", "memory", "kernels", "llvm"} <= set(stages)
    assert stages["source"].startswith("def add_to_head(a, n, scale):")


def test_no_retrace_allows_the_first_call_and_refuses_what_differs(jitted):
    with td.no_retrace():
        jitted(np.zeros(4), 2, 1.5)
        jitted(np.zeros(4), 2, 2.5)
        with pytest.raises(td.RetraceError, match=r"a: .* -> f32\[4\] \(another dtype\)"):
            jitted(np.zeros(4, np.float32), 2, 1.5)
