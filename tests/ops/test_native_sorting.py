"""Sorting in compiled programs: without Python, and bit for bit as eagerly."""

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.ops.natively import natively, same_for_any_number_of_threads

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "uint16"]
DTYPES += ["int32", "uint32", "int64", "uint64"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.5, 1.0]


def rows(dtype: str, shape: tuple[int, ...]) -> Any:
    """Elements with many ties and special values."""
    kind, rng = td.as_dtype(dtype), np.random.default_rng(shape[-1])
    if kind.is_floating:
        special = rng.choice(SPECIAL, shape)
        x = np.where(rng.random(shape) < 0.5, special, rng.standard_normal(shape))
        return x.astype(kind.np_dtype)
    limits = np.iinfo(kind.np_dtype)
    x = rng.integers(limits.min, limits.max, shape, kind.np_dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, x, kind.np_dtype.type(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_orders_of_every_dtype(dtype: str) -> None:
    for n in (0, 1, 2, 16, 17, 64, 65, 300):
        x = td.constant(rows(dtype, (3, n)))
        natively(lambda x: td.argsort(x), x)
        natively(lambda x: td.sort(x, direction="DESCENDING"), x)
        for k in {0, min(3, n), min(33, n), n}:
            natively(lambda x, k=k: tuple(td.math.top_k(x, k)), x)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_in_sorted_rows(dtype: str, side: str) -> None:
    for n in (0, 1, 2, 31):
        values = td.constant(rows(dtype, (2, 3, 19)))
        ordered = td.sort(td.constant(rows(dtype, (2, 3, n))))
        natively(lambda s, v: td.searchsorted(s, v, side=side), ordered, values)


def test_open_dims_and_batches() -> None:
    signature = [td.TensorSpec([None, None], td.float32)]

    @td.function(input_signature=signature)
    def order(x: Any) -> Any:
        return td.argsort(x), *td.math.top_k(x, 2), td.searchsorted(td.sort(x), x)

    for shape in ((1, 2), (5, 70), (0, 4), (3, 2)):
        x = rows("float32", shape)
        found = order(x)
        wanted = td.argsort(x), *td.math.top_k(x, 2), td.searchsorted(td.sort(x), x)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(td.errors.InvalidArgumentError, match="exceeds"):
        order(rows("float32", (4, 1)))
    assert order.get_concrete_function(*signature).executable.counters["callbacks"] == 0


def test_rows_of_other_batches_are_refused() -> None:
    for compiled in (False, True):
        search = td.function(td.searchsorted) if compiled else td.searchsorted
        with pytest.raises(td.errors.InvalidArgumentError, match="leading axes"):
            search(np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))
    opened = td.function(
        td.searchsorted, input_signature=[td.TensorSpec([None, None], td.float32)] * 2
    )
    with pytest.raises(td.errors.InvalidArgumentError, match="leading axes"):
        opened(np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))


def test_in_loops_on_rows_whose_size_the_loop_decides() -> None:
    def run(x: Any) -> Any:
        total = td.zeros([2], td.float32)
        for i in td.range(1, 40):
            total += td.math.top_k(x[:, :i], 1)[0][:, 0] * td.cast(
                td.argsort(x[:, :i])[:, -1], td.float32
            )
        return total

    natively(run, td.constant(np.random.default_rng(5).standard_normal((2, 40)).astype("f")))


def test_any_number_of_threads() -> None:
    same_for_any_number_of_threads(
        lambda x: (td.argsort(x), *td.math.top_k(x, 5)), td.constant(rows("float32", (500, 100)))
    )
