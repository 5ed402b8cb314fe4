import pytest

import treadle as td
from treadle.cli import main
from treadle.cli.target import parse_argument

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


def test_a_stage_whose_name_begins_another(capsys):
    out = shown(capsys, "--args", "i32[]", "--stage", "graph")
    assert "graph ──" in out and "graph after passes" not in out
    out = shown(capsys, "--args", "i32[]", "--stage", "graph a")
    assert "graph after passes ──" in out


def test_the_help_lists_every_stage(capsys):
    from treadle.examples.collatz import collatz

    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    listed = " ".join(capsys.readouterr().out.split())
    for name in td.inspect.stages(collatz, td.TensorSpec([], td.int32)):
        assert name in listed


def test_arguments_as_the_dumps_print_them():
    spec = parse_argument("f32[?, d0, 4]")
    assert (spec.dtype, spec.shape.as_list()) == (td.float32, [None, None, 4])
    assert parse_argument("bf16[]").dtype is td.bfloat16


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
