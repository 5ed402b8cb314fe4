"""Machine code that comes with treadle: a first call need not compile what most programs use.

A wheel has an archive for each level, a set of instructions that many processors have. Its
codes are named by the hash of an LLVM text: the code of a text serves every processor that has
the level's instructions and for which that same text is written. So nothing has to be said of
caches or versions here: where treadle writes another text, there is no code of its name, and the
text is compiled. LLVM's code generator schedules a level's instructions for no processor in
particular; beside code for the processor at hand, products and convolutions were as fast on an AMD
Zen 5 within what measurements differ. All of these texts say where sums are rounded, so results
have the same bits.

To write a text takes most of the time of finding its code. So an archive also lists which code a
name of the library stands for (`shipped_by_name`), for each record of a processor that texts were
written for. Such a list counts as long as the source files are those that wrote the texts.

Routines of one kind have much of their code in common, so all codes of an archive are compressed
together, those of like sizes side by side, in two thirds of the bytes that they need one by one. A
process that looks for the first one takes 1 to 2 ms to read them.

`python -m treadle.runtime.cpu.shipping` writes the archives; building a wheel does it
(`hatch_build.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from treadle.core.digests import digest
from treadle.core.sources import same_anywhere
from treadle.core.switches import declare, is_on
from treadle.runtime.cpu.caches import DEFAULTS
from treadle.runtime.cpu.target import Target, named
from treadle.runtime.tuning import Tuning
from treadle.version import __version__

FOLDER = Path(__file__).with_name("shipped")
LEVELS = ("x86-64-v4", "x86-64-v3", "aarch64")  # names of targets, the richest first
CODES, INDEX = "codes", "index"  # members: the codes, one after the other; their names and sizes
_DIGITS = 24  # of codes' names: some hundreds are told apart
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


def code_name(text: str) -> str:
    """Names the code of an LLVM text in an archive."""
    return digest(text, _DIGITS)


def shipped_code(text: str, target: Target) -> bytes | None:
    """The machine code of an LLVM text for a target, as `Jit` keeps it on disk; None where it was
    not shipped. A damaged archive is one that has nothing."""
    path = _path_for(target)
    return None if path is None else _codes(path).get(code_name(text))


def shipped_by_name(name: str, target: Target) -> bytes | None:
    """The machine code of the module that this treadle writes under a name for a target; None where
    it was not shipped, or only its text could tell."""
    path = _path_for(target)
    found = None if path is None else _names(path, list_name(target)).get(name)
    return None if path is None or found is None else _codes(path).get(found)


def list_name(target: Target) -> str:
    """Names the list of the modules that are written for processors like the target. Whatever
    texts depend on is part of it, and so is more: caches and the patience of threads are not, for
    routines get these as numbers."""
    return _list_for(target.tuning)


@functools.cache
def _list_for(tuning: Tuning) -> str:
    l1, l2, l3 = DEFAULTS
    record = dataclasses.replace(tuning, l1=l1, l2=l2, l3=l3, spins=0)
    return f"names {digest(str(record), _DIGITS)}"


def list_text(names: dict[str, str], codes: Sequence[str]) -> str:
    """A list of names and the codes that they stand for, after the sources that it is of.

    Codes are told by their numbers in the archive: digests are as long when compressed, and each
    list would have all of them again.
    """
    numbers = {code: number for number, code in enumerate(codes)}
    lines = (f"{numbers[code]} {name}" for name, code in names.items())
    return "\n".join([same_anywhere("runtime")[0], *lines])


def _path_for(target: Target) -> Path | None:
    """The archive for a target, if there is one and it is to be used."""
    level = level_of(target) if is_on(SWITCH.name) else None
    return None if level is None else archive_path(FOLDER, level)


def index_text(codes: Mapping[str, bytes]) -> str:
    """The names of codes and their sizes, in the order in which they are stored."""
    return "\n".join(f"{name} {len(data)}" for name, data in codes.items())


def codes_of(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """The codes of an archive by their names.

    Raises:
        KeyError, ValueError, zipfile.BadZipFile, zlib.error: the archive is damaged.
    """
    data, found, place = archive.read(CODES), dict[str, bytes](), 0
    for line in archive.read(INDEX).decode().splitlines():
        name, size = line.split()
        found[name] = data[place : place + int(size)]
        place += int(size)
    return found


@functools.cache
def _codes(path: Path) -> dict[str, bytes]:
    archive = _archive(path)
    try:
        return {} if archive is None else codes_of(archive)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error):
        return {}


def _read(path: Path, name: str) -> bytes | None:
    try:
        archive = _archive(path)
        return None if archive is None else archive.read(name)
    except (KeyError, OSError, zipfile.BadZipFile, zlib.error):
        return None


@functools.cache
def _names(path: Path, name: str) -> dict[str, str]:
    """A list of an archive; nothing where other source files wrote it."""
    data = _read(path, name)
    if data is None:
        return {}
    made_by, *lines = data.decode(errors="replace").split("\n")
    if made_by != same_anywhere("runtime")[0] or not _are_untouched(path):
        return {}
    codes = list(_codes(path))
    parts = (line.split(" ", 1) for line in lines)
    return {name: codes[int(number)] for number, name in parts if codes}


def _are_untouched(path: Path) -> bool:
    """Whether no source file changed since an archive was written, or since treadle was installed
    together with it: the last file of an installation is its record."""
    package = Path(__file__).parents[2]
    record = package.with_name(f"treadle-{__version__}.dist-info") / "RECORD"
    return same_anywhere("runtime")[1] <= max(_time_of(path), _time_of(record))


def _time_of(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@functools.cache
def _archive(path: Path) -> zipfile.ZipFile | None:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile):
        return None
