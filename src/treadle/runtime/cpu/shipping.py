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
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import llvmlite

from treadle.runtime.cpu.convolution import FORWARD, TO_FILTER, TO_INPUT
from treadle.runtime.cpu.convolution.winograd_tiling import winograd_routine
from treadle.runtime.cpu.emission import object_file
from treadle.runtime.cpu.image import link
from treadle.runtime.cpu.kept_memory_code import memory_text
from treadle.runtime.cpu.library_code import routine_parts
from treadle.runtime.cpu.matmul.dots import DOTS_ACROSS, most_dot_rows
from treadle.runtime.cpu.matmul.tiles import PACKERS, Tile, most_rows
from treadle.runtime.cpu.matmul.tiling import WIDE
from treadle.runtime.cpu.pool_code import pool_text
from treadle.runtime.cpu.shipped_code import FOLDER, LEVELS, archive_path, member
from treadle.runtime.cpu.target import Target, named

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
    tiles += [Tile(ELEMENT, "dots", h + 1, v + 1) for v in range(DOTS_ACROSS)
              for h in range(most_dot_rows(target))]  # fmt: skip
    packers = [name for name in PACKERS if not name.startswith("pair")]
    called = [tile.symbol for tile in tiles] + [f"{name}_{ELEMENT}" for name in packers]
    for number, routine in enumerate(ROUTINES):
        symbol = f"{routine}_{ELEMENT}@{','.join(called if not number else [])}"
        own, parts = routine_parts(symbol, target)
        for part in (own, *parts):
            yield part.name, part.text()


def written(level: str) -> dict[str, str]:
    """The texts whose code a level's archive has, by the members' names."""
    target = machine(level)
    found: dict[str, str] = {}
    for cpu, features in PROCESSORS[level]:
        processor = dataclasses.replace(target, cpu=cpu, features=target.features | features)
        found.update((member(text), text) for _, text in texts(processor))
    return dict(sorted(found.items()))


def write(folder: Path) -> list[Path]:
    """Write the archives of all levels, but for those that are up to date; gives their paths."""
    return [write_level(folder, level) for level in LEVELS]


def write_level(folder: Path, level: str) -> Path:
    """The same for one level."""
    folder.mkdir(parents=True, exist_ok=True)
    path, found = archive_path(folder, level), written(level)
    if not _is_of(path, found):
        _write(path, found, machine(level))
    return path


def _write(path: Path, found: dict[str, str], target: Target) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # LLVM works without the GIL
        made = list(threads.map(lambda text: _machine_code(text, target), found.values()))
    new = path.with_suffix(f".{os.getpid()}")
    try:
        with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.comment = llvmlite.__version__.encode()
            for name, data in zip(found, made, strict=True):
                archive.writestr(zipfile.ZipInfo(name, _OLDEST), data, zipfile.ZIP_DEFLATED)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _machine_code(text: str, target: Target) -> bytes:
    data = object_file(text, target)
    image = link(data)  # None for processors whose object files LLVM loads
    return data if image is None else image.to_bytes()


def _is_of(path: Path, found: dict[str, str]) -> bool:
    """Whether an archive has the code of these texts, by the llvmlite at hand."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist() == list(found) and (
                archive.comment == llvmlite.__version__.encode()
            )
    except (OSError, zipfile.BadZipFile):
        return False


if __name__ == "__main__":
    for made in write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(made, f"{made.stat().st_size:,} bytes")
