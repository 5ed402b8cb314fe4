"""Runs programs of others and says what became of them.

    python -m tests.strangers.run --mirrors FOLDER --outcome stops [--limit 60] [--write]
    python -m tests.strangers.run --mirrors FOLDER --add OWNER/NAME:FILE ... [--write]
    python -m tests.strangers.run PROGRAM.py NOTEBOOK.ipynb ...

Each program is run by `parts` in a process of its own, with small data and few steps. With
``--tensorflow PYTHON``, an interpreter that has TensorFlow, programs of which a part fails are run
there in the same way, and parts that fail there, too, do not count. Then a program

- *runs*, where no part that counts fails;
- *stops*, where one does;
- *runs until the time limit*, where none did until then;
- *cannot be told here*, where half of its parts need what is not here: data, packages, names that
  such parts would have made.

A program that runs until the time limit is run with TensorFlow, too: the results say how far either
has come in the same processor time, and what each part costs with it.

``--mirrors`` takes the programs of the results, by default those that stopped; ``--write`` puts
each new outcome there when it is known. Programs that others do not have are found by nobody: they
are left as they are.
With ``--values`` each program is run with TensorFlow, too, and `values` compares what its names
mean with either library.
``--add`` runs programs of repositories that are not in the results; ``--write`` adds them.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.strangers.values import differences

ROOT = Path(__file__).parents[2]
PARTS = Path(__file__).with_name("parts.py")
RESULTS = ROOT / "docs" / "results" / "strangers_tensorflow_programs.json"
NOT_HERE = re.compile(
    r"(ModuleNotFoundError|ImportError|NameError|OSError: get_file|URLError|FileNotFoundError)\b"
)
OUTCOMES = ("runs", "stops", "runs until the time limit", "cannot be told here")


@dataclass
class Outcome:
    """What became of a program.

    Attributes:
        parts: how many there are.
        failed: how many of them failed, for whatever reason.
        stops_at: the errors of those that count.
        compared: of a program that runs until the time limit, `progress` with either library.
        differs: the names whose values are not TensorFlow's; None where that was not asked.
    """

    outcome: str
    parts: int
    failed: int
    stops_at: list[str]
    compared: dict[str, Any] = field(default_factory=dict)
    differs: list[str] | None = None


def outcome_of(
    program: Path, limit: int, tensorflow: str | None = None, root: Path | None = None,
    values: bool = False,
) -> Outcome:  # fmt: skip
    """Run a program, with TensorFlow too where a part fails and an interpreter for it is given.

    Args:
        program: the file.
        limit: seconds of processor time.
        tensorflow: the interpreter.
        root: the folder of its repository, whose packages it may import.
        values: whether to compare what its names mean, too.
    """
    found, there = _run(program, limit, sys.executable, "treadle", root, values), None
    if tensorflow is not None and (values or _wrong(found) or found["limit"]):
        there = _run(program, limit + 15, tensorflow, "tensorflow", root, values)
    return judged(found, there, values)


def judged(
    found: dict[str, Any], there: dict[str, Any] | None, values: bool = False
) -> Outcome:
    """What became of a program, of which `parts` wrote `found` with treadle, and with TensorFlow
    what is `there`."""
    errors, wrong, compared = _errors(found), _wrong(found), {}
    if there is not None:
        refused = _errors(there)
        if found["limit"]:
            compared = {"treadle": progress(found), "tensorflow": progress(there)}
        untold = refused.keys() | (wrong.keys() - _reached(there) if there["limit"] else set())
        wrong = {i: error for i, error in wrong.items() if i not in untold}
    stops_at = sorted({error.split("\n")[0][:120] for error in wrong.values()})
    missing = len(errors) - len(wrong)
    if wrong:
        name = "stops"
    elif missing * 2 > found["parts"]:
        name = "cannot be told here"
    else:
        name = "runs until the time limit" if found["limit"] else "runs"
    differs = differences(found, there) if values and there is not None else None
    return Outcome(name, found["parts"], len(errors), stops_at, compared, differs)


def progress(found: dict[str, Any]) -> dict[str, Any]:
    """How far a program came: the seconds of its parts, and of the one that was not finished with
    the lines that this one had printed."""
    told = {"seconds": [part["seconds"] for part in found["list"] if "seconds" in part]}
    if found["limit"]:
        told |= {key: found[key] for key in ("unfinished", "printed") if key in found}
    return told


def _wrong(found: dict[str, Any]) -> dict[int | str, str]:
    """The errors that are not for want of data or packages."""
    return {i: error for i, error in _errors(found).items() if not NOT_HERE.match(error)}


def _reached(found: dict[str, Any]) -> set[int | str]:
    """The parts that a program came to, by their names or places: of others nothing is known."""
    return {part.get("name", i) for i, part in enumerate(found["list"])}


def _errors(found: dict[str, Any]) -> dict[int | str, str]:
    """The errors of parts by their names, or by their places where they have none."""
    parts = enumerate(found["list"])
    return {part.get("name", i): part["error"] for i, part in parts if "error" in part}


def _run(
    program: Path, limit: int, python: str, library: str, root: Path | None, values: bool = False
) -> dict[str, Any]:
    """What `parts` writes; an error that is no part's is one of a single part.

    The program runs in a folder of its own, which shows the files that are beside it.
    """
    own = {"STRANGERS_LIBRARY": library, "STRANGERS_LIMIT": str(limit), "MPLBACKEND": "Agg"}
    own |= {"STRANGERS_VALUES": "1", "PYTHONHASHSEED": "0"} if values else {}
    paths = [str(ROOT / "src")] if library == "treadle" else []
    paths += [str(folder) for folder in (root, root and root / "src") if folder is not None]
    own["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    own |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"} if python else {}
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "result.json"
        for beside in program.parent.iterdir() if root is not None else ():
            (Path(folder) / beside.name).symlink_to(beside)
        # Not as a module: programs may have a package of their own that is called tests.
        command = [python, str(PARTS), str(program), str(written)]
        done = subprocess.run(
            command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
        )
        if written.exists():
            found: dict[str, Any] = json.loads(written.read_text())
            return found
    last = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
    return {"parts": 1, "limit": False, "list": [{"error": last}]}


# -- programs of repositories ----------------------------------------------------------------------


def checked_out(mirrors: Path, repository: str, commit: str | None, into: Path) -> Path | None:
    """The files of a repository, from a bare copy or a folder ``owner+name``; None without one."""
    name = repository.replace("/", "+", 1)
    source = next((p for p in (mirrors / name / "repo", mirrors / name) if p.is_dir()), None)
    if source is None:
        return None
    git = next((p for p in (source / ".git", source) if (p / "HEAD").exists()), None)
    if git is None:
        return source
    target = into / name
    for wanted in filter(None, (commit, "HEAD")):
        if target.exists() or _written(git, wanted, target):
            return target
    return None


def _written(git: Path, commit: str, target: Path) -> bool:
    """Write the files of a commit, but those that the copy lacks. False: it has no such commit."""

    def told(*command: str, given: bytes = b"") -> bytes:
        call = ["git", "--git-dir", str(git), *command]
        return subprocess.run(call, input=given, capture_output=True, check=False).stdout

    entries = [e.split("\t", 1) for e in told("ls-tree", "-rz", commit).decode().split("\0") if e]
    if not entries:
        return False
    names = [about.split()[2] for about, _ in entries]
    contents = io.BytesIO(told("cat-file", "--batch", given="\n".join(names).encode()))
    for _, path in entries:
        head = contents.readline().split()
        if head[1] == b"missing":
            continue
        data = contents.read(int(head[2]))
        contents.read(1)
        if head[1] == b"blob":
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return True


def program_in(folder: Path, file: str) -> Path | None:
    """A program of a repository; the results leave out endings of some names."""
    names = (file, f"{file}.ipynb", f"{file}.py")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def wanted(records: list[dict[str, Any]], outcome: str, match: str) -> Iterator[dict[str, Any]]:
    """The records with an outcome whose repository and file hold a text."""
    for record in records:
        if record["outcome"] == outcome and match in f"{record['repository']}/{record['file']}":
            yield record


def new_record(mirrors: Path, program: str, known: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a program that is not among those that are known, without its outcome.

    Raises:
        ValueError: it is.
    """
    repository, _, file = program.partition(":")
    if any((r["repository"], r["file"]) == (repository, file) for r in known):
        raise ValueError(f"{program} is in the results: leave --add out to run it again")
    source = mirrors / repository.replace("/", "+", 1) / "repo"
    told = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    return {"repository": repository, "commit": told.stdout.strip(), "file": file}


