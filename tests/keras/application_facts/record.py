"""Records what Keras gives: ``python -m tests.keras.application_facts.record [new]``.

Run it with a Python that has tensorflow; the tests read ``facts.json`` only. With ``new`` the facts
that are there stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.initializers.random_initializers import VarianceScaling

from tests.keras.application_facts.cases import (
    CASES,
    SMALL,
    TRAINED,
    fill,
    fingerprint,
    images,
    losses_of,
)

FACTS = Path(__file__).parent / "facts.json"


def rounded(values: Any) -> list[float]:
    return [float(f"{v:.7g}") for v in np.ravel(values)]


def main() -> None:
    facts: dict[str, Any] = {}
    if sys.argv[1:] == ["new"]:
        facts = json.loads(FACTS.read_text())
    drawn = VarianceScaling.__call__
    # Numbers that nobody looks at take the time of drawing them.
    VarianceScaling.__call__ = lambda self, shape, dtype=None, **_: tf.zeros(shape)
    for key, (name, settings) in CASES.items():
        if key in facts:
            continue
        keras.utils.clear_session()
        model = getattr(keras.applications, name)(weights=None, **settings)
        facts[key] = fingerprint(model)
        print(key, facts[key]["count"], flush=True)
        write(facts)
    VarianceScaling.__call__ = drawn
    for key, (name, settings, shape) in SMALL.items():
        if f"{key} run" in facts:
            continue
        keras.utils.clear_session()
        model = getattr(keras.applications, name)(weights=None, **settings)
        fill(model)
        facts[f"{key} run"] = found = {"results": rounded(model(images(shape)))[:40]}
        if key in TRAINED:
            losses, gradient = losses_of(tf, model, shape)
            found |= {"losses": rounded(losses), "gradient": rounded(gradient)}
        print(key, found["results"][:3], found.get("losses"), flush=True)
        write(facts)


def write(facts: dict[str, Any]) -> None:
    kept = {"keras": keras.__version__, **{k: v for k, v in facts.items() if k != "keras"}}
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in kept.items())
    FACTS.write_text(f"{{{lines}}}\n")


if __name__ == "__main__":
    main()
