"""What the generated code runs on: triple, CPU, features, and how code is fitted to it."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import threading
from collections.abc import Callable
from typing import Any

from treadle.core import locks
from treadle.core.digests import digest
from treadle.core.interrupts import is_mode
from treadle.core.object_cache import default_cache
from treadle.core.records import record
from treadle.runtime.cpu.amx_permission import may_use_amx
from treadle.runtime.cpu.background import settle
from treadle.runtime.cpu.caches import (
    DEFAULTS,
    Caches,
    boot_id,
    caches_of,
    caches_text,
    checked,
    parse_size,
    read_caches,
)
from treadle.runtime.cpu.llvm_lock import make_safe
from treadle.runtime.cpu.measured import keep_measurement, kept_measurement
from treadle.runtime.cpu.processor_families import family_of
from treadle.runtime.tuning import Cache, Measured, Tuning

# What AVX-512 code here relies on: 512-bit forms of float, byte and quadword operations, and
# the 128/256-bit forms of all of them.
_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})

# The matrix registers, and the instruction that multiplies pairs of bfloat16 in them.
AMX_FEATURES = frozenset({"amx-tile", "amx-bf16"})

# What is set in LLVM for the whole process. Its code generator for x86 makes branches of those
# conditional moves that lie on the longest chain of a loop. Where the data decides, as in tables of
# edit distances or a binary search, such a branch is mispredicted half of the time, and the loop
# takes up to 2.4 times as long; where it is foreseen, the loop gains at most a tenth.
LLVM_OPTIONS = ("-x86-cmov-converter=false",)

_initialised = locks.lock()


@functools.cache
def llvm_binding() -> Any:
    """llvmlite's binding with every target registered and LLVM's options set."""
    import llvmlite.binding as llvm

    with _initialised:
        for option in LLVM_OPTIONS:
            llvm.set_option("treadle", option)
        make_safe(llvm.ffi.lib)
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm


@record(frozen=True)
class Target:
    """A machine to generate code for.

    Attributes:
        cpu: LLVM's name of the processor.
        features: LLVM's names of its instruction sets.
        opt: how much LLVM's code generator tries, from 0 to 3.
        llvm: its version.
        caches: those for data, by level.
        measured: what was measured on it; None where nothing was, or for another machine.
    """

    triple: str
    cpu: str
    features: frozenset[str]
    opt: int = 2
    llvm: str = ""
    caches: Caches = DEFAULTS
    measured: Measured | None = None

    @property
    def arch(self) -> str:
        return self.triple.split("-")[0].replace("arm64", "aarch64")

    @property
    def is_x86(self) -> bool:
        return self.arch == "x86_64"

    @property
    def avx512(self) -> bool:
        return self.is_x86 and self.features >= _AVX512

    @property
    def vector_bits(self) -> int:
        """Width of the vector registers that generated code should fill."""
        if self.avx512:
            return 512
        if self.is_x86 and {"avx2", "fma"} <= self.features:
            return 256
        return 128

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.avx512 or self.arch == "aarch64" else 16

    @locks.cached_property
    def tuning(self) -> Tuning:
        """What code is fitted to."""
        family = family_of(self.arch, self.cpu, self.features, self.vector_bits)
        stated = family.tuning(self.vector_bits, self.registers, self.caches)
        return stated if self.measured is None else stated.refined(self.measured)

    @property
    def has_half(self) -> bool:
        """Whether float16 <-> float32 conversions are instructions."""
        return self.arch == "aarch64" or (self.is_x86 and "f16c" in self.features)

    @property
    def has_fma(self) -> bool:
        """Whether a * b + c, rounded once, is an instruction."""
        return self.arch == "aarch64" or (self.is_x86 and "fma" in self.features)

    @property
    def has_gather(self) -> bool:
        """Whether loading and storing lanes that lie apart are instructions that gain by it."""
        return self.avx512

    @property
    def pause(self) -> str:
        """The statement of a spin loop that tells the core it is spinning."""
        if self.is_x86:
            return "call void @llvm.x86.sse2.pause()"
        if self.arch == "aarch64":
            return "call void @llvm.aarch64.hint(i32 1)"
        return "fence acquire"

    @property
    def attributes(self) -> str:
        """The attribute group of every generated function."""
        width = self.vector_bits
        return (
            'attributes #0 = { nounwind "no-builtins" '
            f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" }}\n'
        )

    @locks.cached_property
    def key(self) -> str:
        """Everything that changes the machine code made from a text."""
        features = ",".join(sorted(self.features))
        compiler = f"O{self.opt}|{self.llvm}|{' '.join(LLVM_OPTIONS)}"
        return f"{self.triple}|{self.cpu}|{features}|{compiler}"

    @locks.cached_property
    def full_key(self) -> str:
        """Everything that changes texts, too: names what is found without its text."""
        return f"{self.key}|{self.tuning}"

    def machine(self) -> Any:
        """A new LLVM target machine (one a thread: emission is not reentrant)."""
        llvm = llvm_binding()
        return llvm.Target.from_triple(self.triple).create_target_machine(
            cpu=self.cpu,
            features=",".join(f"+{f}" for f in sorted(self.features)),
            opt=self.opt,
            reloc="pic",
            codemodel="small",
        )

    def without(self, *features: str) -> Target:
        """This target with some features switched off (for tests of the portable forms)."""
        return dataclasses.replace(self, features=self.features - set(features))


VARIABLE = "TREADLE_TARGET"
_in_use: list[Target] = []  # the innermost `using` last


class _Written(threading.local):
    """The machines that this thread writes code for without running it, the innermost last."""

    targets: tuple[Target, ...] = ()


_written = is_mode(_Written())


def host() -> Target:
    """The machine that programs are made for: this one, with what the environment variable
    ``TREADLE_TARGET`` and `using` say instead.

    Raises:
        ValueError: the variable names no machine, or one whose code does not run here.
    """
    targets = _written.targets or _in_use
    return targets[-1] if targets else process_host()


def process_host() -> Target:
    """The same without `using`: what all programs of the process share is made for it, such as
    the pool of threads and the code of calls.

    Raises:
        ValueError: see `host`.
    """
    return _chosen(os.environ.get(VARIABLE, "").strip())


class using:
    """``with using(target):`` programs are made for another machine.

    It holds for the whole process, and for programs that are made and first called within it; where
    code is only written, it holds for this thread. Compilations in the background have ended where
    it begins and ends: one that another machine overtook would mix the code of both.
    """

    def __init__(self, target: Target, run: bool = True) -> None:
        """Raises ValueError where this processor cannot run the machine's code.

        Args:
            run: otherwise code is only written: nothing that is made here can be called.
        """
        self.target = runs_here(target) if run else target
        self._runs = run

    def __enter__(self) -> Target:
        if self._runs:
            settle()
            _in_use.append(self.target)
        else:
            _written.targets = (*_written.targets, self.target)
        return self.target

    def __exit__(self, *exc: object) -> None:
        if self._runs:
            settle()
            innermost = max(i for i, target in enumerate(_in_use) if target is self.target)
            del _in_use[innermost]
        else:
            _written.targets = _written.targets[:-1]


def is_only_written() -> bool:
    """Whether this thread writes code without running it (`using`)."""
    return bool(_written.targets)


def can_run(target: Target) -> bool:
    """Whether this processor has the machine's instructions."""
    here = this_machine()
    return target is here or (target.arch == here.arch and target.features <= here.features)


