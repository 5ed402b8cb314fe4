"""The simulation of many workers: sizes of the networks, and what its model of the network says."""

import json
from pathlib import Path

import pytest

from benchmarks import scaling

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("layers", "weights", "tensors", "billions"),
    [(scaling.resnet50, 25_557_032, 161, 3.9), (scaling.bert_base, 109_482_240, 199, 11.2)],
)
def test_networks_have_the_weights_of_the_real_ones(layers, weights, tensors, billions):
    found = list(layers())
    assert sum(sum(layer.sizes) for layer in found) == weights
    assert sum(len(layer.sizes) for layer in found) == tensors
    assert sum(layer.work for layer in found) / 1e9 == pytest.approx(billions, abs=0.05)
    packs = scaling.packs(found)
    assert sum(size for size, _ in packs) == 4 * weights
    assert [last for _, last in packs] == sorted((last for _, last in packs), reverse=True)


def test_sums_take_the_faster_of_ring_and_tree():
    network = scaling.Network("n", 1.0, 0.5)
    assert scaling.reduce_seconds(network, 1, 100) == 0
    assert scaling.reduce_seconds(network, 2, 100) == 2 * 1.0 + 100 * 0.5
    assert scaling.reduce_seconds(network, 64, 2) == 2 * 6 * (1.0 + 2 * 0.5)  # the tree's
    ring = 2 * 63 * 1.0 + 2 * 63 / 64 * 1e6 * 0.5
    assert scaling.reduce_seconds(network, 64, 1e6) == pytest.approx(ring)


def test_overlap_never_takes_longer_and_no_network_takes_nothing():
    layers = list(scaling.resnet50())
    free = scaling.Network("free", 0.0, 0.0)
    assert scaling.step_seconds(layers, 1.0, free, 512, False) == pytest.approx(1.0)
    for network in scaling.NETWORKS:
        alone = scaling.step_seconds(layers, 0.1, network, 1, True)
        assert alone == pytest.approx(0.1)
        for workers in (8, 512):
            times = [scaling.step_seconds(layers, 0.1, network, workers, o) for o in (True, False)]
            assert 0.1 < times[0] <= times[1]


def test_the_page_has_the_table():
    rows = scaling.table()
    assert json.loads((DOCS / "results/scaling.json").read_text())["rows"] == rows
    assert scaling.markdown(rows) in (DOCS / "distribute.md").read_text()
