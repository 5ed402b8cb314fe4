"""``td.keras.datasets``: well-known data, read from files on this machine.

Nothing is fetched: where a file is missing, the error says which one is to be put where.
"""

from treadle.keras.datasets import (
    boston_housing,
    california_housing,
    cifar10,
    cifar100,
    fashion_mnist,
    imdb,
    mnist,
    reuters,
)
from treadle.names import missing_in

__all__ = [
    "boston_housing", "california_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist",
    "reuters",
]  # fmt: skip

__getattr__ = missing_in(__name__)