def update(results: dict[str, Any], record: dict[str, Any], found: Outcome, today: str) -> None:
    """Put an outcome into the results: into the record, which may be new, and into their counts."""
    if "outcome" in record:
        record |= {"before": record["outcome"], "run_again": today}
    else:
        record["added"] = today
        results["list"].append(record)
    record |= {
        "outcome": found.outcome, "parts": found.parts, "parts_that_failed": found.failed,
        "stops_at": found.stops_at,
    }  # fmt: skip
    for key, told in (("compared", found.compared or None), ("differs", found.differs)):
        record.pop(key, None)
        if told is not None:
            record[key] = told
    count = Counter(program["outcome"] for program in results["list"])
    results |= {
        "date": today, "programs": len(results["list"]),
        "run": count["runs"], "stop": count["stops"],
        "run_until_the_time_limit": count["runs until the time limit"],
        "cannot_be_told_here": count["cannot be told here"],
    }  # fmt: skip
    reasons = (p["stops_at"] for p in results["list"] if p["outcome"] == "stops")
    results["stop_at"] = dict(Counter(r for some in reasons for r in some).most_common())


def _written_whole(results: dict[str, Any]) -> None:
    """Write the results; who is interrupted meanwhile has them as they were."""
    part = RESULTS.with_name(f"{RESULTS.name}.part")
    part.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    part.replace(RESULTS)


