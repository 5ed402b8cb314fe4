"""Constants of the compiler say why no machine changes them; all others come from its record."""

import re
from collections.abc import Callable
from pathlib import Path

import treadle

PACKAGE = Path(treadle.__file__).parent
LIBRARY = "matmul", "convolution", "depthwise", "nest", "routines"
FOLDERS = "graph/passes", "runtime/passes", "runtime/fusion", *(f"runtime/cpu/{f}" for f in LIBRARY)
SINGLE = "rows", "strips", "threads", "thread_count"
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


FILES = [f for folder in FOLDERS for f in sorted((PACKAGE / folder).glob("*.py"))]
FILES += [PACKAGE / f"runtime/cpu/{name}.py" for name in SINGLE]


def lines_that(are_wrong: Callable[[list[str]], list[str]]) -> list[str]:
    """The wrong lines of all files."""
    return [
        f"{file.relative_to(PACKAGE)}: {line}"
        for file in FILES
        for line in are_wrong(file.read_text().splitlines())
    ]


def test_constants_say_what_they_are() -> None:
    assert not lines_that(unexplained) and len(FILES) > 100


def test_sizes_of_caches_come_from_the_record() -> None:
    assert not lines_that(lambda lines: [line for line in lines if BYTES.match(line)])


def test_the_rule_itself() -> None:
    assert unexplained(["BYTES = 4096"]) == ["BYTES = 4096"]
    assert not unexplained(["AA = 64  # a line", "# No machine changes.", "BB = 1", "CC = 2"])
    assert unexplained(["# Above.", "AA = 1", "", "BB = 2"]) == ["BB = 2"]
    assert BYTES.match("FRAME = 256 << 10  # bytes") and not BYTES.match("STEPS = 1 << 10")
