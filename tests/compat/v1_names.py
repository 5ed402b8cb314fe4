"""The names of TensorFlow 1's modules.

``PYTHONPATH=. /path/with/tensorflow/python tests/compat/v1_names.py`` writes those of
``tensorflow.compat.v1`` into ``v1_names.txt``; ``python -m tests.compat.v1_names`` says how many
treadle has, in ``docs/results/tensorflow1_names.json``.
"""

import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_name("v1_names.txt")
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "tensorflow1_names.json"
# Modules that are Keras 3's, or of other programs, or copies of others.
_LEFT_OUT = {"keras", "layers", "rnn_cell", "lite", "tpu", "raw_ops", "compat", "app"}


def names_of(module: Any, prefix: str = "", depth: int = 0) -> list[str]:
    found = []
    for name in dir(module):
        if name[:1] == "_" or name in _LEFT_OUT or depth > 3:
            continue
        value = getattr(module, name, None)
        if isinstance(value, ModuleType):
            if "tensorflow" in value.__name__:
                found += names_of(value, f"{prefix}{name}.", depth + 1)
        else:
            found.append(prefix + name)
    return found


def missing(tf: Any) -> dict[str, str]:
    """The names that treadle has not, and what it says of them."""
    found = {}
    for name in FILE.read_text().split():
        value = tf
        try:
            for part in name.split("."):
                value = getattr(value, part)
        except AttributeError as error:
            found[name] = str(error)
    return found


def report() -> None:
    import treadle.compat.v1 as tf

    gone = missing(tf)
    modules = Counter(name.rpartition(".")[0] or "tf" for name in gone)
    RESULTS.write_text(json.dumps({
        "what": "names of tensorflow.compat.v1 (TensorFlow 2.21, without Keras, tf.layers, "
        "nn.rnn_cell, tpu, lite and raw_ops) at the same path in treadle.compat.v1",
        "names": len(FILE.read_text().split()), "there": len(FILE.read_text().split()) - len(gone),
        "missing, by module": dict(modules.most_common()),
        "missing": {name: text.partition(". ")[2] for name, text in gone.items()},
    }, indent=1) + "\n")  # fmt: skip


if __name__ == "__main__":
    try:
        import tensorflow.compat.v1 as tensorflow
    except ImportError:
        report()
    else:
        FILE.write_text("\n".join(sorted(names_of(tensorflow))) + "\n")
