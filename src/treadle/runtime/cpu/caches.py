"""Sizes and ways of the caches for data, as the system tells them."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from typing import TypeAlias

from treadle.runtime.tuning import Cache

Caches: TypeAlias = tuple[Cache, Cache, Cache]

# Where the system does not tell: what hardly any processor of the last ten years is below.
DEFAULTS: Caches = Cache(32 << 10, 8), Cache(256 << 10, 8), Cache(8 << 20, 16)

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"(\d+)([KMG]?)")


def read_caches(root: str | os.PathLike[str] = "/") -> Caches:
    """The three levels of caches of the first processor; `DEFAULTS` for what is not known.

    A processor without a third level has its second one for the last.

    Args:
        root: of the file system.
    """
    found = _by_sysctl() if sys.platform == "darwin" else _by_files(root)
    l1, l2 = found.get(1, DEFAULTS[0]), found.get(2, DEFAULTS[1])
    last = found.get(3) or (l2 if 2 in found else DEFAULTS[2])
    return l1, l2, last


def boot_id() -> str:
    """Names the time since the system was started, in which it has the same caches; empty where it
    does not say."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def caches_text(caches: Caches) -> str:
    """The caches in one line, which `caches_of` reads."""
    return " ".join(f"{c.size}/{c.ways}/{c.line}" for c in caches)


def caches_of(text: str) -> Caches:
    """The caches of a line of `caches_text`.

    Raises:
        ValueError: it is none.
    """
    l1, l2, l3 = (_cache_of(part) for part in text.split())
    return l1, l2, l3


def _cache_of(text: str) -> Cache:
    size, ways, line = map(int, text.split("/"))
    found = checked(size, ways, line)
    if found is None:
        raise ValueError(f"there is no cache of {text}")
    return found


def parse_size(text: str) -> int:
    """Bytes of a text such as 48K or 2M.

    Raises:
        ValueError: the text is something else, or says none.
    """
    match = _SIZE.fullmatch(text.strip().upper())
    size = int(match[1]) * _UNITS[match[2]] if match else 0
    if size <= 0:
        raise ValueError(f"{text!r} is no size such as 48K or 2M")
    return size


def checked(size: int, ways: int, line: int) -> Cache | None:
    """A cache of such numbers; None where they cannot be right."""
    sound = line >= 16 and line & (line - 1) == 0 and ways >= 1 and size >= ways * line
    return Cache(size, ways, line) if sound and size % ways == 0 else None


def _by_files(root: str | os.PathLike[str]) -> dict[int, Cache]:
    """Linux: by level."""
    found: dict[int, Cache] = {}
    all_of_them = os.path.join(root, "sys/devices/system/cpu/cpu0/cache")
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(all_of_them) if name.startswith("index"))
    for name in names:
        folder = f"{all_of_them}/{name}"
        with contextlib.suppress(OSError, ValueError):
            if _read(f"{folder}/type") == "Instruction":
                continue
            size, level = parse_size(_read(f"{folder}/size")), int(_read(f"{folder}/level"))
            ways = _number(f"{folder}/ways_of_associativity", 8)
            line = _number(f"{folder}/coherency_line_size", 64)
            cache = checked(size, ways, line) or checked(size, 8, 64)
            if cache is not None:
                found[level] = cache
    return found


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def _number(file: str, otherwise: int) -> int:
    """A number that is 0 or missing where a virtual machine does not tell."""
    with contextlib.suppress(OSError, ValueError):
        return int(_read(file)) or otherwise
    return otherwise


def _by_sysctl() -> dict[int, Cache]:
    """macOS, whose fast cores come first; it tells no ways."""
    import subprocess

    names = {
        1: ("hw.perflevel0.l1dcachesize", "hw.l1dcachesize"),
        2: ("hw.perflevel0.l2cachesize", "hw.l2cachesize"),
        3: ("hw.l3cachesize",),
    }
    try:
        command = ["sysctl", "hw.cachelinesize", *(n for group in names.values() for n in group)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return {}
    return from_sysctl(done.stdout, names)


def from_sysctl(text: str, names: Mapping[int, tuple[str, ...]]) -> dict[int, Cache]:
    """The caches by level of what `sysctl` printed, where each may have several names."""
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    values = {name.strip(): int(v) for name, v in pairs if v.strip().isdigit()}
    line = values.get("hw.cachelinesize", 64)
    found: dict[int, Cache] = {}
    for level, group in names.items():
        size = next((values[n] for n in group if values.get(n)), 0)
        cache = checked(size, 8, line)
        if cache is not None:
            found[level] = cache
    return found
