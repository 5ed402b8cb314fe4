"""What the generated code runs on: triple, CPU, features and vector width."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

from treadle.core import locks

# What AVX-512 code here relies on: 512-bit forms of float, byte and quadword operations, and
# the 128/256-bit forms of all of them.
_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})

_initialised = locks.lock()


@functools.cache
def llvm_binding() -> Any:
    """llvmlite's binding with every target registered."""
    import llvmlite.binding as llvm

    with _initialised:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    _let_calls_end_before_forks(llvm.ffi)
    return llvm


def _let_calls_end_before_forks(ffi: Any) -> None:
    """A fork waits until no other thread is inside LLVM, whose locks would stay taken."""
    within = getattr(ffi.lib, "_lock", None)
    if within is None or not hasattr(os, "register_at_fork"):
        return

    def leave() -> None:
        within.__exit__(None, None, None)

    os.register_at_fork(before=within.__enter__, after_in_parent=leave, after_in_child=leave)


@dataclass(frozen=True)
class Target:
    """A machine to generate code for."""

    triple: str
    cpu: str
    features: frozenset[str]
    opt: int = 2

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
    def has_half(self) -> bool:
        """Whether float16 <-> float32 conversions are instructions."""
        return self.arch == "aarch64" or (self.is_x86 and "f16c" in self.features)

    @property
    def has_fma(self) -> bool:
        """Whether a * b + c, rounded once, is an instruction."""
        return self.arch == "aarch64" or (self.is_x86 and "fma" in self.features)

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

    @functools.cached_property
    def key(self) -> str:
        """Everything that changes the machine code made from a text."""
        llvm = llvm_binding()
        version = ".".join(map(str, llvm.llvm_version_info))
        features = ",".join(sorted(self.features))
        return f"{self.triple}|{self.cpu}|{features}|O{self.opt}|{version}|pic"

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
        return Target(self.triple, self.cpu, self.features - set(features), self.opt)


@functools.cache
def host() -> Target:
    """The machine this process runs on."""
    llvm = llvm_binding()
    found = llvm.get_host_cpu_features()
    features = frozenset(name for name, on in found.items() if on)
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def baseline(level: int = 1) -> Target:
    """A plain x86-64 of the given microarchitecture level (1: SSE2 only, 3: AVX2)."""
    features = {"sse2"}
    if level >= 2:
        features |= {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16"}
    if level >= 3:
        features |= {"avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}
    return Target(host().triple, f"x86-64-v{level}" if level > 1 else "x86-64", frozenset(features))


def aarch64() -> Target:
    """A generic 64-bit Arm, for cross-compilation."""
    return Target("aarch64-unknown-linux-gnu", "generic", frozenset({"neon", "fp-armv8"}))
