"""Made-up machines: what the compiler is told to write code for, whatever the tests run on."""

from treadle.runtime.cpu.target import Target, can_run, host, named

MACHINES: dict[str, Target] = {
    "sse2": named("sse2,l1=32K/8,l2=256K/8,l3=6M/12"),
    "avx2": named("avx2,l1=32K/8,l2=256K/8,l3=8M/16"),
    "avx512": named("avx512,l1=48K/12,l2=2M/16,l3=32M/16"),
    "neon": named("neon,l1=64K/4,l2=512K/8,l3=4M/16"),
}


RUNNABLE = {name: target for name, target in MACHINES.items() if can_run(target)}
ALL = {"host": host(), **MACHINES}
