"""Compiles LLVM text to objects, through the caches, and links objects into this process.

Every object's functions become known under their names, so later objects may call them. Code
is never unloaded: a thread may be running it.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from treadle.runtime.cpu import threads
from treadle.runtime.cpu.object_cache import ObjectCache, cache_directory
from treadle.runtime.cpu.target import Target, host, llvm_binding


@dataclass
class Counters:
    """What the JIT did in this process (or since `reset`)."""

    compiled: int = 0  # objects made by LLVM
    from_disk: int = 0  # objects read from the cache on disk
    from_memory: int = 0  # requests for objects that were already loaded
    linked: int = 0

    def reset(self) -> None:
        self.compiled = self.from_disk = self.from_memory = self.linked = 0


class CompileError(RuntimeError):
    """LLVM refused a generated text; the text is in `text`."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class Jit:
    """A target machine, its caches, and the symbols loaded so far. Safe for many threads."""

    def __init__(self, target: Target | None = None, cache: ObjectCache | None = None) -> None:
        self.target = target or host()
        self.cache = cache or ObjectCache(cache_directory())
        self.counters = Counters()
        self.addresses: dict[str, int] = {}
        self._loaded: set[str] = set()  # keys of the objects that are in the process
        self._lock = threading.RLock()
        self._local = threading.local()

    # ---- compiling
    def key(self, text: str) -> str:
        """What identifies an object: its text, the target, LLVM and how code is generated."""
        return hashlib.sha256(f"{self.target.key}\n{text}".encode()).hexdigest()

    def compile(self, text: str) -> bytes:
        """The object of a text, from the disk cache where possible."""
        key = self.key(text)
        found = self.cache.read(key)
        if found is not None:
            self.counters.from_disk += 1
            return found
        compiled = self._generate(text)
        self.counters.compiled += 1
        self.cache.write(key, compiled)
        return compiled

    def parse(self, text: str) -> Any:
        """The verified LLVM module of a text; CompileError shows LLVM's message."""
        llvm = llvm_binding()
        try:
            module = llvm.parse_assembly(text, llvm.create_context())
            module.verify()  # otherwise bad text aborts the process
        except RuntimeError as error:
            raise CompileError(f"LLVM rejected generated code: {error}", text) from None
        return module

    def _generate(self, text: str) -> bytes:
        module = self.parse(text)
        return bytes(self._machine().emit_object(module))

    def assembly(self, text: str) -> str:
        """The assembly of a text, for inspection."""
        return str(self._machine().emit_assembly(self.parse(text)))

    def _machine(self) -> Any:
        if not hasattr(self._local, "machine"):
            self._local.machine = self.target.machine()
        return self._local.machine

    # ---- linking
    def load(self, texts: Iterable[str], symbols: Iterable[str] = ()) -> dict[str, int]:
        """Make the functions that `texts` define callable; the addresses of `symbols`.

        Texts may call functions of each other, of anything loaded before, and those given to
        `add_symbol`. Texts that are loaded already cost nothing.
        """
        with self._lock:
            fresh: dict[str, str] = {}
            for text in texts:
                key = self.key(text)
                if key in self._loaded:
                    self.counters.from_memory += 1
                else:
                    fresh[key] = text
            if fresh:
                self._link([(text, self.compile(text)) for text in fresh.values()])
                self._loaded |= set(fresh)
            missing = [s for s in symbols if s not in self.addresses]
            if missing:
                raise KeyError(f"no loaded object defines {', '.join(missing)}")
            return {s: self.addresses[s] for s in symbols}

    def _link(self, objects: list[tuple[str, bytes]]) -> None:
        llvm = llvm_binding()
        defined = [name for text, _ in objects for name in _defined(text)]
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target.machine())
        for _, data in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # its code lives for ever
        for name in defined:
            self.add_symbol(name, engine.get_function_address(name))
        self.counters.linked += len(objects)

    def add_symbol(self, name: str, address: int) -> None:
        """Let objects that are loaded from now on refer to `name`."""
        if not address:
            raise ValueError(f"{name} has no address")
        llvm_binding().add_symbol(name, address)
        self.addresses[name] = address

    def address(self, name: str) -> int:
        return self.addresses[name]


def _defined(text: str) -> list[str]:
    """The external functions that a text defines."""
    names = []
    for line in text.splitlines():
        if line.startswith("define ") and not line.startswith(
            ("define internal", "define private")
        ):
            names.append(line.split("@", 1)[1].split("(", 1)[0])
    return names


_jit: Jit | None = None
_jit_lock = threading.Lock()


def default_jit() -> Jit:
    """The process's JIT for this machine, with the thread pool loaded."""
    global _jit
    with _jit_lock:
        if _jit is None:
            made = Jit()
            text = threads.pool_text(made.target)
            made.load([text])
            threads.start_pool(made.addresses)
            _jit = made
    return _jit


def counters() -> Counters:
    """The counters of the process's JIT."""
    return default_jit().counters