def run_records(mirrors: Path, options: argparse.Namespace) -> None:
    """Run programs of repositories and say what became of each. With ``--write`` it is in the
    results at once: those of a run of hours that is interrupted are not lost."""
    results = json.loads(RESULTS.read_text())
    today = datetime.date.today().isoformat()
    known = results["list"]
    records = [new_record(mirrors, program, known) for program in options.add] or list(
        wanted(known, options.outcome, options.match)
    )
    with tempfile.TemporaryDirectory() as folder:
        for record in records:
            place = checked_out(mirrors, record["repository"], record.get("commit"), Path(folder))
            program = place and program_in(place, record["file"])
            name = f"{record['repository']} {record['file']}"
            if program is None:
                print(f"{name}: not here", flush=True)
                continue
            found = outcome_of(program, options.limit, options.tensorflow, place, options.values)
            print(f"{name}: {found}", flush=True)
            update(results, record, found, today)
            if options.write:
                _written_whole(results)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--mirrors", type=Path)
    parser.add_argument("--add", nargs="+", default=[], metavar="OWNER/NAME:FILE")
    parser.add_argument("--outcome", choices=OUTCOMES, default="stops")
    parser.add_argument("--match", default="", help="only programs whose name holds this")
    parser.add_argument("--limit", type=int, default=60, help="seconds of processor time")
    parser.add_argument("--tensorflow", help="a Python interpreter that has TensorFlow")
    parser.add_argument("--values", action="store_true", help="compare those of names, too")
    parser.add_argument("--write", action="store_true", help="after each program")
    options = parser.parse_args(arguments)
    for program in options.programs:
        print(program, outcome_of(program, options.limit, options.tensorflow, None, options.values))
    if options.mirrors is not None:
        run_records(options.mirrors, options)


if __name__ == "__main__":
    main()
