"""Layers give what Keras gives: results, masks, gradients, and 50 losses of training."""

import json
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.keras.layer_facts.cases import CASES, STEPS, Trained, masks_of, parts_of

FACTS = np.load(Path(__file__).parent / "layer_facts" / "facts.npz")
DESCRIBED = json.loads(str(FACTS["described"]))["cases"]
# What Keras's configurations have for mechanisms that are not supported here.
UNKNOWN = {"quantization_config", "renorm", "renorm_clipping", "renorm_momentum", "synchronized",
           "rms_scaling", "activity_regularizer"}  # fmt: skip
SHOWN = {"seed", "noise_shape"}  # Keras takes them, but not all of its layers write them.


def flat(arrays):
    return np.concatenate([np.ravel(np.asarray(a)) for a in arrays])


def close(actual, key):
    np.testing.assert_allclose(flat(actual), FACTS[key], rtol=1e-4, atol=1e-5, err_msg=key)


def test_every_case_is_recorded():
    assert set(CASES) == set(DESCRIBED)


@pytest.mark.parametrize("key", CASES)
def test_results_gradients_and_losses(key):
    case, known = CASES[key], DESCRIBED[key]
    for compiled in (False, True):
        trained = Trained(td, case)
        assert [list(w.shape) for w in trained.weights] == known["weights"]
        step = td.function(trained.step) if compiled else trained.step
        losses = []
        for number in range(STEPS if compiled else 3):
            loss, results, gradients = step([td.constant(x) for x in case.inputs(number)])
            losses.append(loss)
            if number == 0:
                assert [list(r.shape) for r in results] == known["results"]
                close(results, f"{key}/results")
                close(gradients, f"{key}/gradients")
        expected = FACTS[f"{key}/losses"][: len(losses)]
        np.testing.assert_allclose(flat(losses), expected, rtol=2e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("key", CASES)
def test_masks(key):
    masks = masks_of(td, CASES[key])
    found = [None if m is None else np.asarray(m).astype(int).tolist() for m in masks]
    assert found == DESCRIBED[key]["masks"]


@pytest.mark.parametrize("key", CASES)
def test_configs_are_those_of_keras_and_make_equal_layers(key):
    case = CASES[key]
    trained = Trained(td, case)
    twins = [type(layer).from_config(layer.get_config()) for layer in trained.made]
    inputs = [td.constant(x) for x in case.inputs(0)]
    case.call(twins, inputs)
    for layer, twin, names in zip(trained.made, twins, DESCRIBED[key]["configs"], strict=True):
        assert twin.get_config() == layer.get_config()
        assert set(layer.get_config()) - UNKNOWN - SHOWN == set(names) - UNKNOWN - SHOWN
        json.dumps(layer.get_config())
        twin.set_weights(layer.get_weights())
    if case.shapes and not any(layer.losses for layer in trained.made):
        expected = flat(parts_of(case.call(trained.made, inputs)))
        np.testing.assert_allclose(flat(parts_of(case.call(twins, inputs))), expected, rtol=1e-6)
