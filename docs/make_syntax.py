"""Writes docs/supported_syntax.md: ``PYTHONPATH=src:. python docs/make_syntax.py``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.corpus.test_corpus import CASES, Case

HEAD = """# Supported syntax

Each function of `tests/corpus/` with the ways in which the tests run it. In every one the result
equals plain Python's. `PYTHONPATH=src:. python docs/make_syntax.py` writes this page.

- Python values: converted by AutoGraph and called with Python values.
- Tensors: called with eager tensors, and traced and compiled by `td.function`.
- Gradients: the compiled gradient equals finite differences.
"""


def row(cases: list[Case]) -> str:
    name = cases[0].fn.__name__
    tensors = "yes" if any(c.tensors for c in cases) else "-"
    gradients = "yes" if any(c.gradients for c in cases) else "-"
    return f"| {name.replace('_', ' ')} | yes | {tensors} | {gradients} |"


NEWER = Path(__file__).parents[1] / "tests" / "corpus" / "newer"


def newer(path: Path) -> list[str]:
    """The section of a file that this Python may not be able to read."""
    text = path.read_text()
    about = text.split('"""')[1].strip()
    parts = [f"\n## Python 3.{path.stem.removeprefix('python3')}\n\n{about}\n"]
    parts.append("| what | Python values | tensors | gradients |\n|---|---|---|---|")
    for kind, name in re.findall(r"^@(case|python|smooth)\(.*\ndef (\w+)", text, re.MULTILINE):
        tensors = "-" if kind == "python" else "yes"
        gradients = "yes" if kind == "smooth" else "-"
        parts.append(f"| {name.replace('_', ' ')} | yes | {tensors} | {gradients} |")
    return parts


def page() -> str:
    """The text of docs/supported_syntax.md."""
    parts = [HEAD]
    cases = [c for c in CASES if ".newer." not in c.fn.__module__]
    for construct in dict.fromkeys(c.construct for c in cases):
        inside = [c for c in cases if c.construct == construct]
        functions = list(dict.fromkeys(c.fn for c in inside))
        about = (sys.modules[inside[0].fn.__module__].__doc__ or "").strip()
        parts.append(f"\n## {construct.capitalize()}\n\n{about}\n")
        parts.append("| what | Python values | tensors | gradients |\n|---|---|---|---|")
        parts += [row([c for c in inside if c.fn is fn]) for fn in functions]
    for path in sorted(NEWER.glob("python*.py")):
        parts += newer(path)
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("supported_syntax.md").write_text(page())
