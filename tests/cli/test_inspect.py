import pytest

from treadle.cli import main

TARGET = "treadle.examples.collatz:collatz"


def shown(capsys, *argv):
    assert main(["inspect", TARGET, *argv]) == 0
    return capsys.readouterr().out


def test_every_stage_in_order(capsys):
    out = shown(capsys, "--args", "int32[]")
    places = [out.index(f"{name} ──") for name in ("source", "autograph", "graph")]
    assert places == sorted(places)
    assert "def collatz(n: Any)" in out and "ag__.while_stmt" in out


def test_one_stage(capsys):
    out = shown(capsys, "--args", "int32[]", "--stage", "autograph")
    assert "ag__.while_stmt" in out
    assert "source ──" not in out


def test_long_lines_are_neither_cut_nor_wrapped(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    out = shown(capsys, "--args", "int32[]", "--stage", "source")
    assert '"""Steps of the Collatz sequence from n to 1, at most 200."""' in out


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["inspect", TARGET], "--args"),
        (["inspect", TARGET, "--args", "int32[]", "--stage", "magic"], "no stage 'magic'"),
        (["inspect", "treadle.cli.demo:nothing"], "nothing"),
        (["inspect", TARGET, "--args", "int99[]"], "int99"),
    ],
)
def test_mistakes(argv, part, capsys):
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert part in err and err.count("\n") == 1
