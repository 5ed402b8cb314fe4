"""``td.nn.experimental``: dropout as a function of a seed, or with numbers of one's own."""

from typing import TYPE_CHECKING

from treadle.names import provided

if TYPE_CHECKING:
    from treadle.ops.nn.compositions import (
        general_dropout,
        stateless_dropout,
    )

__all__ = ["general_dropout", "stateless_dropout"]

__getattr__ = provided(__name__, {
    "treadle.ops.nn.compositions": "general_dropout stateless_dropout",
})  # fmt: skip
