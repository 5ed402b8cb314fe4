"""Public functions, constructors and methods have TensorFlow's parameters: names, order, defaults.

What differs is listed as ``parameters.NAME`` in deviations.json.
"""

from __future__ import annotations

import treadle as td
from tests.facts_tf.comparison import deviating
from tests.facts_tf.parameters import parameters_of, public_names, recorded_parameters


def test_parameters_are_tensorflows():
    """Every public name that TensorFlow has; treadle's own names are not recorded."""
    facts = recorded_parameters()
    own = parameters_of(td, public_names())
    found = [
        f"{name}\n    expected: {wanted}\n    treadle:  {own.get(name)}"
        for name, fact in facts.items()
        if own.get(name) != (wanted := deviating(f"parameters.{name}").get("", fact))
    ]
    assert not found, "\n".join(found)


def test_deviations_differ():
    for name, fact in recorded_parameters().items():
        assert deviating(f"parameters.{name}").get("") != fact, f"{name} is as TensorFlow has it"
