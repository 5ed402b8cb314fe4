import json
import sys

import pytest

from treadle.cli import main

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


def test_without_matplotlib_the_json_is_still_written(files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert bench(files) == 0
    assert "pip install 'treadle[plot]'" in capsys.readouterr().out
    assert files[0].exists() and not files[1].exists()
