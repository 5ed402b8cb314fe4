"""``td.nn.experimental``: dropout as a function of a seed, or with numbers of one's own."""

from treadle.names import missing_in
from treadle.ops.nn.compositions import (
    general_dropout,
    stateless_dropout,
)

__all__ = ["general_dropout", "stateless_dropout"]

__getattr__ = missing_in(__name__)
