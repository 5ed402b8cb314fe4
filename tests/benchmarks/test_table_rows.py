from benchmarks import table_rows


def test_every_optimizer_is_measured_at_every_size():
    found = table_rows.measure([100, 1000], seconds=0.0)
    assert found.keys() == table_rows.OPTIMIZERS.keys()
    assert all(list(row) == ["100", "1000"] and min(row.values()) > 0 for row in found.values())
