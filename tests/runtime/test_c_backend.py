"""The target that docs/extending.md makes: programs as C, built on the interface of backends.

These tests, and that page, need a C compiler: ``cc``.
"""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.test_docs import examples
from treadle.runtime.devices import using
from treadle.runtime.memory.plan import ALIGNMENT
from treadle.runtime.schedule.steps import Launch

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
X = np.linspace(-2, 3, 20, dtype=np.float32).reshape(5, 4)
TABLE = td.constant(np.arange(12, dtype=np.float32).reshape(3, 4))


@pytest.fixture(scope="module")
def backend():
    """The backend of the page's last part, which needs nothing of the parts before it."""
    assert shutil.which("cc"), "docs/extending.md compiles C: install a C compiler as `cc`"
    page = PAGE.read_text()
    start = page.count("\n", 0, page.index("## A new target"))
    blocks = [e for e in examples(page) if e.line > start and "squareplus" not in e.code]
    names = {"np": np, "td": td, "__name__": "page"}
    for block in blocks[:3]:
        exec(compile(block.code, str(PAGE), "exec"), names)
    return names["CBackend"]()


def two_passes(x):
    """A temporary between two kernels, and a number in a register that a kernel reads."""
    mean = td.reduce_mean(x)
    columns = td.reduce_sum(td.exp(x - mean), axis=0)
    return td.transpose(x) / td.reduce_sum(td.transpose(x) * 2.0, axis=0) + columns[0], columns


PROGRAMS = {
    "chain": lambda x: td.tanh(x * 2.0) + td.minimum(x, 0.5),
    "softmax": td.nn.softmax,
    "columns": lambda x: td.reduce_max(x, axis=0),
    "all": lambda x: td.reduce_any(x > 2.5, axis=1),
    "several passes": two_passes,
    "views": lambda x: td.concat([td.transpose(x), td.transpose(x)[:, ::-1] + 1.0], axis=0),
    "gather": lambda x: td.gather(x, [1, 0, 2, 1]) + 1.0,
    "captured": lambda x: x[:3] * TABLE,
    "numbers": lambda x: x[0, 0] * 2.0 + x[1, 1],
    "integers": lambda x: td.reduce_sum(td.cast(x * 10.0, td.int32), axis=1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_those_of_the_processor(name, backend):
    function = PROGRAMS[name]
    expected = td.nest.flatten(td.function(function)(X))
    with using(backend):
        in_c = td.function(function)
        found = td.nest.flatten(in_c(X))
        assert "void run(" in td.inspect.stages(in_c, X)["c"]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["chain", "softmax", "columns", "several passes"])
def test_one_program_serves_every_number_of_rows(name, backend):
    function = PROGRAMS[name]
    with using(backend):
        in_c = td.function(function, input_signature=[td.TensorSpec([None, 4])])
        for rows in (1, 5, 33):
            x = np.resize(X, (rows, 4)).astype(np.float32)
            found, expected = (td.nest.flatten(f(x)) for f in (in_c, function))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


def test_sizes_that_do_not_fit_are_an_error_of_the_op(backend):
    with using(backend):
        specs = [td.TensorSpec([None]), td.TensorSpec([None])]
        in_c = td.function(lambda x, y: x + y * 2.0, input_signature=specs)
        assert in_c(X[0], X[1]).numpy().tolist() == (X[0] + X[1] * 2).tolist()
        assert in_c(X[0], X[1, :1]).numpy().tolist() == (X[0] + X[1, :1] * 2).tolist()
        with pytest.raises(td.errors.InvalidArgumentError, match="add"):
            in_c(X[0], X[1, :3])


def test_what_the_backend_cannot_build_is_interpreted(backend, monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "0")
    with using(backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = td.function(lambda x: td.matmul(x, x, transpose_b=True))(X)
    np.testing.assert_allclose(found, X @ X.T, rtol=1e-6)
    assert any("is interpreted" in str(w.message) for w in caught)


def test_programs_that_exist_keep_their_device(backend):
    here = td.function(lambda x: x * 2.0 + 1.0)
    here(X)
    with using(backend):
        assert "llvm" in td.inspect.stages(here, X)
        there = td.function(lambda x: x * 2.0 + 1.0)
        there(X)
    assert "c" in td.inspect.stages(there, X)
    np.testing.assert_array_equal(here(X), there(X))


def test_a_plan_says_where_temporaries_begin(backend):
    with using(backend):
        graph = td.function(two_passes, input_signature=[td.TensorSpec([None, None])])
        executable = graph.get_concrete_function().executable
    planned = executable.planned
    temporaries = {
        operand.place
        for step in planned.block.steps
        if isinstance(step, Launch)
        for operand in step.operands
        if operand.place is not None and operand.place.kind == "temporary"
    }
    assert temporaries
    sizes = {source.name: 13 for source in planned.signature.symbols}

    def known(dim):
        return dim if isinstance(dim, int) else dim.evaluate(sizes)

    for place in temporaries:
        begin = known(planned.plan.offset(place))
        assert begin % ALIGNMENT == 0
        assert begin + known(place.room) <= known(planned.plan.bytes)
