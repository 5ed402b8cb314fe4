import pytest

from treadle.cli import main
from treadle.passes import switches


def test_everything_that_can_be_switched_off_is_listed(capsys):
    assert main(["passes"]) == 0
    out = capsys.readouterr().out
    for switch in switches():
        assert switch.name in out
    assert {"graph", "target", "tracing", "program", "calls"} == {s.stage for s in switches()}


@pytest.mark.parametrize(("off", "marked"), [("fusion", 1), ("fusion,common", 2), ("", 0)])
def test_what_is_off_is_marked(capsys, monkeypatch, off, marked):
    monkeypatch.setenv("TREADLE_DISABLE_PASSES", off)
    assert main(["passes"]) == 0
    assert capsys.readouterr().out.count("(off)") == marked
