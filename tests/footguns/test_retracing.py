"""Traps of signatures: why a function is traced, how often, and what its trace keeps."""

import dataclasses
import warnings

import numpy as np
import pytest

import treadle as td
from treadle.tracing import graph_size


def test_01_the_report_names_the_cause():
    f = td.function(lambda x, training: x)
    f(td.ones([2, 3]), True)
    f(td.ones([2, 3]), False)
    f(td.ones([4, 3]), False)
    text = str(f.explain())
    assert "training: True -> False" in text
    assert "nearest to trace 2" in text and "x: f32[2, 3] -> f32[4, 3]" in text


def test_01_the_warning_names_the_cause_not_guesses():
    f = td.function(lambda x, step: x * float(step))
    with pytest.warns(RuntimeWarning, match=r"because of step: 8 -> 9 .*td\.constant"):
        for step in range(10):
            f(td.ones([2]), step)


def test_02_retracing_can_be_forbidden():
    f = td.function(lambda x: x + 1.0)
    f(td.ones([2]))
    with td.no_retrace():
        f(td.ones([2]))
        with pytest.raises(td.RetraceError, match=r"x: f32\[2\] -> f32\[3\]"):
            f(td.ones([3]))
    assert f.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("first", [0, 1, 2, 7])
def test_03_sizes_0_and_1_are_not_special(first):
    @td.function(input_signature=[td.TensorSpec([None, 2])])
    def f(x):
        return td.reduce_sum(x, 0), x + td.constant([1.0, 2.0]), td.shape(x)[0]

    for n in [first, 0, 1, 2, 7]:
        total, moved, count = f(td.ones([n, 2]))
        assert total.numpy().tolist() == [n, n] and moved.shape == (n, 2) and count.numpy() == n
    assert f.experimental_get_tracing_count() == 1


def test_04_bound_methods_hit_the_cache():
    class Model:
        def __init__(self):
            self.traces = 0

        def m(self, x):
            self.traces += 1
            return x + 1.0

        @td.function
        def decorated(self, x):
            self.traces += 1
            return x + 2.0

    model, x = Model(), td.constant(1.0)
    f = td.function(model.m)
    for _ in range(3):
        f(x)
        model.decorated(x)
    assert model.traces == 2
    applied = td.function(lambda method, x: method(x))
    for _ in range(3):
        assert applied(model.m, x).numpy() == 2  # model.m is another object every time
    assert applied.experimental_get_tracing_count() == 1


@dataclasses.dataclass
class Config:
    scale: float


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [2.0], lambda c: c.__setitem__(0, 3.0)),
        (lambda: {"scale": 2.0}, lambda c: c.__setitem__("scale", 3.0)),
        (lambda: {2.0}, lambda c: (c.clear(), c.add(3.0))),
        (lambda: Config(2.0), lambda c: setattr(c, "scale", 3.0)),
    ],
)
def test_05_mutable_arguments_count_by_value(make, change):
    @td.function
    def f(x, config):
        if isinstance(config, set):
            return x * next(iter(config))
        return x * (config.scale if isinstance(config, Config) else td.nest.flatten(config)[0])

    x, config = td.constant(1.0), make()
    for _ in range(3):
        assert f(x, config).numpy() == 2
    change(config)
    for _ in range(3):
        assert f(x, config).numpy() == 3
    assert f(x, make()).numpy() == 2 and f.experimental_get_tracing_count() <= 4


def test_05_a_hash_that_changes_is_seen():
    class Scale:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value

        def __hash__(self):
            return hash(self.value)

    f = td.function(lambda x, s: x * s.value)
    scale, x = Scale(2.0), td.constant(1.0)
    for _ in range(3):
        assert f(x, scale).numpy() == 2 and f(x, Scale(2.0)).numpy() == 2
    assert f.experimental_get_tracing_count() == 1
    scale.value = 3.0
    assert f(x, scale).numpy() == 3