def runs_here(target: Target) -> Target:
    """The target.

    Raises:
        ValueError: this processor lacks some of its instructions.
    """
    here = this_machine()
    lacking = sorted(target.features - here.features)
    if target.arch != here.arch:
        raise ValueError(f"code for {target.arch} does not run on this {here.arch}")
    if lacking:
        raise ValueError(f"this processor lacks {', '.join(lacking)} of {target.cpu}")
    return target


@functools.cache
def _chosen(text: str) -> Target:
    if not text:
        return this_machine()
    try:
        return runs_here(named(text))
    except ValueError as error:
        raise ValueError(f"{VARIABLE}={text}: {error}") from None


@functools.cache
def this_machine() -> Target:
    """The machine this process runs on, with what was measured on it in an earlier one, and with
    matrix registers where the kernel lets this process use them."""
    found = dataclasses.replace(_asked(), measured=kept_measurement(_host_key()))
    matrices = frozenset(f for f in found.features if f.startswith("amx-"))
    return found if not matrices or may_use_amx() else found.without(*matrices)


def _asked() -> Target:
    """This machine as LLVM and the system describe it. What LLVM says is kept on disk: asking loads
    LLVM. What the system says of the caches, in a dozen files, is kept until it is started anew."""
    cache, key, boot = default_cache(), _host_key(), boot_id()
    known = None if key is None else cache.load("target", key)
    found, told = (None, "") if known is None else _from_text(known)
    if found is not None and boot and told == boot:
        return found
    here = dataclasses.replace(found or _ask_llvm(), caches=read_caches())
    if key is not None and (found is None or boot):
        cache.store("target", key, _to_text(here, boot))
    return here


def _to_text(target: Target, boot: str) -> bytes:
    features = ",".join(sorted(target.features))
    caches = caches_text(target.caches)
    return "\n".join([target.triple, target.cpu, features, target.llvm, boot, caches]).encode()


def _from_text(text: bytes) -> tuple[Target | None, str]:
    """The machine of a text of `_to_text`, None where it is something else; and the system's start
    since which it has these caches."""
    try:
        triple, cpu, features, version, boot, caches = text.decode().split("\n")
        known = caches_of(caches)
    except ValueError:
        return None, ""
    return Target(triple, cpu, frozenset(features.split(",")), llvm=version, caches=known), boot


