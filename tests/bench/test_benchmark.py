import re

import pytest

import treadle as td


def poly(x):
    return ((x * x + x) * x + 1.0) * x


def test_result():
    result = td.benchmark(poly, td.constant([1.0, 2.0]))
    assert 0 < result.graph < 1e-3 and 0 < result.eager < 1e-2
    assert result.speedup == pytest.approx(result.eager / result.graph)
    assert result.first_call > result.graph


def test_readable():
    lines = repr(td.benchmark(poly, td.constant([1.0, 2.0]))).splitlines()
    assert lines[0] == "benchmark of poly"
    assert re.fullmatch(r"  eager  +[\d.]+ (µs|ms|s ) a call", lines[1])
    assert re.fullmatch(r"  graph  +[\d.]+ (µs|ms|s ) a call, [\d.]+ x as fast", lines[2])
    assert re.match(r"  first call  +[\d.]+ (µs|ms|s ), tracing and compiling; ", lines[3])


def test_function_is_run_untraced_in_eager_mode():
    ran = []

    @td.function
    def noted(x):
        ran.append(type(x))
        return x + 1.0

    td.benchmark(noted, td.constant(1.0))
    eager = type(td.constant(1.0))
    assert ran.count(eager) > 10  # eager calls; the one trace sees another type of tensor
    assert len(ran) - ran.count(eager) == 1


def test_keyword_arguments():
    result = td.benchmark(lambda x, *, scale: x * scale, td.constant(1.0), scale=2.0)
    assert result.name == "<lambda>"


def test_errors_are_the_functions_own():
    with pytest.raises(ZeroDivisionError):
        td.benchmark(lambda: 1 // 0)
    with pytest.raises(TypeError, match="needs a function, not int"):
        td.benchmark(3)


@pytest.mark.parametrize(
    ("eager", "graph", "first", "after"),
    [(2e-6, 1e-6, 1e-3, 1000), (1e-6, 2e-6, 1e-3, None), (1.0, 0.5, 1e-3, 1)],
)
def test_when_compiling_pays(eager, graph, first, after):
    result = td.bench.BenchmarkResult("f", eager, graph, first)
    assert result.worthwhile_after == after
    assert ("does not pay off" in repr(result)) == (after is None)
