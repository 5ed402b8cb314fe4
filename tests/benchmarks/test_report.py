import json

import pytest

from benchmarks.report import device_text, make_report, microseconds, summarise, table


def rounds(*medians, foreign=0.0):
    return [
        {"median": m * 1e-6, "best": m * 0.9e-6, "calls": 10, "foreign": foreign} for m in medians
    ]


def test_median_over_clean_rounds_only():
    found = summarise([*rounds(10, 12), *rounds(90, 95, 99, foreign=0.5)])
    assert found["median_us"] == pytest.approx(11)
    assert found["clean_rounds"] == 2
    assert len(found["rounds_us"]) == 5


def test_all_rounds_where_hardly_any_is_clean():
    found = summarise([*rounds(10), *rounds(20, 30, foreign=0.5)])
    assert found["median_us"] == pytest.approx(20)
    assert found["foreign_cpu"] == 0.5


@pytest.fixture
def report():
    entries = {
        "gelu": {
            "treadle": {"rounds": rounds(50)},
            "treadle-eager": {"rounds": rounds(900)},
            "jax": {"rounds": rounds(100)},
            "torch": {"rounds": rounds(200, foreign=0.3)},
            "numba": {"error": "boom"},
        },
        "loop": {"jax": {"rounds": rounds(5)}},
    }
    return make_report(entries, {"jax": "1.0"}, {"rounds": 1})


def test_ratio_to_the_best_peer(report):
    gelu, loop = report["workloads"]["gelu"], report["workloads"]["loop"]
    assert gelu["best_peer"] == "jax"
    assert gelu["treadle_over_best_peer"] == pytest.approx(0.5)
    assert loop["treadle_over_best_peer"] is None


def test_report_is_json_with_the_machine(report):
    read = json.loads(json.dumps(report))
    assert read["machine"]["cores"] >= 1
    assert read["workloads"]["gelu"]["libraries"]["numba"] == {"error": "boom"}


def test_table(report):
    lines = table(report).splitlines()
    assert lines[0].split("|")[1].strip() == "workload (µs)"
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        "gelu", "50.0", "900", "100", "~200", "failed", "0.50 (jax)",
    ]  # fmt: skip
    assert len({len(line) for line in lines}) == 1


DEVICE = {
    "name": "H200", "copy_bytes_per_second": 4e12, "call_us": 9.0, "call_until_done_us": 20.0,
    "calls": 1000, "bytes_before": 100, "bytes_after": 1636,
}  # fmt: skip


def test_bytes_beside_those_of_a_copy():
    entries = {
        "large": {"treadle": {"rounds": rounds(100)}, "jax": {"error": "boom"}},
        "small": {"treadle": {"rounds": rounds(5)}},
    }
    found = make_report(entries, {}, {}, DEVICE, {"large": 200_000_000})
    cells = found["workloads"]["large"]["libraries"]
    assert cells["treadle"]["share_of_copy"] == 0.5 and cells["jax"] == {"error": "boom"}
    assert found["device"] == DEVICE
    head, _, large, small = table(found).splitlines()
    assert "of a copy" in head and "50%" in large and "%" not in small
    assert device_text(DEVICE) == (
        "H200: copies move 4.00 TB/s; a call takes 9.00 µs, 20.0 until it is done; "
        "1,000 steps leave 1,536 bytes"
    )


def test_report_of_nothing_is_a_table_of_nothing():
    assert table(make_report({}, {}, {})).count("\n") == 1


def test_three_digits():
    shown = [microseconds(v) for v in (0.07512, 2.934, 33.33, 230.4, 24_500.7)]
    assert shown == ["0.075", "2.93", "33.3", "230", "24,501"]
