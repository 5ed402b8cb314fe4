"""The public functions of td.autograph, as users of TensorFlow know them."""

import functools
import logging

import pytest

import treadle as td


def absolute(x):
    if x > 0:
        return x
    return -x


def calls_absolute(x):
    return absolute(x) * 2.0


@pytest.fixture
def silent():
    yield
    td.autograph.set_verbosity(0)


def test_to_graph_runs_with_values_and_inside_functions():
    made = td.autograph.to_graph(absolute)
    assert made(-3) == 3 and made(td.constant(-3.0)).numpy() == 3
    compiled = td.function(made, autograph=False)
    assert compiled(td.constant(-3.0)).numpy() == compiled(td.constant(3.0)).numpy() == 3
    assert compiled.experimental_get_tracing_count() == 1


def test_to_graph_recursive_or_not():
    deep = td.function(td.autograph.to_graph(calls_absolute), autograph=False)
    assert deep(td.constant(-3.0)).numpy() == 6
    shallow = td.function(td.autograph.to_graph(calls_absolute, recursive=False), autograph=False)
    with pytest.raises(TypeError, match="Python bool"):
        shallow(td.constant(-3.0))


def test_to_graph_of_methods():
    class Model:
        scale = 3.0

        def scaled(self, x):
            return x * self.scale if x > 0 else x

    model = Model()
    for recursive in (True, False):
        made = td.autograph.to_graph(model.scaled, recursive=recursive)
        assert td.function(made, autograph=False)(td.constant(2.0)).numpy() == 6


def test_to_code_of_functions_methods_and_decorated_ones():
    class Model:
        @td.function
        def f(self, x):
            if x > 0:
                x = x + 1.0
            return x

    text = td.autograph.to_code(absolute)
    assert text.startswith("def absolute(x):") and "ag__.if_stmt" in text
    assert td.autograph.to_code(td.function(absolute)) == text
    assert td.autograph.to_code(functools.partial(absolute)) == text
    for method in (Model.f, Model().f, Model.f.python_function):
        assert "def f(self, x):" in td.autograph.to_code(method)
    features = td.autograph.experimental.Feature.all()
    assert td.autograph.to_code(entity=absolute, experimental_optional_features=features) == text
    with pytest.raises(td.autograph.ConversionError, match="not a Python function"):
        td.autograph.to_code(len)


def test_features():
    feature = td.autograph.experimental.Feature
    assert feature.LISTS in feature.all() and len(feature.all()) == 7
    assert feature.LISTS not in feature.all_but(feature.LISTS)
    assert feature.ALL not in feature.all_but([])
    assert set(feature.all_but([feature.LISTS, feature.NAME_SCOPES])) < set(feature.all())


class Callable:
    def __call__(self, x):
        return absolute_again(x)


def absolute_again(x):
    if x > 0:
        return x
    return -x


@pytest.mark.parametrize(
    "make",
    [
        lambda: td.function(td.autograph.experimental.do_not_convert(lambda x: absolute_again(x))),
        lambda: td.autograph.experimental.do_not_convert(td.function(lambda x: absolute_again(x))),
        lambda: td.function(td.autograph.experimental.do_not_convert()(Callable())),
        lambda: td.function(
            td.autograph.experimental.do_not_convert(functools.partial(absolute_again))
        ),
    ],
)
def test_do_not_convert(make):
    f = make()
    with pytest.raises(TypeError, match="Python bool"):
        f(td.constant(1.0))
    assert td.function(Callable())(td.constant(-1.0)).numpy() == 1  # the others are as they were
    assert td.function(absolute_again)(td.constant(-1.0)).numpy() == 1


def test_verbosity(caplog, capsys, silent):
    def quiet(x):
        return x if x > 0 else -x

    def told(x):
        return x if x > 1 else -x

    def shown(x):
        return x if x > 2 else -x

    x = td.constant(1.0)
    with caplog.at_level(logging.INFO, "treadle.autograph"):
        td.function(quiet)(x)
        td.autograph.set_verbosity(1, alsologtostdout=True)
        td.function(told)(x)
        td.autograph.set_verbosity(3)
        td.function(shown)(x)
    assert "quiet" not in caplog.text
    assert f"told ({__file__}:" in caplog.text and "is converted" in caplog.text
    assert "ag__.if_exp(x > 2" in caplog.text and "x > 1" not in caplog.text
    assert capsys.readouterr().out.count("AutoGraph: ") == 1
    with pytest.raises(ValueError, match="0 or more"):
        td.autograph.set_verbosity(-1)


def test_trace_prints_while_tracing(capsys):
    @td.function
    def f(x):
        td.autograph.trace("x is", x)
        return x

    for _ in range(3):
        f(td.constant([1.0, 2.0]))
    out = capsys.readouterr().out
    assert out.count("x is") == 1 and "shape=(2,)" in out
