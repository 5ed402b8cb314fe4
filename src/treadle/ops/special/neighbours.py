"""The floats beside a float."""

from __future__ import annotations

import numpy as np

from treadle.ops.op_makers import Public, binary, binary_op

NEXTAFTER = binary_op(
    "nextafter", np.nextafter, "f", None, lambda x1, x2, z, dz: (lambda: dz, lambda: dz * 0),
    callback="kernels have no function that takes the bits of a float as an integer",
)
nextafter: Public = binary(NEXTAFTER, "The float after x1 in the direction of x2.")
