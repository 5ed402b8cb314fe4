"""Writes docs/supported_syntax.md: ``PYTHONPATH=src:. python docs/make_syntax.py``."""

from __future__ import annotations

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


def page() -> str:
    """The text of docs/supported_syntax.md."""
    parts = [HEAD]
    for construct in dict.fromkeys(c.construct for c in CASES):
        inside = [c for c in CASES if c.construct == construct]
        functions = list(dict.fromkeys(c.fn for c in inside))
        about = (sys.modules[inside[0].fn.__module__].__doc__ or "").strip()
        parts.append(f"\n## {construct.capitalize()}\n\n{about}\n")
        parts.append("| what | Python values | tensors | gradients |\n|---|---|---|---|")
        parts += [row([c for c in inside if c.fn is fn]) for fn in functions]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("supported_syntax.md").write_text(page())
