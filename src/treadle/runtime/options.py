"""Options of the compiler."""

from __future__ import annotations

from treadle.core.records import record


@record(frozen=True)
class Options:
    """How a graph is compiled.

    Attributes:
        interpret: run the reference interpreter instead of compiling.
        check_numerics: fail at the first op that gives a NaN or infinity (interpreted).
    """

    interpret: bool = False
    check_numerics: bool = False
