"""``td.math.special``: Bessel functions, integrals and the dilogarithm."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.ops.special.bessel import (
        bessel_i0,
        bessel_i0e,
        bessel_i1,
        bessel_i1e,
    )
    from treadle.ops.special.bessel_kinds import (
        bessel_j0,
        bessel_j1,
        bessel_k0,
        bessel_k0e,
        bessel_k1,
        bessel_k1e,
        bessel_y0,
        bessel_y1,
    )
    from treadle.ops.special.integrals import (
        dawsn,
        expint,
        fresnel_cos,
        fresnel_sin,
        spence,
    )

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "dawsn",
    "expint",
    "fresnel_cos",
    "fresnel_sin",
    "spence",
]

explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle.ops.special.bessel": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e",
    "treadle.ops.special.bessel_kinds": """
        bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1
        """,
    "treadle.ops.special.integrals": "dawsn expint fresnel_cos fresnel_sin spence",
})  # fmt: skip
