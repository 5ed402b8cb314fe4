"""What processors of one family have in common, beside the caches that the system tells of.

The numbers of AMD Zen 5, Zen 4 and Zen 3 and of Intel's servers are those that benchmarks led to
there; the others' are from their makers' manuals where these tell, and theirs otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.core.records import record
from treadle.runtime.cpu.caches import Caches
from treadle.runtime.tuning import ALWAYS, NEVER, Cache, Tuning


@record(frozen=True)
class Family:
    """Processors with the same `Tuning`, but for their caches. See there for the attributes.

    Attributes:
        cpus: beginnings of LLVM's names for them.
        features: those that all of them have: a virtual machine may name another processor.
        most_l3: bytes of a last cache that a program finds its data in, at most; what is beyond is
            as far away as memory, or used by others.
    """

    name: str
    cpus: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    fma: int = 2
    loads: int = 2
    latency: int = 4
    window: int = 200
    copy: int = 32
    moving: int = 50
    far: int = 96
    meeting: int = 4096
    spins: int = 20_000
    pack_rows: int = 220
    pack_colliding: int = 60
    pack_columns: int = 256
    wide_rows: int = 96
    fill_rows: int = 1
    alike_rows: int = 1
    far_rows: int = NEVER
    pages: int = 64
    most_l3: int = 32 << 20

    def tuning(self, vector_bits: int, registers: int, caches: Caches) -> Tuning:
        """The record of one of these processors."""
        l1, l2, l3 = caches
        last = Cache(min(l3.size, self.most_l3), l3.ways, l3.line)
        return Tuning(
            self.name, vector_bits, registers, l1, l2, last, self.fma, self.loads, self.latency,
            self.window, self.copy, self.moving, self.far, self.meeting, self.spins, self.pack_rows,
            self.pack_colliding, self.pack_columns, self.wide_rows, self.fill_rows,
            self.alike_rows, self.far_rows, self.pages,
        )  # fmt: skip


_ZEN_3 = Family(
    "AMD Zen to Zen 3", ("znver",), frozenset({"avx2", "fma"}), pack_rows=24, pack_colliding=16,
    pack_columns=64, fill_rows=ALWAYS, far_rows=6 << 20,
)  # fmt: skip
# Tiles of as many registers, beside caches of the same sizes.
_AVX2 = replace(_ZEN_3, name="x86-64 with AVX2", cpus=(), features=frozenset())
_ANY = Family("x86-64 without AVX2", fma=1, loads=1, latency=8, window=100, copy=16)
_ARM = Family("64-bit Arm", window=200)
_AVX512 = Family("x86-64 with AVX-512", window=400, copy=64, far=224)
_AMX = Family(
    "Intel server with AMX",
    ("sapphirerapids", "emeraldrapids", "graniterapids", "diamondrapids"),
    frozenset({"avx512f"}), window=400, copy=64, far=224, pack_rows=100, pack_colliding=40,
    pack_columns=64, wide_rows=640, fill_rows=640, alike_rows=24,
)  # fmt: skip

# The first that fits.
FAMILIES = (
    Family(
        "AMD Zen 5", ("znver5", "znver6"), frozenset({"avx512f"}), window=400, copy=64, far=224,
    ),
    Family(
        "AMD Zen 4", ("znver4",), frozenset({"avx512f"}), fma=1, window=320, copy=32, far=224,
        fill_rows=ALWAYS,
    ),
    _ZEN_3,
    _AMX,
    # It need not be granted, and a virtual machine need not tell the name.
    replace(_AMX, cpus=(), features=frozenset({"avx512f", "amx-tile"})),
    Family(
        "Intel server with AVX-512",
        ("skylake-avx512", "cascadelake", "cooperlake", "icelake-server"),
        frozenset({"avx512f"}), window=224, copy=64, far=224,
    ),
    Family(
        "Intel client with AVX-512",
        ("icelake-client", "tigerlake", "rocketlake", "cannonlake"),
        frozenset({"avx512f"}), fma=1, window=320, copy=64,
    ),
    Family("Apple", ("apple-",), fma=4, loads=3, window=600, copy=64),
    Family("Arm Neoverse", ("neoverse-",), fma=2, loads=3, window=256),
)  # fmt: skip


def family_of(arch: str, cpu: str, features: frozenset[str], vector_bits: int) -> Family:
    """The family of a processor that code for vectors of such a width runs on."""
    if arch == "x86_64" and vector_bits == 128:
        return _ANY
    for family in FAMILIES:
        named = not family.cpus or cpu.startswith(family.cpus)
        if named and family.features <= features:
            return family
    if arch != "x86_64":
        return _ARM
    return _AVX512 if vector_bits == 512 else _AVX2
