"""The list of tests that take long."""

import re
from itertools import groupby

from tests.long_tests import LONG, ROOT, listed, measured, renewed


def test_the_mean_of_the_cases_decides():
    lines = [f"{LONG * 1.5} a.py::f[x y]\n", f"{LONG * 0.1} a.py::f[1]\n", f"{LONG * 2} a.py::g\n"]
    assert measured(lines) == {"a.py::f": LONG * 0.8, "a.py::g": LONG * 2}
    assert measured([*lines, "9.0 a.py::f[1]\n"])["a.py::f"] == LONG * 0.8  # the same case again
    assert measured([*lines, "9.0 a.py::f[2]\n"])["a.py::f"] == LONG * 0.8  # made what all share


def test_what_is_not_measured_stays_and_what_is_gone_goes():
    known = ["tests/test_docs.py::a", "tests/test_docs.py::b", "tests/gone.py::c"]
    seconds = {"tests/test_docs.py::b": LONG / 2, "tests/test_docs.py::d": LONG * 2}
    assert renewed(known, seconds) == ["tests/test_docs.py::a", "tests/test_docs.py::d"]


def test_every_test_of_the_list_exists():
    missing = []
    for file, names in groupby(sorted(listed()), lambda name: name.split("::")[0]):
        text = (ROOT / file).read_text() if (ROOT / file).exists() else ""
        known = set(re.findall(r"^ *(?:def|class) (\w+)", text, re.MULTILINE))
        missing += [name for name in names if not set(name.split("::")[1:]) <= known]
    assert not missing, "remove them from tests/long_tests.txt"
