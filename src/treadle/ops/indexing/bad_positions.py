"""What becomes of positions outside of a tensor: `bad_indices_policy`."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core import dtypes, errors
from treadle.core.origin import at, user_origin
from treadle.core.shapes import Dim, product
from treadle.core.tensor import Tensor
from treadle.ops.dims import shape_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.indexing.masks import boolean_mask
from treadle.ops.reductions.reduction import reduce_all
from treadle.ops.shaping.reshaping import reshape_to


def is_ignored(policy: str) -> bool:
    """Whether positions outside are left out rather than an error.

    Raises:
        InvalidArgumentError: an unknown policy.
    """
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise errors.InvalidArgumentError(
            None, None, f"bad_indices_policy {policy!r} is none of DEFAULT, ERROR, IGNORE"
            f"{at(user_origin())}",
        )  # fmt: skip
    return policy == "IGNORE"


def inside(indices: Tensor, dims: Sequence[Dim]) -> Tensor:
    """Whether each row of positions is in a tensor of shape `dims`.

    Raises:
        InvalidArgumentError: the length of rows is not known while tracing.
    """
    depth = indices.dims[-1]
    if not isinstance(depth, int):
        raise errors.InvalidArgumentError(
            None, None, "bad_indices_policy='IGNORE' needs positions whose last dim is known"
            f"{at(user_origin())}",
        )  # fmt: skip
    wide = cast(indices, dtypes.int64)
    limits = shape_tensor(tuple(dims[:depth]))
    return reduce_all((wide >= 0) & (wide < limits), -1)


def kept(
    indices: Tensor, updates: Tensor, dims: Sequence[Dim], policy: str
) -> tuple[Tensor, Tensor]:
    """The positions and the updates that belong to them, without those that the policy ignores."""
    if not is_ignored(policy):
        return indices, updates
    rank = indices.ndim - 1
    count = product(indices.dims[:rank])
    rows = reshape_to(indices, (count, indices.dims[-1]))
    there = inside(rows, dims)
    parts = reshape_to(updates, (count, *updates.dims[rank:]))
    return boolean_mask(rows, there), boolean_mask(parts, there)
