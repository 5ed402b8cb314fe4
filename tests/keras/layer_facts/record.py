"""Records what Keras gives for the cases: ``python -m tests.keras.layer_facts.record [new]``.

Run it with a Python that has tensorflow; the tests read ``facts.npz`` only. With ``new`` the facts
that are there stay.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tests.keras.layer_facts.cases import CASES, STEPS, Trained, masks_of

FACTS = Path(__file__).parent / "facts.npz"


def flat(arrays: list[Any]) -> Any:
    return np.concatenate([np.ravel(np.asarray(a)) for a in arrays]).astype("float32")


def main() -> None:
    facts: dict[str, Any] = {}
    described: dict[str, Any] = {}
    if sys.argv[1:] == ["new"]:
        facts = dict(np.load(FACTS))
        described = json.loads(str(facts["described"]))["cases"]
    for key in CASES.keys() - described.keys():
        case = CASES[key]
        trained = Trained(tf, case)
        step = tf.function(trained.step)
        losses = []
        for number in range(STEPS):
            inputs = [tf.constant(x) for x in case.inputs(number)]
            loss, results, gradients = step(inputs)
            losses.append(loss)
            if number == 0:
                facts[f"{key}/results"], facts[f"{key}/gradients"] = flat(results), flat(gradients)
                shapes = [list(r.shape) for r in results]
        facts[f"{key}/losses"] = flat(losses)
        masks = masks_of(tf, case)
        described[key] = {
            "results": shapes,
            "weights": [list(w.shape) for w in trained.weights],
            "masks": [None if m is None else np.asarray(m).astype(int).tolist() for m in masks],
            "configs": [sorted(layer.get_config()) for layer in trained.made],
        }
        print(key, float(losses[0]), float(losses[-1]), flush=True)
    described = {key: described[key] for key in CASES}
    facts["described"] = np.array(json.dumps({"tensorflow": tf.__version__, "cases": described}))
    np.savez_compressed(FACTS, **facts)
    print(f"{len(CASES)} cases, {FACTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
