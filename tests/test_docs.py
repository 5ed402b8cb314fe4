"""Runs the Python of the README and the docs, and compares what it prints with what they show.

A ```python block runs after the ones before it in the same file; the ```text block that follows it
is what it prints (docs/make_outputs.py rewrites it). Under `<!-- figures vary -->` numbers are not
compared. docs/extending.md needs a C compiler, `cc`.
"""

import contextlib
import io
import linecache
import re
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from treadle.ops.loading import load_all_ops
from treadle.ops.registry import OPS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)#]+)")
NAMED_FILE = re.compile(r"`((?:\w+/)*\w+\.py)`")
VARY = "<!-- figures vary -->"


@dataclass(frozen=True)
class Example:
    line: int
    code: str
    output: str | None
    figures_vary: bool


def examples(page: str) -> list[Example]:
    found = []
    blocks = list(FENCE.finditer(page))
    for block, after in zip_longest(blocks, blocks[1:]):
        if block[1] != "python":
            continue
        between = page[block.end() : after.start()] if after else ""
        shown = after is not None and after[1] == "text" and between.strip() in ("", VARY)
        line = page.count("\n", 0, block.start()) + 1
        found.append(Example(line, block[2], after[2] if shown else None, VARY in between))
    return found


def without_figures(text: str) -> str:
    """Every number, with the padding around it and its unit of time, becomes one sign."""
    return re.sub(r" *\d[\d.,]* *((n|µ|m)?s\b)? *", " # ", text)


def without_places(text: str) -> str:
    """Lines of the page change with every edit above them, names of open dims with what ran, and
    numbers of values in kernels with how often their graph was compiled: those are counted anew."""
    values: dict[str, str] = {}
    text = re.sub(r"\bv\d+\b", lambda found: values.setdefault(found[0], f"v{len(values)}"), text)
    return re.sub(r"\bd\d+\b", "d#", re.sub(r"\.py:\d+", ".py:#", text))


def run(example: Example, names: dict[str, object], file: Path) -> str:
    """What the example prints; paths are shortened to the file's name."""
    # AutoGraph reads a function's source from its file: keep every block there, at its own lines.
    before = file.read_text() if file.exists() else ""
    file.write_text(before + "\n" * (example.line - before.count("\n")) + example.code)
    linecache.checkcache(str(file))
    code = "\n" * example.line + example.code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    return printed.getvalue().replace(str(file), file.name)


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Ops that a page adds are forgotten after it; the library's own, loaded on demand, stay."""
    load_all_ops()
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for example in examples(page.read_text()):
        actual = run(example, names, tmp_path / f"{page.stem.lower()}.py")
        expected = example.output or ""
        if example.figures_vary:
            actual, expected = without_figures(actual), without_figures(expected)
        actual, expected = (without_places(text) for text in (actual, expected))
        place = f"{page.name}, line {example.line} (docs/make_outputs.py rewrites outputs)"
        assert actual.rstrip() == expected.rstrip(), place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    assert not [link for link in LINK.findall(prose) if not (page.parent / link).exists()]


@pytest.mark.parametrize("name", ["architecture.md", "extending.md"])
def test_files_that_are_named_exist(name: str) -> None:
    folders = [ROOT / top for top in ("src", "tests", "benchmarks", "docs")]
    files = [f.as_posix() for folder in folders for f in folder.rglob("*.py")]
    files += [f.as_posix() for f in ROOT.glob("*.py")]
    named = set(NAMED_FILE.findall((ROOT / "docs" / name).read_text()))
    assert len(named) > 5
    assert not [n for n in sorted(named) if not any(f.endswith(f"/{n}") for f in files)]


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match="line 1"):
        test_examples(page, tmp_path)


def test_figures_that_vary(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "```python\nprint('took 12.5 ms')\n```\n{}\n```text\ntook {} ms\n```\n"
    page.write_text(block.format(VARY, "1,034"))
    test_examples(page, tmp_path)
    page.write_text(block.format("", "1,034"))
    with pytest.raises(AssertionError):
        test_examples(page, tmp_path)


def test_the_list_of_names_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
    written, now = (ROOT / "docs" / "api.md").read_text(), script["page"]()
    assert written == now, "run PYTHONPATH=src python docs/make_api.py"


def test_the_readme_has_examples_with_output() -> None:
    assert sum(e.output is not None for e in examples((ROOT / "README.md").read_text())) >= 4
