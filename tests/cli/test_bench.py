import json
import sys

import pytest

import treadle as td
from treadle.bench import timing
from treadle.cli import bisect_passes, main
from treadle.passes import disabled_passes, switches

pytestmark = pytest.mark.thorough

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def files(tmp_path):
    return tmp_path / "bench.json", tmp_path / "bench.png"


def bench(files):
    return main(["bench", "--only", "scalar", "--json", str(files[0]), "--plot", str(files[1])])


def test_table_json_and_plot(files, capsys):
    assert bench(files) == 0
    shown = capsys.readouterr().out
    assert "scalar loop" in shown and "MLP step" not in shown
    workload = json.loads(files[0].read_text())["workloads"]["scalar loop"]
    assert workload["speedup"] > 1
    assert workload["eager_us"] / workload["graph_us"] == pytest.approx(workload["speedup"])
    assert files[1].read_bytes().startswith(PNG)


def test_no_file_is_written_unasked(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--only", "scalar"]) == 0
    assert "scalar loop" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_json_is_still_written(files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert bench(files) == 0
    assert "pip install 'treadle[plot]'" in capsys.readouterr().out
    assert files[0].exists() and not files[1].exists()


@pytest.mark.thorough
def test_bisect_passes_times_the_workload_without_each_pass(files, capsys, monkeypatch):
    monkeypatch.setattr(timing, "SECONDS", 0.002)  # of some seventy workloads, three times each
    arguments = ["bench", "--only", "scalar", "--json", str(files[0]), "--bisect-passes"]
    assert main(arguments) == 0
    assert "scalar loop: passes and mechanisms switched off one by one" in capsys.readouterr().out
    rows = json.loads(files[0].read_text())["passes"]["scalar loop"]
    assert list(rows) == ["none", *(s.name for s in switches() if not s.required), "all"]
    assert all(row["graph_us"] > 0 and row["first_call_ms"] > 0 for row in rows.values())


def test_bisect_passes_switches_exactly_one_pass_off(monkeypatch):
    seen = []

    def workload():
        def identity(x):
            seen.append(disabled_passes())
            return x + 1.0

        return identity, (td.constant(1.0),)

    monkeypatch.setattr(
        bisect_passes, "seconds_per_call", lambda calls, rounds: dict.fromkeys(calls, 1.0)
    )
    bisect_passes.contributions(workload)
    alone = [frozenset([s.name]) for s in switches() if not s.required]
    every = [frozenset(), *alone, frozenset(["all"])]
    assert list(dict.fromkeys(seen)) == every
