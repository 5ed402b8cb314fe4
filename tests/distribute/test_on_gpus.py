"""Strategies on real GPUs, where there are two or more. TREADLE_TEST_GPUS=2 says that there must be
so many."""

import os

import numpy as np
import pytest

import treadle as td
from tests.distribute.test_gpus import OPS, X, Y, one_device, shares, training
from treadle.runtime.gpu import discovery

GPUS = discovery.physical_gpus()
on_gpus = pytest.mark.skipif(len(GPUS) < 2, reason=f"there are {len(GPUS)} GPUs, two are needed")


def test_as_many_gpus_as_there_must_be() -> None:
    assert len(GPUS) >= int(os.environ.get("TREADLE_TEST_GPUS", "0")), discovery.why_none()


@on_gpus
@pytest.mark.parametrize("ops", OPS)
def test_a_training_step_has_the_losses_of_one_device(ops: str) -> None:
    strategy = td.distribute.MirroredStrategy(cross_device_ops=OPS[ops])
    train, weights = training(strategy)
    batch = shares(strategy, X, Y)
    losses = []
    for _ in range(6):  # from the third step on it is recorded
        values = strategy.experimental_local_results(train(batch))
        losses.append(sum(float(v) for v in values))
    np.testing.assert_allclose(losses, one_device(), rtol=1e-4)
    for weight in weights:
        parts = [v.numpy() for v in weight.values]
        assert all(np.array_equal(parts[0], p) for p in parts)


@on_gpus
def test_a_thousand_steps_give_the_same_bits_twice() -> None:
    found = []
    for _ in range(2):
        strategy = td.distribute.MirroredStrategy()
        train, weights = training(strategy)
        batch = shares(strategy, X, Y)
        for _ in range(1000):
            train(batch)
        found.append(weights[0].numpy())
    assert np.array_equal(*found)
