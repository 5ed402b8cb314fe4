"""td.config.threading: settings, environment, affinity, control groups."""

import os
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.runtime.cpu.threads import pool

setting = td.config.threading


@pytest.fixture(autouse=True)
def restored():
    before = setting.get_intra_op_parallelism_threads(), setting.get_inter_op_parallelism_threads()
    yield
    setting.set_intra_op_parallelism_threads(before[0])
    setting.set_inter_op_parallelism_threads(before[1])


def test_as_in_tensorflow_zero_means_the_system_decides():
    assert setting.get_intra_op_parallelism_threads() == 0
    assert setting.get_inter_op_parallelism_threads() == 0
    setting.set_intra_op_parallelism_threads(3)
    setting.set_inter_op_parallelism_threads(2)
    assert setting.get_intra_op_parallelism_threads() == 3
    assert setting.get_inter_op_parallelism_threads() == 2
    assert setting.threads_in_use() == 3
    setting.set_intra_op_parallelism_threads(0)
    assert setting.threads_in_use() == pool().threads


def test_programs_that_are_compiled_already_follow():
    f = td.function(lambda x: td.reduce_sum(td.exp(td.sin(x)), 1))
    x = np.random.default_rng(0).standard_normal((300, 500)).astype(np.float32)
    wanted = f(x).numpy()
    for count in (1, 5, 2):
        setting.set_intra_op_parallelism_threads(count)
        assert pool().threads == count
        np.testing.assert_array_equal(f(x).numpy(), wanted)


@pytest.mark.parametrize("number", [-1, 257, 1.0, True, None, "2"])
@pytest.mark.parametrize(
    "set_threads",
    [setting.set_intra_op_parallelism_threads, setting.set_inter_op_parallelism_threads],
)
def test_what_is_no_number_of_threads_is_refused(set_threads, number):
    before = setting.threads_in_use()
    with pytest.raises(ValueError, match="number of threads must be"):
        set_threads(number)
    assert setting.threads_in_use() == before


def test_data_pipelines_follow_the_inter_op_setting(monkeypatch):
    from treadle.data.stages import stage

    assert stage.available_processors() == setting.usable_processors()
    setting.set_inter_op_parallelism_threads(7)
    assert stage.available_processors() == 7
    doubled = td.data.Dataset.range(50).map(lambda x: x * 2, num_parallel_calls=td.data.AUTOTUNE)
    assert [int(x) for x in doubled] == list(range(0, 100, 2))


def python(code: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "import treadle as td\nset = td.config.threading\n" + code],
        env={**os.environ, "PYTHONPATH": "src", **environment},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CALL = "td.function(lambda x: td.reduce_sum(x))(td.ones([9]))\n"
POOL = "from treadle.runtime.cpu.threads import pool; print(pool().threads)"


def test_the_environment_is_obeyed_and_the_setting_wins():
    assert python("print(set.threads_in_use())", TREADLE_NUM_THREADS="3") == ["3"]
    code = "set.set_intra_op_parallelism_threads(2)\n" + CALL + POOL
    assert python(code, TREADLE_NUM_THREADS="3") == ["2"]
    assert python(CALL + POOL, TREADLE_NUM_THREADS="3") == ["3"]


def test_a_setting_starts_nothing_and_needs_no_compiler():
    code = (
        "import sys, threading\nset.set_intra_op_parallelism_threads(8)\n"
        "print('llvmlite' in sys.modules, threading.active_count())"
    )
    assert python(code) == ["False", "1"]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_affinity_is_obeyed():
    one = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code = one + "print(set.usable_processors(), set.threads_in_use())\n" + CALL + POOL
    assert python(code, TREADLE_NUM_THREADS="") == ["1", "1", "1"]
