"""From LLVM text to machine code in this process, through a cache in memory and one on disk."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from treadle.core import locks
from treadle.core.caches import clears
from treadle.core.digests import digest
from treadle.core.object_cache import ObjectCache, default_cache
from treadle.core.records import record
from treadle.core.sources import sources
from treadle.runtime.cpu.background import Background
from treadle.runtime.cpu.emission import assembly_text, object_file, on_another_thread
from treadle.runtime.cpu.image import MAGIC, Image, LoadedImage, is_supported, link
from treadle.runtime.cpu.shipped_code import shipped_by_name, shipped_code
from treadle.runtime.cpu.target import (
    Target,
    can_run,
    host,
    is_only_written,
    llvm_binding,
    process_host,
)
from treadle.runtime.cpu.thread_count import threads

Text: TypeAlias = "str | Callable[[], str]"


@record
class Counters:
    """What the process has done so far."""

    compiled: int = 0
    loaded_from_disk: int = 0
    shipped: int = 0  # found among the code that comes with treadle
    reused: int = 0


KIND = "code"  # of objects on disk
MOST_RECENT = 128  # codes kept although nothing uses them any more


class Code:
    """Loaded machine code. Where it may be unloaded it goes with the last reference to it: whoever
    has an address of it must hold it.

    Attributes:
        key: names it on disk.
        size: bytes.
    """

    def __init__(self, key: str, size: int, loaded: Any) -> None:
        """`loaded`: a LoadedImage, or one of LLVM's engines."""
        self.key, self.size, self._loaded = key, size, loaded

    def leak(self) -> None:
        """Never unload it, not even at the end of the process."""
        if isinstance(self._loaded, LoadedImage):
            self._loaded.leak()
        else:
            self._loaded._owned = True  # by nobody who would dispose of it

    def address(self, name: str) -> int:
        """The address of a function; KeyError where the object has none of that name."""
        if isinstance(self._loaded, LoadedImage):
            return self._loaded.base + self._loaded.functions[name]
        found = int(self._loaded.get_function_address(name))
        if not found:
            raise KeyError(name)
        return found


def _threads() -> int:
    return threads() - 1