def processor() -> str | None:
    """Names this processor and the compiler; None where nobody can tell."""
    return _host_key()


def keep(found: Measured) -> None:
    """Keep what was measured on this machine for later processes."""
    keep_measurement(_host_key(), found)


def is_known() -> bool:
    """Whether `host` needs no LLVM. Nothing else is on disk for this processor where it does."""
    key = _host_key()
    return key is not None and default_cache().has(key)


def _ask_llvm() -> Target:
    llvm = llvm_binding()
    found = llvm.get_host_cpu_features()
    features = frozenset(name for name, on in found.items() if on)
    return Target(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), features, llvm=_llvm_version()
    )


def _llvm_version() -> str:
    return ".".join(map(str, llvm_binding().llvm_version_info))


@functools.cache
def _host_key() -> str | None:
    """Names what `_ask_llvm` gives for this processor and this LLVM; None where that is unknown."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    try:
        library = os.stat(spec.origin)
        with open("/proc/cpuinfo", "rb") as file:
            processor = file.read(8192).partition(b"\n\n")[0]
    except OSError:
        return None
    fixed = [s for s in processor.split(b"\n") if not s.startswith((b"cpu MHz", b"bogomips"))]
    words = [spec.origin, str(library.st_size), str(library.st_mtime_ns)]
    return digest("\n".join(words).encode() + b"\n".join(fixed))


def baseline(level: int = 1) -> Target:
    """A plain x86-64 of the given microarchitecture level (1: SSE2 only, 3: AVX2, 4: AVX-512)."""
    features = {"sse2"}
    if level >= 2:
        features |= {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"}
    if level >= 3:
        features |= {"avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}
    if level >= 4:
        features |= _AVX512 | {"avx512cd"}
    cpu = f"x86-64-v{level}" if level > 1 else "x86-64"
    here = this_machine()
    triple = here.triple if here.is_x86 else "x86_64-unknown-linux-gnu"
    return Target(triple, cpu, frozenset(features), llvm=here.llvm, caches=here.caches)


def amx() -> Target:
    """An Intel server since Sapphire Rapids: level 4, pairs of bfloat16, groups of bytes, and
    matrix registers for both."""
    level = baseline(4)
    features = level.features | AMX_FEATURES | {"amx-int8", "avx512bf16", "avx512vnni"}
    return dataclasses.replace(level, cpu="sapphirerapids", features=features)


def aarch64() -> Target:
    """A generic 64-bit Arm, for cross-compilation."""
    features = frozenset({"neon", "fp-armv8"})
    return Target("aarch64-unknown-linux-gnu", "generic", features, llvm=this_machine().llvm)


_NAMED: dict[str, Callable[[], Target]] = {
    "native": this_machine,
    "sse2": baseline,
    "avx2": functools.partial(baseline, 3),
    "avx512": functools.partial(baseline, 4),
    "amx": amx,
    "neon": aarch64,
    "x86-64": baseline,
    "x86-64-v2": functools.partial(baseline, 2),
    "x86-64-v3": functools.partial(baseline, 3),
    "x86-64-v4": functools.partial(baseline, 4),
    "aarch64": aarch64,
}


def named(text: str) -> Target:
    """A machine by its instructions, with caches of given sizes and ways.

    ``avx2,l1=32K/8,l2=256K/8`` has 8 ways in each.

    Args:
        text: native, sse2, avx2, avx512, amx or neon, or one of the names x86-64, x86-64-v2,
            x86-64-v3, x86-64-v4 and aarch64; caches (l1, l2, l3) that are not given are those of
            this machine, or usual ones for another architecture.

    Raises:
        ValueError: it is something else.
    """
    name, *given = [part.strip() for part in text.split(",")]
    if name not in _NAMED:
        raise ValueError(f"{name!r} is no machine; known are {', '.join(_NAMED)}")
    target = _NAMED[name]()
    caches = dict(zip(("l1", "l2", "l3"), target.caches, strict=True))
    for part in given:
        level, _, said = part.partition("=")
        if level not in caches:
            raise ValueError(f"{part!r} is no cache such as l1=32K/8")
        caches[level] = _cache(said, caches[level])
    l1, l2, l3 = caches.values()
    return dataclasses.replace(target, caches=(l1, l2, l3))


def _cache(text: str, known: Cache) -> Cache:
    """A cache by a text such as 32K/8; ways that are not given are those of another."""
    size, _, ways = text.partition("/")
    if ways and not ways.isdigit():
        raise ValueError(f"{ways!r} is no number of ways")
    found = checked(parse_size(size), int(ways or known.ways), known.line)
    if found is None:
        raise ValueError(f"there is no cache of {text}")
    return found
