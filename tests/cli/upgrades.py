"""`treadle upgrade` over programs of others and over the snippets of the seeds.

``python -m tests.cli.upgrades --seeds FOLDER --strangers FOLDER ... --out FILE`` writes what became
of them (`docs/results/upgrade.json`): how many programs nobody has to touch, and what is asked of a
person. Texts of others are not kept. With ``--run SECONDS`` the programs of TensorFlow 1 that
nobody has to touch are run, too.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from treadle.cli.rewriting import V1, rewritten
from treadle.version import __version__

_USES = re.compile(r"\btf[ce]?\.|tensorflow|keras", re.IGNORECASE)
_NOT_CODE = re.compile(r"^[^#'\"]*[\u3000-\u9fff]")


def snippets(text: str) -> Iterator[str]:
    """The longest runs of lines of an article that are Python and use TensorFlow. Names are bound
    as the articles have them."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = 0
    while start < len(lines):
        end = next((i for i in range(start, len(lines)) if _NOT_CODE.match(lines[i])), len(lines))
        while end > start and not _is_python("\n".join(lines[start:end])):
            end -= 1
        found = "\n".join(lines[start:end])
        if _USES.search(found):
            eager = "import tensorflow.contrib.eager as tfe\n" * ("tfe." in found)
            yield f"import tensorflow as tf\n{eager}{found}\n"
        start = max(end, start + 1)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def outcome(sources: Iterable[str]) -> dict[str, Any]:
    """What became of some programs."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for source in sources:
        done = rewritten(source)
        if not done.api and not done.remarks:
            continue
        counts["programs"] += 1
        counts["edits"] += len(done.edits)
        counts[done.api or "left as they are"] += 1
        counts["with nothing for a person"] += not done.remarks
        reasons.update({r.reason.partition(": ")[0] for r in done.remarks})
        if done.api:
            ast.parse(done.text)
    return {**counts, "programs by what a person must look at": dict(reasons.most_common())}


def programs(folder: Path) -> Iterator[str]:
    """The programs below a folder that name TensorFlow."""
    for file in sorted(folder.rglob("*.py")):
        try:
            with tokenize.open(file) as opened:
                text = opened.read()
        except (SyntaxError, UnicodeDecodeError):
            continue
        if re.search(r"^\s*(import|from) +(tensorflow|keras)\b", text, re.M):
            yield text


def runs(sources: Iterable[str], seconds: float) -> dict[str, int]:
    """How the programs end that need nothing of a person: by 0, or by the type of an exception."""
    found: Counter[str] = Counter()
    for source in sources:
        done = rewritten(source)
        if done.api != V1 or done.remarks or not re.search(r"\.run\(|\.eval\(", source):
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "program.py")
            path.write_text(done.text)
            try:
                ended = subprocess.run(
                    [sys.executable, str(path)], cwd=folder, timeout=seconds, text=True,
                    capture_output=True, stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                found[f"goes on after {seconds:.0f} s"] += 1
                continue
        last = (ended.stderr.strip().splitlines() or [""])[-1]
        found["ran" if ended.returncode == 0 else last[:100]] += 1
    return dict(found.most_common())


def _name(folder: Path) -> str:
    """The repository of a folder ``owner+name``, and the folder in it."""
    first = next((i for i, part in enumerate(folder.parts) if "+" in part), -1)
    return "/".join(folder.parts[first:]).replace("+", "/")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--strangers", type=Path, nargs="*", default=[])
    parser.add_argument("--run", type=float, metavar="SECONDS")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found: dict[str, Any] = {"treadle": __version__}
    if options.seeds:
        found["seeds"] = {
            file.name[:3]: outcome(snippets(file.read_text()))
            for file in sorted(options.seeds.glob("*.txt"))
        }
    found["strangers"] = {_name(f): outcome(programs(f)) for f in options.strangers}
    if options.run:
        for folder in options.strangers:
            found["strangers"][_name(folder)]["runs"] = runs(programs(folder), options.run)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
