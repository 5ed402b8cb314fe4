"""The time at which a program runs."""

from __future__ import annotations

import time

import numpy as np

from treadle.core import dtypes
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor
from treadle.ops.registry import Op, register, run

# An effect, so that its place among other effects is kept and two calls are not one.
TIMESTAMP = register(
    Op(
        "timestamp", lambda: TensorSpec((), dtypes.float64), lambda: np.float64(time.time()),
        effect="io", tags=frozenset({"quiet"}),
    )
)  # fmt: skip


def timestamp(name: str | None = None) -> Tensor:
    """The seconds since 1970, a float64 scalar; in functions those of each run."""
    return run(TIMESTAMP)  # type: ignore[no-any-return]
