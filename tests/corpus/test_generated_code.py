"""The generated code of the whole corpus is importable Python that gives the same results."""

from __future__ import annotations

import copy
import inspect
import linecache
import subprocess
import sys
import textwrap

import pytest

import treadle as td
from tests.corpus.test_corpus import CASES
from treadle.autograph import operators

FUNCTIONS = list({c.fn: c for c in CASES}.values())


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda c: c.fn.__name__)
def test_runs_by_itself(case):
    name, text = f"<corpus {case.fn.__name__}>", td.autograph.to_code(case.fn)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = dict(case.fn.__globals__, ag__=operators)
    exec(compile(text, name, "exec"), namespace)
    found = namespace[case.fn.__name__](*copy.deepcopy(case.args))
    assert found == case.fn(*copy.deepcopy(case.args))


def test_length():
    """All in all: under 1.5 times the lines that the users wrote."""
    written = made = 0
    for case in FUNCTIONS:
        source = textwrap.dedent(inspect.getsource(case.fn))
        written += _count(source[source.index("def ") :])
        made += _count(td.autograph.to_code(case.fn))
    assert made <= 1.5 * written


def _count(text):
    return sum(bool(line.strip()) for line in text.splitlines())


def test_ruff(tmp_path):
    """Pyflakes and pycodestyle; names of the corpus files are not defined here."""
    path = tmp_path / "generated.py"
    path.write_text("\n\n".join(td.autograph.to_code(c.fn) for c in FUNCTIONS))
    rules = ["--select", "E4,E7,E9,F", "--ignore", "F821,F811,E731,E741,E743"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", *rules, str(path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
