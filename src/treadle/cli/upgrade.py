"""`treadle upgrade`: rewrite programs for TensorFlow 1 and 2 to treadle."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shutil
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treadle.cli.errors import UsageError
from treadle.cli.rewriting import Rewritten, rewritten
from treadle.train.atomic import NewFile


def run(options: argparse.Namespace) -> None:
    """Show what changes, or write it to ``--out``; tell what a person has to look at."""
    path, out = options.path, options.out
    if not path.exists():
        raise UsageError(f"there is no {path}")
    if out is not None and out.resolve() == path.resolve() and not path.is_file():
        raise UsageError(f"--out {out} is the folder itself: give another one")
    found: dict[str, Rewritten] = {}
    for file, name in _files(path):
        read = _read(file)
        if read is None:
            print(f"{name}: no text, left as it is")
            continue
        source, encoding = read
        found[str(name)] = done = rewritten(source)
        if out is None:
            print(_difference(source, done.text, str(name)), end="")
        else:
            _write(out if path.is_file() else out / name, done.text, encoding)
    if out is not None and path.is_dir():
        _copy_others(path, out)
    for shown, done in found.items():
        _tell(shown, done)
    if options.report is not None:
        _write(options.report, json.dumps({n: told(d) for n, d in found.items()}, indent=1) + "\n")


def told(done: Rewritten) -> dict[str, Any]:
    """A rewritten program as data."""
    return {
        "api": done.api, "edits": len(done.edits), "remarks": [r._asdict() for r in done.remarks]
    }


def _files(path: Path) -> Iterator[tuple[Path, Path]]:
    """The programs below a path, and their names."""
    if path.is_file():
        yield path, Path(path.name)
        return
    for file in sorted(path.rglob("*.py")):
        yield file, file.relative_to(path)


def _read(file: Path) -> tuple[str, str] | None:
    """The text of a program and the encoding that it names; None where it is no text."""
    try:
        with tokenize.open(file) as opened:
            return opened.read(), opened.encoding
    except (SyntaxError, UnicodeDecodeError):
        return None


def _write(path: Path, text: str, encoding: str = "utf-8") -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = NewFile(str(path))
        try:
            new.file.write(text.replace("\n", os.linesep).encode(encoding))
            new.close()
        finally:
            new.discard()
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _copy_others(path: Path, out: Path) -> None:
    """Copy the files that are no programs, so that the new folder is whole."""
    inside = out.resolve()
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix != ".py" and inside not in file.resolve().parents:
            target = out / file.relative_to(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def _difference(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _tell(name: str, done: Rewritten) -> None:
    if not done.api and not done.remarks:
        return
    count = len(done.remarks)
    wants = "nothing" if not count else f"{count} place{'s' * (count > 1)}"
    print(f"{name}: {done.api or 'unchanged'}, {len(done.edits)} edits, {wants} for you")
    for remark in done.remarks:
        print(f"  line {remark.line}: {remark.text}\n    {remark.reason}. {remark.advice}")
