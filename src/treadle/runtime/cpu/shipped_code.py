"""Machine code that comes with treadle: a first call need not compile what most programs use.

A wheel has an archive for each level, a set of instructions that many processors have. Its
members are named by the hash of an LLVM text: the code of a text serves every processor that has
the level's instructions and for which that same text is written. So nothing has to be said of
caches or versions here: where treadle writes another text, there is no member of its name, and the
text is compiled. LLVM's code generator schedules a level's instructions for no processor in
particular; beside code for the processor at hand, products and convolutions were as fast on an AMD
Zen 5 within what measurements differ. All of these texts say where sums are rounded, so results
have the same bits.

`python -m treadle.runtime.cpu.shipping` writes the archives; building a wheel does it
(`hatch_build.py`).
"""

from __future__ import annotations

import functools
import hashlib
import zipfile
import zlib
from pathlib import Path

from treadle.core.switches import declare, is_on
from treadle.runtime.cpu.target import Target, named

FOLDER = Path(__file__).with_name("shipped")
LEVELS = ("x86-64-v4", "x86-64-v3", "aarch64")  # names of targets, the richest first
SWITCH = declare("shipped_code", "program", "code of the library that comes with treadle is used")


def archive_path(folder: Path, level: str) -> Path:
    """The archive of a level's code, which is there where treadle was built as a wheel."""
    return folder / f"{level}.zip"


def level_of(target: Target) -> str | None:
    """The level whose code runs on the target and fills its vectors, or None."""
    return next((level for level in LEVELS if _serves(named(level), target)), None)


def _serves(level: Target, target: Target) -> bool:
    return (
        "linux" in target.triple
        and (level.arch, level.vector_bits, level.opt)
        == (target.arch, target.vector_bits, target.opt)
        and level.features <= target.features
    )


def member(text: str) -> str:
    """Names the code of an LLVM text in an archive."""
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def shipped_code(text: str, target: Target) -> bytes | None:
    """The machine code of an LLVM text for a target, as `Jit` keeps it on disk; None where it was
    not shipped. A damaged archive is one that has nothing."""
    level = level_of(target) if is_on(SWITCH.name) else None
    if level is None:
        return None
    try:
        archive = _archive(archive_path(FOLDER, level))
        return None if archive is None else archive.read(member(text))
    except (KeyError, OSError, zipfile.BadZipFile, zlib.error):
        return None


@functools.cache
def _archive(path: Path) -> zipfile.ZipFile | None:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile):
        return None
