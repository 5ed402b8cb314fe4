"""Rewrites what the examples of a page print, where that changed: run it when a change of treadle
is meant to change the outputs, and read what `git diff` says of them.

    PYTHONPATH=src:. python docs/make_outputs.py docs/architecture.md ...
"""

import sys
import tempfile
from pathlib import Path

from tests.test_docs import examples, run, without_places


def rewritten(page: str, name: str) -> str:
    """The page with what its examples print now."""
    names: dict[str, object] = {"__name__": "__main__"}
    text = page
    with tempfile.TemporaryDirectory() as folder:
        for example in examples(page):
            printed = run(example, names, Path(folder) / f"{name.lower()}.py")
            shown = example.output
            if shown is None or example.figures_vary:
                continue
            if without_places(printed.rstrip()) != without_places(shown.rstrip()):
                before, after = text.split(example.code, 1)
                head, tail = after.split(f"```text\n{shown}```", 1)
                text = f"{before}{example.code}{head}```text\n{printed.rstrip()}\n```{tail}"
    return text


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(rewritten(path.read_text(), path.stem))
