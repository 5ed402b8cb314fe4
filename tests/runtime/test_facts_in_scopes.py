"""Programs give in a device scope what TensorFlow gave (`tests.facts_tf`): the device is one whose
buffers nobody else can open."""

from __future__ import annotations

import pytest

import treadle as td
from tests.facts_tf.comparison import deviating, differences, recorded
from tests.facts_tf.registry import programs, run
from tests.runtime.shelf import shelf

GROUPS = (
    "combinations", "control_functions", "extension_types_in_datasets", "functions",
    "gradients_of_graphs", "indexed_slices", "networks", "variables",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("group", GROUPS)
def test_facts(group):
    with shelf() as place, td.device(place.name):
        for name, fn in programs(group).items():
            found = differences(recorded(group)[name], run(fn, td))
            assert set(found) == set(deviating(f"{group}.{name}")), name
