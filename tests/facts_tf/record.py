"""Records what TensorFlow gives: ``python tests/facts_tf/record.py [group, table, parameters]``.

A group is a file of `programs/`, a table a file of `calls/`; `parameters` are those of all public
names, and `names` those of the modules of the training stack. Run it with a Python that has
tensorflow; the tests read the JSON only.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def text_of(version: str, facts: dict[str, Any]) -> str:
    """The JSON: a line for each program or function, in the order of its file."""
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in facts.items())
    return f'{{"tensorflow": {json.dumps(version)},\n{lines}}}\n'


def main(names: list[str]) -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(HERE.parents[1]))
    import tensorflow as tf

    from tests.facts_tf.calls import TABLES, facts_of
    from tests.facts_tf.names import names_of
    from tests.facts_tf.parameters import (
        names_by_signature,
        names_of_1,
        names_of_keras,
        parameters_of,
        public_names,
    )
    from tests.facts_tf.registry import GROUPS, programs, run

    tf.get_logger().setLevel("ERROR")
    wanted = names or [*GROUPS, *TABLES, "parameters", "names"]

    def write(file: str, facts: dict[str, Any]) -> None:
        (HERE / file).write_text(text_of(tf.__version__, facts))
        print(f"{file}: {len(facts)} facts from TensorFlow {tf.__version__}")

    for name in GROUPS:
        if name in wanted:
            write(f"facts/{name}.json", {k: run(fn, tf) for k, fn in programs(name).items()})
    for name in TABLES:
        if name in wanted:
            write(f"calls/{name}.json", facts_of(tf, name))
    if "parameters" in wanted:
        import keras

        facts = parameters_of(tf, public_names())
        write("parameters.json", facts)
        tf.keras = keras  # a module, where TensorFlow has an object that loads it
        of_keras = parameters_of(tf, names_of_keras(keras))
        write("parameters_keras.json", names_by_signature(of_keras))
        of_1 = parameters_of(tf, names_of_1(tf.compat.v1))
        different = {k: v for k, v in of_1.items() if facts.get(k.partition(".v1.")[2]) != v}
        write("parameters_1.json", names_by_signature(different))
    if "names" in wanted:
        write("names.json", names_of(tf))


if __name__ == "__main__":
    main(sys.argv[1:])
