"""Records the public names of Keras: ``python -m tests.keras.record_names``.

Run it with a Python that has tensorflow; the tests read ``names.json`` only.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import keras


def main() -> None:
    names = {
        module: [n for n, v in vars(getattr(keras, module)).items() if inspect.isclass(v)]
        for module in ("layers", "optimizers")
    }
    names = {module: sorted(found) for module, found in names.items()}
    path = Path(__file__).parent / "names.json"
    path.write_text(json.dumps(names, indent=1) + "\n")
    print({module: len(found) for module, found in names.items()}, keras.__version__)


if __name__ == "__main__":
    main()
