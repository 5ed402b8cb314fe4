"""Options of the compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a graph is compiled.

    Attributes:
        interpret: run the reference interpreter instead of compiling.
        passes: whether graph passes run.
        fuse: when false every op is a kernel of its own.
        epilogues: whether library routines run the elementwise kernels that follow them.
        check_numerics: fail at the first op that gives a NaN or infinity (interpreted).
        keep_stages: keep the text of every stage for `inspect` (they are made again when asked
            for otherwise).
    """

    interpret: bool = False
    passes: bool = True
    fuse: bool = True
    epilogues: bool = True
    check_numerics: bool = False
