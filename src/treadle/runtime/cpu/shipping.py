"""Writes the machine code that comes with treadle (`shipped_code.py`).

    python -m treadle.runtime.cpu.shipping [FOLDER]

compiles what most programs of float32 call (the pool of threads, the allocator, products and
convolutions with their register tiles) for each level. A text that depends on a processor's record
is written for the families of servers and workstations that have the level's instructions.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import llvmlite

from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.winograd_tiling import winograd_routine
from treadle.runtime.cpu.emission import object_file
from treadle.runtime.cpu.image import link
from treadle.runtime.cpu.kept_memory_code import memory_text
from treadle.runtime.cpu.library_code import routine_parts
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, most_dot_rows
from treadle.runtime.cpu.matmul.tiles import FILL, PACKERS, Tile, most_rows
from treadle.runtime.cpu.matmul.tiling import WIDE, WIDE_HEIGHT
from treadle.runtime.cpu.pool_code import pool_text
from treadle.runtime.cpu.shipped_code import (
    CODES,
    FOLDER,
    INDEX,
    LEVELS,
    archive_path,
    code_name,
    codes_of,
    index_text,
    list_name,
    list_text,
)
from treadle.runtime.cpu.target import LLVM_OPTIONS, Target, named

ELEMENT = "float"  # LLVM's name of the elements whose code is shipped
_CONVOLUTIONS = (FORWARD, TO_INPUT, TO_FILTER)
_WINDOWS = tuple((n, n) for n in (3, 5))  # of short convolutions: those that networks have
ROUTINES = (
    "matmul",
    *_CONVOLUTIONS,
    *(winograd_routine(op, window) for window in _WINDOWS for op in _CONVOLUTIONS),
)
# LLVM's names of processors whose records differ, and instructions by which a family is told.
PROCESSORS: dict[str, tuple[tuple[str, frozenset[str]], ...]] = {
    "x86-64-v4": (
        ("znver5", frozenset()),
        ("znver4", frozenset()),
        ("sapphirerapids", frozenset({"amx-tile"})),
        ("icelake-server", frozenset()),
    ),
    "x86-64-v3": (("znver3", frozenset()), ("haswell", frozenset())),
    "aarch64": (("neoverse-n1", frozenset()), ("generic", frozenset())),
}
# What compiles the texts, which archives tell in their comment.
_VERSION = " ".join([llvmlite.__version__, *LLVM_OPTIONS]).encode()
_IMPORTING = 10 * 10**9  # nanoseconds in which this process has read the source files, at most
_OLDEST = (1980, 1, 1, 0, 0, 0)  # of members: archives of the same code are the same bytes


def machine(level: str) -> Target:
    """The target that a level's code is made for, whatever system it is made on."""
    found = named(level)
    return dataclasses.replace(found, triple=f"{found.arch}-unknown-linux-gnu")


def texts(target: Target) -> Iterator[tuple[str, str]]:
    """The names and LLVM texts of the modules that are shipped, as written for a target."""
    yield "pool", pool_text(target)
    yield "memory", memory_text(target)
    heights = {v: most_rows(target, v) for v in range(1, WIDE + 1)}
    tiles = [Tile(ELEMENT, a, h + 1, v) for a in ("rows", "columns") for v in heights
             for h in range(heights[v])]  # fmt: skip
    if target.tuning.fill_rows > 1:
        # Panels are copied of at least two vectors, of three or four where tiles of four are tall
        # enough; the last one may be narrower.
        widest = WIDE - 1 if heights[WIDE] >= WIDE_HEIGHT else 2
        tiles += [
            Tile(ELEMENT, f"{FILL}{along}", height, vectors)
            for along in ("rows", "columns")
            for vectors in range(1, widest + 1)
            for height in range(1, min(heights[vectors], heights[2]) + 1)
        ]
    tiles += [Tile(ELEMENT, "dots", h + 1, v + 1) for v in range(DOTS_ACROSS)
              for h in range(most_dot_rows(target))]  # fmt: skip
    packers = [name for name in PACKERS if not name.startswith("pair")]
    called = [tile.symbol for tile in tiles] + [f"{name}_{ELEMENT}" for name in packers]
    for number, routine in enumerate(ROUTINES):
        symbol = f"{routine}_{ELEMENT}@{','.join(called if not number else [])}"
        own, parts = routine_parts(symbol, target)
        for part in (own, *parts):
            yield part.name, part.text()


class Level(NamedTuple):
    """What the archive of a level holds.

    Attributes:
        texts: those whose code it has, by the codes' names.
        lists: what modules are called, for each record of a processor (`shipped_code.list_name`).
    """

    texts: dict[str, str]
    lists: dict[str, dict[str, str]]


def written(level: str) -> Level:
    """What the archive of a level is made of."""
    target = machine(level)
    found, lists = dict[str, str](), dict[str, dict[str, str]]()
    for cpu, features in PROCESSORS[level]:
        processor = dataclasses.replace(target, cpu=cpu, features=target.features | features)
        made = dict(texts(processor))
        found.update((code_name(text), text) for text in made.values())
        lists[list_name(processor)] = {name: code_name(text) for name, text in made.items()}
    return Level(dict(sorted(found.items())), lists)


def write(folder: Path) -> list[Path]:
    """Write the archives of all levels; gives their paths. Code that they have is not compiled
    again."""
    return [write_level(folder, level) for level in LEVELS]


def write_level(folder: Path, level: str) -> Path:
    """The same for one level."""
    began = time.time_ns() - _IMPORTING
    folder.mkdir(parents=True, exist_ok=True)
    path = archive_path(folder, level)
    _write(path, written(level), machine(level))
    os.utime(path, ns=(began, began))  # source files that change later are not those it is of
    return path


def _write(path: Path, found: Level, target: Target) -> None:
    known = _known(path)
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # LLVM works without the GIL
        made = list(
            threads.map(
                lambda item: known.get(item[0]) or _machine_code(item[1], target),
                found.texts.items(),
            )
        )
    pairs = zip(found.texts, made, strict=True)
    # Those of one size are alike more often than others: zlib finds what neighbours share.
    codes = dict(sorted(pairs, key=lambda pair: (len(pair[1]), pair[1])))
    members = {n: list_text(names, list(codes)).encode() for n, names in found.lists.items()}
    members |= {INDEX: index_text(codes).encode(), CODES: b"".join(codes.values())}
    new = path.with_suffix(f".{os.getpid()}")
    try:
        with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.comment = _VERSION
            for name, data in members.items():
                archive.writestr(zipfile.ZipInfo(name, _OLDEST), data, zipfile.ZIP_DEFLATED)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _known(path: Path) -> dict[str, bytes]:
    """What an archive has by the llvmlite at hand."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.comment != _VERSION:
                return {}
            return codes_of(archive)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error):
        return {}


def _machine_code(text: str, target: Target) -> bytes:
    data = object_file(text, target)
    image = link(data)  # None for processors whose object files LLVM loads
    return data if image is None else image.to_bytes()


if __name__ == "__main__":
    for made in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(made, f"{made.stat().st_size:,} bytes")
