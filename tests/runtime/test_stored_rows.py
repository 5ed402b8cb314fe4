"""Rows that are computed by the kernel that stores them at places that data tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.passes import disabled

RANDOM = np.random.default_rng(5)
VALUES = td.constant(RANDOM.standard_normal(300).astype(np.float32))
TABLE = td.constant(RANDOM.standard_normal((30, 17)).astype(np.float32))
COLUMNS = td.constant(RANDOM.integers(0, 30, 300))
ROWS = td.constant(RANDOM.integers(-1, 12, 300))


def both(call: Any, *arguments: Any) -> tuple[Any, Any]:
    """The results and the kernels with and without the mechanism."""
    found = []
    for names in ((), ("stored_rows",)):
        with disabled(*names):
            traced = td.function(call)
            result = traced(*arguments)
            concrete = traced.get_concrete_function(*arguments)
            found.append((result, str(concrete.executable.stages["kernels"])))
    (a, mine), (b, other) = found
    assert mine.count("\nkernel(") <= other.count("\nkernel(")
    for x, y in zip(td.nest.flatten(a), td.nest.flatten(b), strict=True):
        assert x.numpy().tobytes() == y.numpy().tobytes()
    return a, (mine, other)


def product(values: Any, columns: Any, rows: Any, table: Any) -> Any:
    return td.math.unsorted_segment_sum(values[:, None] * td.gather(table, columns), rows, 12)


def test_a_sum_of_segments_computes_its_rows():
    found, (mine, other) = both(product, VALUES, COLUMNS, ROWS, TABLE)
    assert "rows:" in other and "rows:" not in mine
    expected = np.zeros((13, 17), np.float32)
    np.add.at(expected, ROWS.numpy(), VALUES.numpy()[:, None] * TABLE.numpy()[COLUMNS.numpy()])
    np.testing.assert_allclose(found.numpy(), expected[:12], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["add", "update", "max"])
def test_updates_compute_their_rows(op):
    def call(array: Any, places: Any, values: Any, table: Any) -> Any:
        update = getattr(td, f"tensor_scatter_nd_{op}")
        return update(array, places[:, None], values[:, None] * table[:1] + 1.0)

    places = td.constant(RANDOM.integers(0, 40, 300))
    _, (mine, other) = both(call, td.ones([40, 17]), places, VALUES, TABLE)
    assert "rows:" in other and "rows:" not in mine


def test_rows_that_somebody_else_reads_are_stored():
    def call(values: Any, columns: Any, rows: Any, table: Any) -> Any:
        terms = values[:, None] * td.gather(table, columns)
        return td.math.unsorted_segment_sum(terms, rows, 12), terms

    both(call, VALUES, COLUMNS, ROWS, TABLE)

    def twice(values: Any, columns: Any, rows: Any, table: Any) -> Any:
        terms = values[:, None] * td.gather(table, columns)
        sums = td.math.unsorted_segment_sum(terms, rows, 12)
        return sums + td.math.unsorted_segment_sum(terms, (rows + 1) // 2, 12)

    both(twice, VALUES, COLUMNS, ROWS, TABLE)


def test_sums_of_rows_are_not_computed_again_for_each_element():
    def call(table: Any, rows: Any) -> Any:
        sums = td.reduce_sum(td.exp(table)[:, :, None] * td.ones([4]), 1)
        return td.math.unsorted_segment_sum(sums, rows[:30], 12)

    both(call, TABLE, ROWS)


def test_errors_come_before_anything_is_stored():
    traced = td.function(product)
    with pytest.raises(td.errors.InvalidArgumentError):
        traced(VALUES, COLUMNS, ROWS + 12, TABLE)
    with pytest.raises(td.errors.InvalidArgumentError):
        traced(VALUES, COLUMNS + 30, ROWS, TABLE)
    traced(VALUES, COLUMNS, ROWS, TABLE)


def test_any_number_of_rows():
    spec = [td.TensorSpec([None], x.dtype) for x in (VALUES, COLUMNS, ROWS)]
    traced = td.function(product, input_signature=[*spec, td.TensorSpec([None, 17], td.float32)])
    for count in (0, 1, 7, 300):
        given = VALUES[:count], COLUMNS[:count], ROWS[:count], TABLE
        with disabled("eager_programs"):
            eager = product(*given)
        np.testing.assert_allclose(traced(*given).numpy(), eager.numpy(), rtol=1e-4, atol=1e-5)


def test_in_a_loop_and_with_gradients():
    def loop(values: Any, columns: Any, rows: Any, table: Any) -> Any:
        total = td.zeros([12, 17])
        for _ in td.range(3):
            total = total + product(values, columns, rows, table)
            values = values * 0.5
        return total

    both(loop, VALUES, COLUMNS, ROWS, TABLE)

    def gradient(values: Any, columns: Any, rows: Any, table: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([values, table])
            y = td.reduce_sum(product(values, columns, rows, table) ** 2)
        return [td.convert_to_tensor(g) for g in tape.gradient(y, [values, table])]

    both(gradient, VALUES, COLUMNS, td.abs(ROWS), TABLE)
