"""What a public function requires of sizes that only a run can tell, beyond what its ops need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treadle.core import errors
from treadle.core.tensor import NDArray, Tensor
from treadle.kernel.ir import Index
from treadle.ops.lowering import Compute, LowerCall
from treadle.ops.registry import Op, register, run
from treadle.ops.sizes import Pair, Pairs


def _eager(x: NDArray, *, pairs: tuple[Pair, ...], text: str) -> NDArray:
    if any(a != b for a, b in pairs):
        raise errors.InvalidArgumentError(None, None, text)
    return x


def _pairs(specs: Sequence[Any], outs: Sequence[Any], attrs: Mapping[str, Any]) -> Pairs:
    yield from attrs["pairs"]


def _lower(call: LowerCall, index: Sequence[Index]) -> Any:
    return call.inputs[0](index)


REQUIRE = register(
    Op(
        "require_sizes",
        lambda x, *, pairs, text: x,
        _eager,
        lambda call, dy: [dy],
        Compute(_lower, "view"),
        tags=frozenset({"alias", "any_elements", "speaks_for_caller"}),
        sizes=_pairs,
    )
)


def require(x: Tensor, pairs: Iterable[Pair], text: str) -> Tensor:
    """`x`, where the dims of every pair are equal.

    Raises:
        InvalidArgumentError: with `text`, when a program runs in which they are not.
    """
    unknown = tuple(pair for pair in pairs if pair[0] != pair[1])
    return run(REQUIRE, x, pairs=unknown, text=text) if unknown else x
