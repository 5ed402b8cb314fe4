"""A session on a GPU: stages that fail or take too long leave the others."""

import json
import sys
from pathlib import Path

from benchmarks.__main__ import select
from benchmarks.gpu_session import (
    HERE,
    REHEARSED,
    WORKLOADS,
    Stage,
    missing,
    rehearsed,
    session,
    stages,
)
from benchmarks.libraries import LIBRARIES


def python(name: str, text: str, seconds: float = 60.0) -> Stage:
    return Stage(name, (sys.executable, "-c", text), seconds)


def test_what_fails_is_told_and_the_others_run(tmp_path: Path) -> None:
    found = session(
        [
            python("good", "print('fine')"),
            python("bad", "raise SystemExit('no such GPU')"),
            python("slow", "import time; print('begun', flush=True); time.sleep(600)", 3.0),
            Stage("unknown", ("no-such-program",), 5.0),
            python("path", "import treadle, tests"),
        ],
        tmp_path, 600.0,
    )  # fmt: skip
    outcomes = [r.outcome for r in found]
    assert outcomes == ["done", "failed", "cut off", "failed", "done"]
    assert "no such GPU" in found[1].words and "begun" in found[2].words
    assert "no-such-program" in found[3].words and found[0].words == ""
    told = json.loads((tmp_path / "session.json").read_text())["stages"]
    assert [s["outcome"] for s in told] == outcomes
    assert "fine" in (tmp_path / "session.txt").read_text()


def test_what_there_is_no_time_for_is_left_out(tmp_path: Path) -> None:
    found = session([python("one", "pass")], tmp_path, 1.0)
    assert [r.outcome for r in found] == ["left out"]


def test_the_stages_name_what_there_is(tmp_path: Path) -> None:
    for stage in stages(tmp_path):
        for part in stage.command:
            if part.startswith("tests/"):
                assert (HERE / part).is_file(), part
        if "--libraries" in stage.command:
            names = stage.command[stage.command.index("--libraries") + 1].split(",")
            assert all(LIBRARIES[name].on("GPU") for name in names)
    assert len(select(list(WORKLOADS), "GPU")) >= len(WORKLOADS)
    assert set(missing()) <= {"cupy-cuda13x"}
    assert sum(s.seconds for s in stages(tmp_path)[:5]) <= 420  # before what takes longest


def test_a_rehearsal_has_less_of_the_same(tmp_path: Path) -> None:
    whole = stages(tmp_path)
    less = {s.name: s for s in rehearsed(whole)}
    assert [s.name for s in whole if s.name not in less] == [
        "the machine", "names and signatures of CuPy"
    ]
    for stage in whole:
        if stage.name in less:
            path = dict(less[stage.name].environment)["PYTHONPATH"]
            assert less[stage.name].command[:3] == stage.command[:3]
            assert (Path(path) / "sitecustomize.py").is_file()
    assert len(select(list(REHEARSED), "GPU")) >= len(REHEARSED)


def test_what_a_rehearsal_finds_is_no_gpu(tmp_path: Path) -> None:
    text = """
import treadle as td
from treadle.runtime.gpu import discovery
(gpu,) = discovery.physical_gpus()
x = td.constant([1.0, 2.0])
print(gpu.name, x.device, type(x._spec.device.storage.driver).__name__)
"""
    (stage,) = rehearsed([Stage("a recorder", ("-",), 6.0, less=(sys.executable, "-c", text))])
    (found,) = session([stage], tmp_path, 600.0, "a recorder")
    told = (tmp_path / "session.txt").read_text()
    assert found.outcome == "done", told
    assert "a recorder in the place of a GPU" in told and "GPU:0 RecordingDriver" in told
    assert json.loads((tmp_path / "session.json").read_text())["device"] == "a recorder"
