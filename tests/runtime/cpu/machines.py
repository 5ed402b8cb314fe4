"""Made-up machines: what the compiler is told to write code for, whatever the tests run on."""

import pytest

from treadle.runtime.cpu.target import Target, can_run, host, named
from treadle.runtime.tuning import Cache

MACHINES: dict[str, Target] = {
    "sse2": named("sse2,l1=32K/8,l2=256K/8,l3=6M/12"),
    "avx2": named("avx2,l1=32K/8,l2=256K/8,l3=8M/16"),
    "avx512": named("avx512,l1=48K/12,l2=2M/16,l3=32M/16"),
    "neon": named("neon,l1=64K/4,l2=512K/8,l3=4M/16"),
}


RUNNABLE = {name: target for name, target in MACHINES.items() if can_run(target)}
ALL = {"host": host(), **MACHINES}

# The processors that the numbers were fitted to.
_AVX512 = frozenset({"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"})
PROCESSORS = {
    "AMD Zen 5": Target(
        "x86_64-unknown-linux-gnu", "znver5", _AVX512,
        caches=(Cache(48 << 10, 12), Cache(1 << 20, 16), Cache(32 << 20, 16)),
    ),
    "Intel server with AMX": Target(
        "x86_64-unknown-linux-gnu", "sapphirerapids", _AVX512 | {"amx-tile"},
        caches=(Cache(48 << 10, 12), Cache(2 << 20, 16), Cache(480 << 20, 16)),
    ),
}  # fmt: skip

# What the compiler decides by the record of a machine is tested with one of these records, for the
# tests run on many machines: ZEN5 where code is only written, LARGE_CACHES where it runs.
ZEN5 = PROCESSORS["AMD Zen 5"]
LARGE_CACHES = named("avx2,l1=48K/12,l2=1M/16,l3=32M/16")
ZEN3 = Target(
    "x86_64-unknown-linux-gnu", "znver3", frozenset({"avx2", "fma"}),
    caches=(Cache(32 << 10, 8), Cache(512 << 10, 8), Cache(16 << 20, 16)),
)
needs_avx2 = pytest.mark.skipif(not can_run(LARGE_CACHES), reason="runs code for AVX2")
