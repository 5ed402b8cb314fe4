"""One program, each of its statements or cells by itself, in a process of its own.

``python -m tests.strangers.parts PROGRAM RESULT`` writes what became of each part as JSON. With
``STRANGERS_LIBRARY=tensorflow`` it is TensorFlow that runs it.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import resource
import signal
import sys
import textwrap
import time
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

_COUNT = re.compile(
    r"(?m)^(\s*(?:\w*epochs?|n_?iter\w*|num_iter\w*|max_iter\w*|iterations|\w*episodes|"
    r"steps_per_epoch|training_steps|num_steps|max_steps)\s*=\s*)\d[\d_]*\b", re.I
)  # fmt: skip
_OPTION = re.compile(r"\b(epochs|num_episodes|steps_per_epoch)(\s*=\s*)\d[\d_]*\b", re.I)
_RANGE = re.compile(r"\brange\(\d{3,}\)(?=\s*:)")
_MAGIC = re.compile(r"(?m)^(\s*)[!%].*")


def parts_of(path: Path) -> list[str]:
    """The code cells of a notebook, or the statements of a module."""
    text = path.read_text(errors="replace")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines, found = text.split("\n"), []
    for statement in ast.parse(text).body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(d.lineno for d in decorators)])
        found.append("\n".join(lines[first - 1 : statement.end_lineno]))
    return found


def cut_down(part: str) -> str:
    """A part with fewer steps, and without commands of shells and notebooks."""
    if part.lstrip().startswith("%%") and not part.lstrip().startswith(("%%time", "%%capture")):
        return ""
    part = textwrap.dedent(part) if part[:1].isspace() else part
    part = re.sub(r"(?m)^(\s*[!%][^\n]*?)\\\n", r"\1 ", part)
    part = _RANGE.sub("range(12)", _MAGIC.sub(r"\1pass", part))
    return _OPTION.sub(r"\g<1>\g<2>2", _COUNT.sub(r"\g<1>2", part))


def run(path: Path, result: Path, limit: int, folder: Path) -> None:
    """Run a program and write what became of it; after `limit` seconds what has been until then."""
    if os.environ.get("STRANGERS_LIBRARY", "treadle") == "treadle":
        import treadle

        treadle.compat.as_tensorflow()
    parts, found = parts_of(path), []

    def finish(*interrupted: Any) -> None:
        done = {"parts": len(parts), "limit": bool(interrupted), "list": found}
        result.write_text(json.dumps(done, indent=1))
        os._exit(0)

    for sign in (signal.SIGXCPU, signal.SIGALRM, signal.SIGTERM):
        signal.signal(sign, finish)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 30))
    signal.alarm(limit * 4)
    main = types.ModuleType("__main__")
    main.__file__, sys.modules["__main__"], sys.argv = str(path), main, [str(path)]
    sys.path.insert(0, str(path.parent))
    warnings.simplefilter("ignore")
    from tests.strangers import small_data

    small_data.install(folder)
    main.__dict__["display"] = print
    for number, part in enumerate(parts):
        found.append(_outcome(cut_down(part), f"part {number} of {path.name}", main.__dict__))
    finish()


def _outcome(code: str, name: str, names: dict[str, Any]) -> dict[str, Any]:
    began = time.process_time()
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    error = None
    try:
        exec(compile(ast.parse(code), name, "exec"), names)
    except SystemExit as stop:
        error = f"SystemExit: {stop.code}" if stop.code else None
    except BaseException as problem:
        error = f"{type(problem).__name__}: {problem}"
    found: dict[str, Any] = {"seconds": round(time.process_time() - began, 2)}
    if error is not None:
        found |= {"error": error[:600], "trace": traceback.format_exc()[-1800:], "text": code[:900]}
    return found


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    program, written = (Path(a).resolve() for a in sys.argv[1:3])
    run(program, written, int(os.environ.get("STRANGERS_LIMIT", "60")), written.parent / "files")
