"""Two checkouts side by side: here this one twice, so that only the machine differs."""

import json
import sys

import pytest

from benchmarks import then_and_now
from benchmarks.process import ROOT
from benchmarks.then_and_now import Side, parse, rows

NAMES = ["call, 1 tensor", "first call, mlp step, warm cache"]


@pytest.mark.thorough
def test_a_checkout_beside_itself(tmp_path, monkeypatch, capsys):
    out = tmp_path / "times.json"
    arguments = [str(ROOT), *NAMES, "--rounds", "1", "--seconds", "0.01", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["then_and_now", *arguments])
    then_and_now.main()
    report = json.loads(out.read_text())
    assert list(report["workloads"]) == NAMES
    for row in report["workloads"].values():
        assert 0 < row["least then_us"] <= row["then_us"]
        assert 0 < row["least now_us"] <= row["now_us"]
    assert all(name in capsys.readouterr().out for name in NAMES[:1])


def test_rows_are_medians_and_least_times(tmp_path):
    then, now = Side(ROOT, str(tmp_path)), Side(ROOT, str(tmp_path))
    assert then.places == now.places and set(NAMES) <= set(then.places)
    then.best, now.best = {"work": [4.0, 2.0, 3.0]}, {"work": [6.0, 1.0, 8.0]}
    ((name, row),) = rows(then, now)
    assert name == "work"
    assert (row["then_us"], row["now_us"], row["then / now"]) == (3.0, 6.0, 0.5)
    assert row["least then / now"] == 2.0


def test_unknown_workloads_are_refused(tmp_path):
    with pytest.raises(SystemExit):
        then_and_now.compare(parse([str(ROOT), "no such workload"]))
