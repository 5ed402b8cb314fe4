"""The compiler's work is in proportion to the length of what Python unrolled.

Work is counted as calls of Python functions and resumptions of generators, so that no clock is
needed. `python -m benchmarks.growth` measures times of chains up to 5,000 long.
"""

import cProfile
import sys
import warnings

import numpy as np
import pytest

import treadle as td
from benchmarks.chains import CHAINS, argument, variable_chain
from treadle.graph.passes import optimize
from treadle.graph.rewrite import clone_graph
from treadle.passes import disabled
from treadle.runtime.compiler import plan_program
from treadle.runtime.cpu.emission import STRAIGHT
from treadle.runtime.schedule.printer import all_kernels

pytestmark = pytest.mark.thorough

SHORT, LONG = 25, 100
NETWORKS = {"joins": (12, 48), "residuals": (8, 32)}  # a step of these is many operations


def planned(chain, name, n):
    """Trace a chain, run every pass, and plan the program; all but machine code."""
    function = td.function(lambda u: chain(u, n))
    with warnings.catch_warnings(), disabled("rolled_loops"):
        warnings.simplefilter("ignore")  # that loops were unrolled
        graph = clone_graph(function.get_concrete_function(argument(name)).graph)
    optimize(graph)
    return plan_program(graph)


def work(chain, name, n):
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.enable()
    try:
        planned(chain, name, n)
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("name", [*CHAINS, "variable"])
def test_work_is_linear(name):
    chain = CHAINS[name] if name in CHAINS else variable_chain()
    work(chain, name, 4)  # what is done once only
    shorter, longer = NETWORKS.get(name, (SHORT, LONG))
    short, long = work(chain, name, shorter), work(chain, name, longer)
    assert long < 1.25 * longer / shorter * short


@pytest.mark.parametrize("name", ["views", "reshapes", "squeezes", "scalars"])
def test_chains_longer_than_the_stack(name):
    planned(CHAINS[name], name, sys.getrecursionlimit() + 200)


def numpy_views(u, n):
    for _ in range(n):
        u = u[:, ::-1].T[::-1]
    return u


@pytest.mark.parametrize("n", [32, 33, 100])
def test_views_of_views_are_right(n):
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    f = td.function(lambda u: (CHAINS["views"](u, n), CHAINS["views"](u, n)[0, 1] * 2.0))
    image, corner = f(x)
    want = numpy_views(x, n)
    np.testing.assert_array_equal(image.numpy(), want)
    assert corner.numpy() == 2.0 * want[0, 1]


def test_values_of_old_readers():
    x = argument("old_readers")
    n = 40
    np.testing.assert_allclose(
        td.function(lambda u: CHAINS["old_readers"](u, n))(x).numpy(),
        CHAINS["old_readers"](x, n).numpy(),
        rtol=1e-5,
    )


@pytest.mark.filterwarnings("ignore")
def test_long_programs_take_linear_time_in_llvm():
    """LLVM's own passes are left out where a program is long: they are not linear."""
    x, texts = argument("scatters"), []
    for n in (2, 200):
        f = td.function(lambda u, n=n: CHAINS["scatters"](u, n))
        with disabled("rolled_loops"):
            texts.append(td.inspect.stages(f, x)["llvm"])
            np.testing.assert_array_equal(f(x).numpy(), CHAINS["scatters"](x, n).numpy())
    assert [STRAIGHT in t for t in texts] == [False, True]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("length", "straight"), [(200, False), (400, True)])
def test_long_programs_with_loops_are_improved_unless_they_are_very_long(length, straight):
    @td.function
    def f(u, n):
        for _ in td.range(n):
            u = CHAINS["scatters"](u, length)
        return u

    x = argument("scatters")
    with disabled("rolled_loops"):
        assert (STRAIGHT in td.inspect.stages(f, x, td.constant(2))["llvm"]) is straight
        plain = CHAINS["scatters"](CHAINS["scatters"](x, length), length)
        np.testing.assert_allclose(f(x, td.constant(2)), plain, rtol=1e-6)


def test_densely_connected_layers_choose_between_few_arrays():
    """A layer that normalises all results before it reads them several times: a kernel that had to
    choose between all of them for every element would be as long as the network is deep."""
    program = planned(CHAINS["joins"], "joins", 12)
    assert max(len(kernel.buffers) for kernel in all_kernels(program.block)) <= 9


@pytest.mark.parametrize("name", ["joins", "residuals"])
def test_deep_networks(name):
    x = td.constant(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    found = td.function(lambda u: CHAINS[name](u, 6))(x)
    np.testing.assert_allclose(found, CHAINS[name](x, 6), rtol=2e-4, atol=2e-5)
