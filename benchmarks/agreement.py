"""Do the libraries compute the same? Asked before anything is timed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Whose result the others are compared with: the first of these that has one.
REFERENCES = ("numpy", "jax", "tf", "torch", "treadle-eager")


@dataclass(frozen=True)
class Disagreement:
    reference: str
    what: str

    def __str__(self) -> str:
        return f"disagrees with {self.reference}: {self.what}"


def check_agreement(results: dict[str, Any], tolerance: float) -> dict[str, Disagreement]:
    """The libraries whose results differ from the reference's, with how."""
    reference = next((name for name in REFERENCES if name in results), None)
    if reference is None:
        return {}
    found = {
        library: difference(results[reference], result, tolerance)
        for library, result in results.items()
    }
    return {library: Disagreement(reference, what) for library, what in found.items() if what}


def difference(expected: Any, actual: Any, tolerance: float) -> str | None:
    """The first difference between two nested lists of arrays, or None."""
    if isinstance(expected, list) or isinstance(actual, list):
        if not (isinstance(expected, list) and isinstance(actual, list)):
            return f"one is a list and the other is not: {type(expected)}, {type(actual)}"
        if len(expected) != len(actual):
            return f"{len(actual)} results instead of {len(expected)}"
        pairs = zip(expected, actual, strict=True)
        return next((d for e, a in pairs if (d := difference(e, a, tolerance))), None)
    if expected is None:  # work without a result, such as an import
        return None
    if expected.shape != actual.shape:
        return f"shape {actual.shape} instead of {expected.shape}"
    expected, actual = expected.astype(np.float64), actual.astype(np.float64)
    error = np.max(np.abs(actual - expected), initial=0.0)
    scale = np.max(np.abs(expected), initial=1e-30)
    if not error <= tolerance * scale:
        return f"error {error:.3g} at magnitude {scale:.3g}, tolerance {tolerance:g} relative"
    return None
