"""A first call imports what its program needs."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import treadle as td

@td.jit
def f(x):
    for i in range(1, len(x)):
        x[i] = {expression}
    return x

x = np.linspace(0.1, 1.0, 20)
expected = f.python_function(x.copy())
assert np.allclose(f(x), expected, 1e-12)
print(*(m for m in sys.modules if m.startswith("treadle.")))
"""
ELSEWHERE = {"power", "trigonometry", "inverse_functions"}


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("x[i] + 0.5 * x[i - 1]", set()),
        ("x[i] + np.sin(x[i - 1])", {"trigonometry"}),
        ("x[i] + np.arctan(x[i - 1])", {"inverse_functions"}),
        ("x[i] ** x[i - 1]", {"power"}),
    ],
)
def test_modules_of_functions(expression: str, wanted: set[str], tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(expression=expression))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path), "TREADLE_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    imported = {m.rpartition(".")[2] for m in done.stdout.split() if ".cpu." in m}
    assert imported & ELSEWHERE == wanted
    assert not imported & {"library_code", "library_text", "ragged_memory"}


PRODUCT = """
import sys
import numpy as np
import treadle as td

@td.function
def f(x, y):
    return x @ y

x = np.ones((40, 50), np.float32)
assert (f(x, x.T).numpy() == 50).all()
print(*(m for m in sys.modules if m.startswith("treadle.")))
"""


def test_what_calls_a_stored_product_imports_no_compiler(tmp_path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PRODUCT)
    environment = {"PYTHONPATH": ":".join(sys.path), "TREADLE_CACHE_DIR": str(tmp_path)}
    compiled, found = (
        set(
            subprocess.run(
                [sys.executable, script], capture_output=True, text=True, check=True,
                env=environment,
            ).stdout.split()
        )
        for _ in range(2)
    )  # fmt: skip
    names = "compiler", "cpu.library", "cpu.program_poll", "cpu.builder"
    modules = {f"treadle.runtime.{name}" for name in names}
    assert modules <= compiled
    assert not modules & found
    assert "treadle.runtime.cpu.routines.compiler" not in compiled | found  # for rows only
    assert "treadle.runtime.cpu.library_code" in found
    own = {"complex_parts", "magnitudes", "pooling", "counted_lists", "list_sums"}
    passes = {m.rpartition(".")[2] for m in compiled if m.startswith("treadle.graph.passes.")}
    assert "algebra" in passes and not own & passes  # graphs have no such ops
    assert not any(m.startswith("treadle.graph.passes") for m in found)


IMPORTED = """
import sys
import treadle
print(*(m for m in sys.modules if m.startswith(("treadle.", "ml_dtypes"))))
"""
MOST_MODULES = 230  # that `import treadle` loads: each takes about 0.2 ms


def test_import_loads_few_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    found = done.stdout.split()
    assert len(found) <= MOST_MODULES
    later = "treadle.math", "treadle.nn", "treadle.config", "treadle.graph.passes", "ml_dtypes"
    assert not {*later} & {*found}


BFLOAT16 = """
import sys
import numpy as np
import treadle as td

assert td.bfloat16.size == 2 and td.as_dtype("bfloat16") is td.bfloat16
y = td.reduce_sum(td.constant([1.0, 2.0]) * 2)
assert td.float32 != td.bfloat16 and "ml_dtypes" not in sys.modules
import ml_dtypes
x = np.array([1.0, 2.5], ml_dtypes.bfloat16)
assert td.constant(x).dtype is td.bfloat16 and td.as_dtype(x.dtype) is td.bfloat16
assert td.as_dtype(ml_dtypes.bfloat16) is td.bfloat16
assert td.bfloat16.np_dtype == x.dtype and td.bfloat16.as_numpy_dtype is ml_dtypes.bfloat16
try:
    td.as_dtype(ml_dtypes.int4)
except TypeError as error:
    print(error)
"""


def test_bfloat16_is_known_before_and_after_its_library_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BFLOAT16], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert "Cannot convert" in done.stdout and "int4" in done.stdout


COMPLEX = """
import numpy as np
import treadle as td

@td.function
def f(x):
    y = td.complex(x, 2.0 * x) * td.complex(x, -x)
    return td.abs(y) < 40.0, td.math.real(y)

x = np.linspace(0.0, 9.0, 7).astype(np.float32)
y = (x + 2j * x) * (x - 1j * x)
small, real = f(x)
np.testing.assert_array_equal(small, abs(y) < 40.0)
np.testing.assert_allclose(real, y.real, 1e-6)
(graph,) = (t.executable.graph for t in [f.get_concrete_function(x)])
print(*{node.op.name for node in graph.walk()})
"""


def test_passes_of_complex_numbers_come_with_complex_numbers(tmp_path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPLEX], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path), "TREADLE_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    ops = done.stdout.split()
    assert not {"complex", "abs", "complex_abs"} & {*ops}  # compared as squares
