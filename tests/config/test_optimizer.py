"""td.config.optimizer, and td.config.experimental's settings of how programs run."""

import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from treadle.ops.random.state import streams
from treadle.tracing import settings

optimizer, experimental = td.config.optimizer, td.config.experimental
DEFAULTS = {"disable_meta_optimizer": False, "disable_model_pruning": False}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setattr(settings, "wait_for_eager_programs", settings.wait_for_eager_programs)
    yield
    optimizer.set_experimental_options(
        {"constant_folding": True, "disable_meta_optimizer": False, "remapping": True}
    )
    optimizer.set_jit(False)
    streams.need_seeds = False


def test_options_switch_passes_off_in_all_threads():
    @td.function
    def f(x):
        return x + td.constant(2.0) * td.constant(3.0)

    def multiplies():
        f(td.constant(1.0))
        graph = f.get_concrete_function(td.constant(1.0)).executable.graph
        return "multiply(" in str(graph)

    assert not multiplies()
    optimizer.set_experimental_options({"constant_folding": False})
    assert multiplies() and float(f(td.constant(1.0))) == 7.0
    assert optimizer.get_experimental_options()["constant_folding"] is False
    assert "constants" in td.passes.disabled_passes()
    optimizer.set_experimental_options({"constant_folding": True})
    assert not multiplies()
    optimizer.set_experimental_options({"disable_meta_optimizer": True})
    assert multiplies() and td.passes.disabled_passes() == {"all"}


def test_options_at_first_and_unknown_ones():
    code = "import treadle as td; print(td.config.optimizer.get_experimental_options())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(DEFAULTS)
    with pytest.raises(ValueError, match="no optimizer called fold"):
        optimizer.set_experimental_options({"fold": True})


@pytest.mark.parametrize(
    ("told", "said"), [(True, "autoclustering"), ("autoclustering", "autoclustering"), (False, "")]
)
def test_jit_is_what_it_was_told(told, said):
    optimizer.set_jit(told)
    assert optimizer.get_jit() == said


def test_policies():
    assert experimental.get_device_policy() == "silent"
    experimental.set_device_policy("silent")
    with pytest.raises(NotImplementedError, match="operations copy operands"):
        experimental.set_device_policy("explicit")
    with pytest.raises(ValueError, match="Not a valid device policy"):
        experimental.set_device_policy("loud")
    experimental.set_synchronous_execution(False)
    assert experimental.get_synchronous_execution() is False
    experimental.set_synchronous_execution(None)
    assert experimental.get_synchronous_execution() is True


def test_determinism_needs_seeds():
    experimental.enable_op_determinism()
    td.random.set_seed(None)
    refused = [
        lambda: td.random.uniform([2]), lambda: td.random.shuffle([1, 2]),
        lambda: td.nn.dropout(td.ones([2]), 0.5), lambda: td.data.Dataset.range(3).shuffle(3),
        td.random.Generator.from_non_deterministic_state,
        td.function(lambda: td.random.normal([2])),
    ]  # fmt: skip
    for draw in refused:
        with pytest.raises(RuntimeError, match=r"determinism is enabled"):
            draw()
    assert td.random.uniform([2], seed=3).shape == [2]
    assert len(list(td.data.Dataset.range(3).shuffle(3, seed=1))) == 3
    td.random.set_seed(1)
    first = td.random.uniform([2]).numpy()
    td.random.set_seed(1)
    np.testing.assert_array_equal(td.random.uniform([2]).numpy(), first)
    td.random.set_seed(None)


def test_names_that_are_not_provided_say_what_to_use():
    for place, name in (
        (td.config, "experimental_connect_to_cluster"), (experimental, "ClusterDeviceFilters"),
        (td.distribute, "Server"), (td.distribute.cluster_resolver, "SlurmClusterResolver"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match="mpiexec|MPI"):
            getattr(place, name)
