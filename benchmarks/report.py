"""What a run found, as JSON and as a table."""

import datetime
import os
import platform
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.libraries import LIBRARIES

CLEAN = 0.05  # a round counts as clean while other processes used less of the machine


def summarise(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Median over the clean rounds where at least two are, over all rounds otherwise."""
    clean = [r for r in rounds if r["foreign"] < CLEAN]
    used = clean if len(clean) >= 2 else rounds
    return {
        "median_us": statistics.median(r["median"] for r in used) * 1e6,
        "best_us": min(r["best"] for r in rounds) * 1e6,
        "foreign_cpu": statistics.median(r["foreign"] for r in used),
        "clean_rounds": len(clean),
        "rounds_us": [r["median"] * 1e6 for r in rounds],
    }


def make_report(
    entries: dict[str, dict[str, Any]], versions: dict[str, str], settings: dict[str, Any],
    device: Mapping[str, Any] | None = None, moves: Mapping[str, int] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The whole report.

    Args:
        entries: what Runner.run returns, as JSON.
        device: the figures of `benchmarks.device`, where the workloads ran on a GPU.
        moves: the bytes that workloads must move.
    """
    workloads = {}
    for name, row in entries.items():
        cells = {
            library: entry if "error" in entry else summarise(entry["rounds"])
            for library, entry in row.items()
        }
        workloads[name] = {"libraries": cells, **compare(cells)}
        if device and moves and name in moves:
            for cell in cells.values():
                cell |= share_of_copy(cell, moves[name], device)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        **({"device": device} if device else {}),
        "versions": versions,
        "settings": settings,
        "workloads": workloads,
    }


def compare(cells: dict[str, Any]) -> dict[str, Any]:
    """The fastest peer, and treadle's time divided by its time."""
    times = {library: cell["median_us"] for library, cell in cells.items() if "median_us" in cell}
    peers = {library: t for library, t in times.items() if not LIBRARIES[library].ours}
    best = min(peers, key=lambda library: peers[library], default=None)
    ours = times.get("treadle", times.get("treadle-eager"))
    ratio = ours / peers[best] if best and ours else None
    return {"best_peer": best, "treadle_over_best_peer": ratio}


def share_of_copy(cell: dict[str, Any], moves: int, device: Mapping[str, Any]) -> dict[str, float]:
    """How fast bytes were moved, beside how fast the device copies them."""
    if "median_us" not in cell:
        return {}
    speed = moves / (1e-6 * cell["median_us"])
    return {"share_of_copy": round(speed / device["copy_bytes_per_second"], 3)}


def machine() -> dict[str, Any]:
    return {
        "cpu": cpu_name(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def table(report: dict[str, Any]) -> str:
    """A Markdown table: microseconds a call, treadle's ratio to the best peer, and, where bytes are
    what counts, how much of the speed of a copy treadle has."""
    rows = report["workloads"]
    libraries = [name for name in LIBRARIES if any(name in r["libraries"] for r in rows.values())]
    lines = [["workload (µs)", *libraries, "treadle / best peer", "of a copy"]]
    for name, row in rows.items():
        ratio = row["treadle_over_best_peer"]
        cells = [cell_text(row["libraries"].get(library)) for library in libraries]
        share = row["libraries"].get("treadle", {}).get("share_of_copy")
        compared = f"{ratio:.2f} ({row['best_peer']})" if ratio else ""
        lines.append([name, *cells, compared, f"{share:.0%}" if share else ""])
    if not any(line[-1] for line in lines[1:]):
        lines = [line[:-1] for line in lines]
    return markdown(lines)


def device_text(device: Mapping[str, Any]) -> str:
    """The figures of `benchmarks.device` in a line."""
    speed = device["copy_bytes_per_second"] / 1e12
    call, alone = device["call_us"], device["call_until_done_us"]
    more = device["bytes_after"] - device["bytes_before"]
    return (
        f"{device['name']}: copies move {speed:.2f} TB/s; a call takes {microseconds(call)} µs, "
        f"{microseconds(alone)} until it is done; {device['calls']:,} steps leave {more:,} bytes"
    )


def cell_text(cell: dict[str, Any] | None) -> str:
    """A figure with three digits; `~` marks one that other processes disturbed."""
    if cell is None:
        return ""
    if "error" in cell:
        return "failed"
    mark = "" if cell["foreign_cpu"] < CLEAN else "~"
    return mark + microseconds(cell["median_us"])


def microseconds(value: float) -> str:
    """Three significant digits, or whole microseconds."""
    for limit, digits in ((0.9995, 3), (9.995, 2), (99.95, 1)):
        if value < limit:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}"


def markdown(lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    text = [
        "| " + " | ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ) + " |"
        for line in [lines[0], rule, *lines[1:]]
    ]  # fmt: skip
    return "\n".join(text)
