"""The table of docs/seeds.md: every row is whole, and what it names is there."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE = re.findall(r"^\| (\d+) \|(.*)\|$", (ROOT / "docs/seeds.md").read_text(), re.M)
ROWS = [(article, *(cell.strip() for cell in rest.split("|"))) for article, rest in TABLE]
LINK = re.compile(r"\[(\S+)\]\(\.\./(examples|tests)/\1\)")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_row(row: tuple[str, ...]) -> None:
    _, what, module, example, tests = row
    assert what
    importlib.import_module(f"treadle.{module.strip('`')}")
    for cell, folder in ((example, "examples"), (tests, "tests")):
        found = LINK.fullmatch(cell)
        assert found is not None and found[2] == folder
        assert (ROOT / folder / found[1]).is_file()


def test_every_article_and_every_program_has_a_row() -> None:
    assert {row[0] for row in ROWS} == {"000", "001", "002", "003", "004"}
    shown = {found[1] for row in ROWS if (found := LINK.fullmatch(row[3]))}
    programs = {f"seeds/{p.name}" for p in (ROOT / "examples/seeds").glob("*.py")}
    assert programs == {name for name in shown if name.startswith("seeds/")}
