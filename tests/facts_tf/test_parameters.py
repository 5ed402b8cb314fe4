"""Public functions, constructors and methods have TensorFlow's parameters: names, order, defaults.

What differs is listed as ``parameters.NAME`` in deviations.json.
"""

from __future__ import annotations

import pytest

import treadle as td
import treadle.compat.v1
from tests.facts_tf.comparison import deviating
from tests.facts_tf.parameters import calls_refused, parameters_of, recorded_parameters


def test_parameters_are_tensorflows():
    """Every public name that TensorFlow has; treadle's own names are not recorded."""
    facts = recorded_parameters()
    own = parameters_of(td, list(facts))
    found = [
        f"{name}\n    expected: {wanted}\n    treadle:  {own.get(name)}"
        for name, fact in facts.items()
        if own.get(name) != (wanted := deviating(f"parameters.{name}").get("", fact))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("library", ["keras", "1"])
def test_calls_of_keras_and_of_tensorflow_1_are_taken(library):
    """Every call that the recorded signatures take means the same here; more may be taken. Names
    that are missing are listed by the tests of names."""
    facts = recorded_parameters(library)
    own = parameters_of(td, list(facts))
    found = [
        f"{name}\n    expected: {wanted}\n    refused:  {refused}\n    treadle:  {own[name]}"
        for name, fact in facts.items()
        if name in own
        and (refused := calls_refused(fact, own[name]))
        != (wanted := deviating(f"parameters.{name}").get("", []))
    ]
    assert len(own) > 1000 and not found, "\n".join(found)


def test_deviations_differ():
    for name, fact in recorded_parameters().items():
        assert deviating(f"parameters.{name}").get("") != fact, f"{name} is as TensorFlow has it"


def test_what_calls_are_refused():
    """The comparison itself."""
    wanted = ["x", "axis=None", "name=...", "*", "seed=0"]
    assert not calls_refused(wanted, ["x", "axis=None", "name=...", "*", "seed=0", "more=1"])
    assert not calls_refused(wanted, ["x=1", "*rest", "axis=None", "name=...", "**others"])
    for own, words in (
        (["x", "name=...", "axis=None", "*", "seed=0"], ["position 1 is axis"]),
        (["x", "axis=-1", "name=...", "*", "seed=0"], ["axis=-1, not axis=None"]),
        (["x", "axis", "name=...", "*", "seed=0"], ["axis, not axis=None"]),
        (["y", "axis=None", "name=..."], ["position 0 is x", "no x", "no seed"]),
    ):
        assert calls_refused(wanted, own) == words
