"""`treadle compile`: functions as shared objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle.cli import main

MODEL = """
import treadle as td

weight = td.Variable([[1.0], [2.0]], name="weight")


@td.function
def predict(x):
    return {"y": x @ weight}


def tell(x):
    td.print(x)
    return x
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    return str(tmp_path / "model.py")


def test_a_function(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out" / "libnet.so"
    line = ["compile", f"{model}:predict", "--args", "float32[?,2]", "--out", str(out)]
    assert main([*line, "--threads", "2", "--name", "line"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{out}: {out.stat().st_size:,} bytes for native"
    header = out.with_name("line.h")
    assert second == f"{header}: line_predict"
    assert "int line_predict(struct line_predict *call);" in header.read_text()
    assert out.read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("function", "more", "said"),
    [
        ("predict", [], "missing"),
        ("predict", ["--args", "f32[?,2]", "--target", "pdp11"], "'pdp11' is no machine"),
        ("tell", ["--args", "f32[2]"], "cannot run without Python: print runs in Python"),
        ("predict", ["--args", "f32[?,2]", "--compiler", "no-cc"], "no C compiler 'no-cc'"),
    ],
)
def test_what_is_refused(
    function: str, more: list[str], said: str, model: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "libnet.so"
    assert main(["compile", f"{model}:{function}", "--out", str(out), *more]) == 2
    error = capsys.readouterr().err
    assert error.startswith("treadle: ") and said in error
    assert not out.exists()
