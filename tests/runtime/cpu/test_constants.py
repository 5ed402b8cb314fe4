"""Constants of the compiler say why no machine changes them; all others come from its record."""

import re
from pathlib import Path

import pytest

import treadle

RUNTIME = Path(treadle.__file__).parent / "runtime"
FOLDERS = "fusion", "cpu/matmul", "cpu/convolution", "cpu/depthwise", "cpu/nest", "cpu/routines"
SINGLE = "cpu/rows.py", "cpu/strips.py", "cpu/threads.py", "cpu/thread_count.py"
NUMBER = re.compile(r"_?[A-Z][A-Z0-9_]+(: int)? = \(?-?\d")
BYTES = re.compile(r"_?[A-Z][A-Z0-9_]+ = \d+ << [12]0\b.*\bbytes\b")  # kilobytes, megabytes


def unexplained(lines: list[str]) -> list[str]:
    """Numbers without a comment in their line, or above their group."""
    found, explained = [], False
    for line in lines:
        if NUMBER.match(line):
            if not (explained or "#" in line):
                found.append(line)
        else:  # a comment, or the end of a group
            explained = line.startswith("#")
    return found


FILES = [f for folder in FOLDERS for f in sorted((RUNTIME / folder).glob("*.py"))]
FILES += [RUNTIME / name for name in SINGLE]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(RUNTIME)))
def test_constants_say_what_they_are(file: Path) -> None:
    assert not unexplained(file.read_text().splitlines())


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(RUNTIME)))
def test_sizes_of_caches_come_from_the_record(file: Path) -> None:
    assert not [line for line in file.read_text().splitlines() if BYTES.match(line)]


def test_the_rule_itself() -> None:
    assert unexplained(["BYTES = 4096"]) == ["BYTES = 4096"]
    assert not unexplained(["AA = 64  # a line", "# No machine changes.", "BB = 1", "CC = 2"])
    assert unexplained(["# Above.", "AA = 1", "", "BB = 2"]) == ["BB = 2"]
    assert BYTES.match("FRAME = 256 << 10  # bytes") and not BYTES.match("STEPS = 1 << 10")
