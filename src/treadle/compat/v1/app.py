"""``td.compat.v1.app``: the beginning of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from treadle.compat.v1 import flags
from treadle.names import missing_in


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the flags, call ``main(argv)`` with what is no flag, and end the program with what it
    gives. `main` is that of the program's module where omitted."""
    function = main or sys.modules["__main__"].main
    try:
        rest = flags.FLAGS(list(sys.argv if argv is None else argv))
    except flags.Error as error:
        sys.stderr.write(f"FATAL Flags parsing error: {error}\n")
        sys.exit(1)
    sys.exit(function(rest))

__getattr__ = missing_in(__name__)
