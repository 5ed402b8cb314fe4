import pytest

from benchmarks import growth

pytestmark = pytest.mark.thorough


def test_table_has_a_row_for_every_workload_and_says_what_was_left_out():
    result = {"ns per element": {"add": {"1000": 0.5, "10000": None}, "mul": {"1000": 2.0}}}
    assert growth.table(result).splitlines()[2:] == ["| add | 0.5 | left out |", "| mul | 2 |"]


def test_sizes_that_would_pass_the_limit_are_left_out(monkeypatch):
    asked = []

    def job(size):
        asked.append(size)
        return float(size)

    monkeypatch.setattr(growth, "GROUPS", [("ns per element", [1, 10, 100], [1], {"job": job})])
    row = growth.measure(quick=False, limit=20.0)["ns per element"]["job"]
    assert asked == [1, 10]
    assert row == {"1": 1e9, "10": 1e9, "100": None}


def test_the_workloads_run_at_their_smallest_sizes():
    for _, _, few, jobs in growth.GROUPS:
        for job in jobs.values():
            assert 0 < job(min(few)) < 60
