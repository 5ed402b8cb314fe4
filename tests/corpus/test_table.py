"""The page of supported syntax is the corpus'."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from tests.corpus.test_corpus import CASES

DOCS = Path(__file__).parents[2] / "docs"


def test_page_is_up_to_date():
    specification = importlib.util.spec_from_file_location("make_syntax", DOCS / "make_syntax.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert (DOCS / "supported_syntax.md").read_text() == module.page(), (
        "run PYTHONPATH=src:. python docs/make_syntax.py"
    )


def test_size_and_names():
    functions = {c.fn for c in CASES}
    assert len(functions) >= 250
    assert len({(f.__module__, f.__name__) for f in functions}) == len(functions)
