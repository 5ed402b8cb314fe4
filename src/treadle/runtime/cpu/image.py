"""Machine code as a block of bytes that runs at any address: a small linker and loader.

`link` lays the sections of an object file out one after another and settles what they know of
each other, so that loading is a copy and a table of imported functions. This takes microseconds
and needs no LLVM, so that a process whose programs are all on disk never loads it. What it does
not know (other machines, absolute addresses) is left to LLVM's own loader.

The block: code and constants, then from a page boundary the table of imports and variables.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.core.records import record
from treadle.runtime.cpu.abi import c_function

MAGIC = b"treadle-image-1"
MOST_BYTES = 1 << 30  # of an image in memory
_PAGE = 4096
_X86_64 = 62
_WRITE, _ALLOC = 1, 2  # flags of sections
_SYMBOLS, _RELOCATIONS, _EMPTY = 2, 4, 8  # types of sections
_PC32, _PLT32, _GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX = 2, 4, 9, 41, 42
_STUB = 8  # bytes of ``jmp *import``


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@record(frozen=True)
class Image:
    """A linked module.

    Attributes:
        data: the first bytes of the block; zeros follow.
        read_only: bytes that are code and constants, whole pages.
        size: bytes of the block.
        functions: offsets of the functions that can be called from outside.
        imports: functions of the process whose addresses are filled in, from `read_only` on.
    """

    data: bytes
    read_only: int
    size: int
    functions: dict[str, int]
    imports: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """The image as it is kept on disk."""
        head = [MAGIC.decode(), str(self.read_only), str(self.size)]
        head.append("imports " + ",".join(self.imports))
        head += [f"{name} {offset}" for name, offset in self.functions.items()]
        return "\n".join(head).encode() + b"\n\n" + self.data

    @staticmethod
    def from_bytes(data: bytes) -> Image:
        """The inverse of `to_bytes`.

        Raises:
            ValueError: the bytes are no image.
        """
        head, found, body = data.partition(b"\n\n")
        lines = head.decode("latin-1").split("\n")
        if not found or lines[0] != MAGIC.decode() or len(lines) < 4:
            raise ValueError("not an image")
        functions = {name: int(offset) for name, offset in (s.split() for s in lines[4:])}
        imports = tuple(filter(None, lines[3].removeprefix("imports ").split(",")))
        image = Image(body, int(lines[1]), int(lines[2]), functions, imports)
        image.check()
        return image

    def check(self) -> None:
        """Raises ValueError where parts of the image would lie outside of the block."""
        end = self.read_only + 8 * len(self.imports)
        inside = all(0 <= offset < self.read_only for offset in self.functions.values())
        if self.read_only % _PAGE or not 0 <= end <= self.size or not inside:
            raise ValueError("not an image: its parts lie outside of it")
        if not len(self.data) <= self.size <= MOST_BYTES:
            raise ValueError(f"not an image: {self.size} bytes")


def is_supported() -> bool:
    """Whether this process can load images."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def link(data: bytes) -> Image | None:
    """The image of an object file, or None where something in it is not known here."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _X86_64:
        return None
    return _Linker(data).link()


class _Linker:
    def __init__(self, data: bytes) -> None:
        self.data = data
        (table,) = struct.unpack_from("<Q", data, 40)
        count, names = struct.unpack_from("<HH", data, 60)
        self.sections = [self._section(table + 64 * i) for i in range(count)]
        self.names = self.sections[names]
        self.places: dict[int, int] = {}  # of sections, by number
        self.imports: dict[str, int] = {}  # their stubs
        self.block = bytearray()

    def _section(self, at: int) -> _Section:
        name, kind, flags, _, offset, size, link, info, align, _ = struct.unpack_from(
            "<IIQQQQIIQQ", self.data, at
        )
        return _Section(name, kind, flags, offset, size, link, info, max(align, 1))

    def _text(self, table: _Section, offset: int) -> str:
        start = table.offset + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def link(self) -> Image | None:
        symbols = self._symbols()
        self.imports = {s[0]: 0 for s in symbols if s[1] == 0 and s[0]}
        for number, section in enumerate(self.sections):
            if self._is_loaded(section) and not section.flags & _WRITE:
                self._lay_out(number, section)
        self._pad(16)
        for name in self.imports:
            self.imports[name] = len(self.block)
            self.block += bytes(_STUB)
        self._pad(_PAGE)
        read_only = len(self.block)
        self.block += bytes(8 * len(self.imports))
        for number, section in enumerate(self.sections):
            if self._is_loaded(section) and section.flags & _WRITE:
                self._lay_out(number, section)
        for i, stub in enumerate(self.imports.values()):
            struct.pack_into("<Hi", self.block, stub, 0x25FF, read_only + 8 * i - (stub + 6))
        if not all(self._relocate(s, symbols, read_only) for s in self.sections):
            return None
        functions = {
            name: self.places[section] + value
            for name, section, value, is_global in symbols
            if is_global and name and section in self.places
        }
        data = bytes(self.block).rstrip(b"\0")
        return Image(data, read_only, len(self.block), functions, tuple(self.imports))

    def _is_loaded(self, section: _Section) -> bool:
        return bool(section.flags & _ALLOC) and self._text(self.names, section.name) != ".eh_frame"

    def _lay_out(self, number: int, section: _Section) -> None:
        self._pad(section.align)
        self.places[number] = len(self.block)
        body = self.data[section.offset : section.offset + section.size]
        self.block += bytes(section.size) if section.type == _EMPTY else body

    def _pad(self, align: int) -> None:
        self.block += bytes(-len(self.block) % align)

    def _symbols(self) -> list[tuple[str, int, int, bool]]:
        """Name, section (0: not in this file), value and whether it is global, of each symbol."""
        found = []
        for table in self.sections:
            if table.type != _SYMBOLS:
                continue
            for at in range(table.offset, table.offset + table.size, 24):
                name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
                text = self._text(self.sections[table.link], name)
                found.append((text, section, value, info >> 4 == 1))
        return found

    def _relocate(
        self, table: _Section, symbols: list[tuple[str, int, int, bool]], imports: int
    ) -> bool:
        """Fill in what a section knows of others; False for an unknown kind of reference."""
        if table.type != _RELOCATIONS or table.info not in self.places:
            return True
        order = list(self.imports)
        for at in range(table.offset, table.offset + table.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.data, at)
            name, section, value, _ = symbols[info >> 32]
            kind, place = info & 0xFFFFFFFF, self.places[table.info] + offset
            if section == 0 and kind in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                target = imports + 8 * order.index(name)
            elif section == 0 and kind in (_PC32, _PLT32):
                target = self.imports[name]
            elif section in self.places and kind in (_PC32, _PLT32):
                target = self.places[section] + value
            else:
                return False
            struct.pack_into("<i", self.block, place, target + addend - place)
        return True


class LoadedImage:
    """An image in memory, until the last reference to it goes."""

    def __init__(self, image: Image) -> None:
        """Load.

        Raises:
            OSError: an imported function does not exist, or memory cannot be made executable.
        """
        self.functions = image.functions
        self._map = mmap.mmap(-1, image.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._first = ctypes.c_char.from_buffer(self._map)  # as long as it lives the map does
        self.base = ctypes.addressof(self._first)
        self._map[: len(image.data)] = image.data
        words = [c_function(name) for name in image.imports]
        self._map[image.read_only : image.read_only + 8 * len(words)] = struct.pack(
            f"<{len(words)}Q", *words
        )
        if image.read_only and _protect()(self.base, image.read_only, 5):
            raise OSError("memory cannot be made executable")

    def leak(self) -> None:
        """Keep it for ever, beyond the end of the interpreter."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._first))


def _protect() -> Callable[[int, int, int], Any]:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return protect