def test_05_what_cannot_be_compared_is_refused_by_name():
    class Settings:
        __hash__ = None

        def __eq__(self, other):
            return True

    f = td.function(lambda x, options: x)
    with pytest.raises(
        TypeError, match=r"argument options\['a'\] is a Settings object that is not"
    ):
        f(td.constant(1.0), {"a": Settings()})


def test_22_a_long_unrolled_loop_is_warned_about_and_the_size_known():
    @td.function
    def unrolled(x):
        seen = {}
        for k in range(1000):
            seen[k] = x
            x = td.sin(x) + 1.0
        return x

    @td.function
    def python_range(x):
        for _ in range(1000):
            x = td.sin(x) + 1.0
        return x

    @td.function
    def rolled(x):
        for _ in td.range(1000):
            x = td.sin(x) + 1.0
        return x

    x = td.constant(0.5)
    with pytest.warns(RuntimeWarning, match=r"1000 times .* td\.range") as caught:
        unrolled.get_concrete_function(x)
    (warning,) = caught
    assert warning.filename == __file__ and "td.sin(x) + 1.0" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < rolled(x).numpy() < 2
        assert python_range(x).numpy() == unrolled(x).numpy()
    assert "is rolled (1000 iterations)" in str(python_range.explain())
    assert "is unrolled (1000 iterations)" in str(unrolled.explain())
    size = len(list(unrolled.get_concrete_function(x).graph.walk()))
    assert f"({size} operations)" in str(unrolled.explain()) and size > 2000
    assert len(list(rolled.get_concrete_function(x).graph.walk())) < 20


def test_22_loops_of_models_and_optimizers_over_layers_are_not_the_users(monkeypatch):
    monkeypatch.setattr(graph_size, "MANY_OPERATIONS", 60)
    monkeypatch.setattr(graph_size, "MANY_REPEATS", 15)
    layers = [td.keras.layers.Dense(2, activation="tanh") for _ in range(12)]
    model = td.keras.Sequential(layers)
    model.compile("adam", "mse")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(np.ones([4, 2]), np.ones([4, 2]), verbose=0)

    @td.function
    def unrolled(x):
        seen = {}
        for k in range(40):
            seen[k] = x
            x = layers[0](x)
        return x

    with pytest.warns(RuntimeWarning, match=r"layers\[0\]\(x\)"):
        unrolled.get_concrete_function(td.ones([4, 2]))


def test_30_python_effects_run_once_a_trace_and_the_report_shows_them(capsys):
    seen = []

    @td.function
    def f(x):
        print("tracing", x.shape)
        seen.append(1)
        td.print("running")
        return x

    for _ in range(3):
        f(td.constant([1.0]))
    captured = capsys.readouterr()
    assert captured.out.count("tracing (1,)") == 1 and len(seen) == 1
    assert captured.err.count("running") == 3
    text = str(f.explain())
    assert "once a trace, not at every call, ran the Python code" in text
    assert "print('tracing', x.shape)" in text and "seen.append(1)" in text
    assert "td.print" not in text


def test_39_nested_arguments_run_through_plans():
    f = td.function(lambda batch: batch["x"][0] + batch["y"][1].sum())
    batch = {"x": [td.ones([2]), 1], "y": (None, np.ones(3, np.float32))}
    for _ in range(3):
        f(batch)
    f._call_slowly = None  # the general path, which builds keys
    assert f(batch).numpy().tolist() == [4, 4]


def test_40_an_omitted_default_is_as_fast():
    """Both calls run through plans: neither takes the general path."""

    @td.function
    def f(x, scale=2.0, *, bias=1.0):
        return x * scale + bias

    x = td.constant(1.0)
    calls = [
        lambda: f(x),
        lambda: f(x, 2.0),
        lambda: f(x, scale=2.0),
        lambda: f(x, bias=1.0),
        lambda: f(x, 2.0, bias=1.0),
        lambda: f(bias=1.0, x=x),
    ]
    for call in calls * 2:
        assert call().numpy() == 3
    assert f.experimental_get_tracing_count() == 1
    f._call_slowly = None
    assert [call().numpy() for call in calls] == [3] * 6