class Jit:
    """Compiles and loads modules for one target."""

    def __init__(
        self, target: Target, cache: ObjectCache, background: Background | None = None
    ) -> None:
        self.target = target
        self.cache = cache
        self.counters = Counters()
        self._lock = locks.lock()
        self._loading: dict[str, Any] = {}
        self._codes: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, Code] = OrderedDict()  # a function made again finds its code
        self._forever: dict[str, Code] = {}
        self._prepared: dict[str, Code] = {}  # until it is asked for
        self._background = background or Background(_threads)

    def prepare(self, text: Text, name: str | None = None) -> None:
        """Compile a module in the background if it is on no disk yet: `load` will ask for it, where
        it can run and is meant to."""
        if is_only_written() or not can_run(self.target):
            return
        key = self._key(text, name)
        if key in self._codes or key in self._loading or self.cache.has(key):
            return
        self._background.submit(key, lambda: self._try_load(key, text, name))

    def _try_load(self, key: str, text: Text, name: str | None) -> None:
        with contextlib.suppress(Exception):  # `load` finds out and tells
            self._prepared[key] = self._get(key, text, False, name)

    def load(self, text: Text, forever: bool = True, name: str | None = None) -> Code:
        """The loaded code of a module: compiled once however many threads ask for it.

        Args:
            text: the module, or what writes it.
            forever: the code is never unloaded. Otherwise the caller must hold it while it runs.
            name: names the text among all that this version of treadle writes for the target; the
                module is then found without its text.

        Raises:
            RuntimeError: the text is not valid LLVM IR.
        """
        key = self._key(text, name)
        self._background.take(key)
        code = self._get(key, text, forever, name)
        self._prepared.pop(key, None)
        return code

    def load_known(self, key: str) -> Code | None:
        """The code of a key (`Code.key`) where it is in memory or on disk."""
        with contextlib.suppress(LookupError):
            return self._get(key, _no_text, forever=False)
        return None

    def _key(self, text: Text, name: str | None) -> str:
        if name is not None:
            return self.key(f"{name}\n{sources('runtime')}\n{self.target.tuning}")
        return self.key(text if isinstance(text, str) else text())

    def _get(self, key: str, text: Text, forever: bool, name: str | None = None) -> Code:
        code = self._known(key, forever)
        if code is not None:
            return code
        loading = self._loading.setdefault(key, locks.lock())
        while loading.locked() and (job := self._background.take()) is not None:
            job()  # another thread loads the module: do what waits in the background meanwhile
        with loading:
            code = self._known(key, forever)
            if code is None:
                try:
                    code = self._load(key, text, name)
                    with self._lock:
                        self._codes[key] = code
                        self._keep(key, code, forever)
                finally:
                    self._loading.pop(key, None)
            return code

    def _known(self, key: str, forever: bool) -> Code | None:
        """The code of a key where it is in memory."""
        with self._lock:
            code = self._codes.get(key)
            if code is not None:
                self.counters.reused += 1
                self._keep(key, code, forever)
            return code

    def _keep(self, key: str, code: Code, forever: bool) -> None:
        if forever:
            self._forever[key] = code
            return
        self._recent[key] = code
        self._recent.move_to_end(key)
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)

    def after_fork(self) -> None:
        """In the child nobody goes on with what other threads were loading."""
        self._loading.clear()

    def forget(self) -> None:
        """Let go of all code that no program uses. What is on disk stays."""
        with self._lock:
            self._recent.clear()
            self._prepared.clear()

    @property
    def loaded(self) -> int:
        """How many codes are in memory."""
        return len(self._codes)

    def key(self, text: str) -> str:
        """Names the object made from a text on this target."""
        return digest(f"{self.target.key}\n{text}")

    def _load(self, key: str, text: Text, name: str | None) -> Code:
        data = self.cache.load(KIND, key)
        if data is not None:
            try:
                code = self._code(key, data)
            except (RuntimeError, ValueError, OSError):  # not an object file after all
                data = None
            else:
                self.counters.loaded_from_disk += 1
                return code
        data = None if name is None else shipped_by_name(name, self.target)
        written = ""
        if data is None:
            written = text if isinstance(text, str) else text()
            data = shipped_code(written, self.target)
        if data is not None:
            with self._lock:
                self.counters.shipped += 1
        else:
            data = self.compile(written)
            with self._lock:
                self.counters.compiled += 1
            image = link(data) if is_supported() else None
            if image is not None:
                data = image.to_bytes()
        self.cache.store(KIND, key, data)
        return self._code(key, data)

    def compile(self, text: str) -> bytes:
        """The object file of a module."""
        return object_file(text, self.target)

    def assembly(self, text: str) -> str:
        """The assembly of a module, for people to read."""
        return assembly_text(text, self.target)

    def _code(self, key: str, data: bytes) -> Code:
        if data.startswith(MAGIC):
            return Code(key, len(data), LoadedImage(Image.from_bytes(data)))
        return Code(key, len(data), on_another_thread(lambda: self._by_llvm(data)))

    def _by_llvm(self, data: bytes) -> Any:
        """Load an object file with LLVM's loader."""
        llvm = llvm_binding()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target.machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        return engine


def _no_text() -> str:
    raise LookupError("neither in memory nor on disk")


_lock = locks.lock()
_jits: dict[Target, Jit] = {}
background = Background(_threads)  # of the process's compilers


@clears
def forget() -> None:
    """Let go of all code that no program uses."""
    for made in list(_jits.values()):
        made.forget()


def jit() -> Jit:
    """The process's compiler for the machine that programs are made for."""
    return jit_of(host())


def process_jit() -> Jit:
    """The one for the code that all programs share."""
    return jit_of(process_host())


def jit_of(target: Target) -> Jit:
    """The one for a machine."""
    made = _jits.get(target)
    if made is None:
        with _lock:
            made = _jits.get(target)
            if made is None:
                made = Jit(target, default_cache(), background)
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=made.after_fork)
                _jits[target] = made
    return made
