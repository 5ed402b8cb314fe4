"""The floats beside a float."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.tensor import Tensor
from treadle.ops.conversion import common_dtype
from treadle.ops.op_makers import binary_op
from treadle.ops.registry import run

NEXTAFTER = binary_op(
    "nextafter", np.nextafter, "f", None, lambda x1, x2, z, dz: (lambda: dz, lambda: dz * 0),
    callback="kernels have no function that takes the bits of a float as an integer",
)


def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The float after x1 in the direction of x2. Python's ints are float32, as in TensorFlow."""
    x1, x2 = (float(x) if type(x) is int else x for x in (x1, x2))
    return run(NEXTAFTER, *common_dtype("nextafter", x1, x2))  # type: ignore[no-any-return]
