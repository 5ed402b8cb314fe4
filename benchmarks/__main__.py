"""`python -m benchmarks`: run the workloads, print the table, write the JSON."""

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks.busy import busy_processes
from benchmarks.libraries import LIBRARIES
from benchmarks.measure import CLOCKS
from benchmarks.process import WorkerError
from benchmarks.report import device_text, make_report, table
from benchmarks.runner import Runner, Settings
from benchmarks.workload import all_workloads, load


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time treadle and its peers on the same work, checked to agree first.",
    )
    parser.add_argument(
        "workloads", nargs="*", help="names or beginnings of names; all by default (see --list)"
    )
    parser.add_argument("--list", action="store_true", help="list the workloads and stop")
    parser.add_argument(
        "--libraries", default=",".join(n for n, lib in LIBRARIES.items() if not lib.asked),
        help="comma-separated; default: %(default)s",
    )
    parser.add_argument(
        "--peers-python",
        default=os.environ.get("TREADLE_PEERS_PYTHON", sys.executable),
        help="the Python in which the peers are installed, by default this one",
    )
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="time a round and library (%(default)s)"
    )
    parser.add_argument(
        "--device", default="CPU:0", help='such as "GPU:0", for workloads on it (%(default)s)'
    )
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall",
        help="processor: the time spent in the process, for one core (taskset -c 0) of a busy "
        "machine (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--beside", type=int, default=0, metavar="N",
        help="processes that keep processors busy meanwhile (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="write the report to this JSON file")
    return parser.parse_args(arguments)


def select(names: list[str], kind: str) -> dict[str, tuple[str, int]]:
    """The workloads for a kind of device whose name starts with one of `names`; all of them for
    none."""
    workloads = all_workloads(kind)
    unknown = [n for n in names if not any(w.startswith(n) for w in workloads)]
    if unknown:
        raise SystemExit(f"no workload starts with {', '.join(unknown)}; --list shows them all")
    return {n: w for n, w in workloads.items() if not names or n.startswith(tuple(names))}


def main() -> None:
    options = parse(sys.argv[1:])
    kind, _, number = options.device.partition(":")
    if kind not in ("CPU", "GPU") or not number.isdecimal():
        raise SystemExit(f'--device is such as "GPU:0", not {options.device!r}')
    chosen = select(options.workloads, kind)
    if options.list:
        print("\n".join(chosen))
        return
    libraries = options.libraries.split(",")
    if unknown := set(libraries) - set(LIBRARIES):
        raise SystemExit(f"no library {', '.join(sorted(unknown))}; there are {list(LIBRARIES)}")
    libraries = [name for name in libraries if LIBRARIES[name].on(kind)]
    python, rounds, seconds = options.peers_python, options.rounds, options.seconds
    settings = Settings(libraries, python, rounds, seconds, options.device, options.clock)
    runner = Runner(settings, log=lambda line: print(line, file=sys.stderr, flush=True))
    timing = {
        "rounds": rounds, "seconds": seconds, "device": options.device, "clock": options.clock,
        **({"beside": options.beside} if options.beside else {}),
    }  # fmt: skip
    found = {name: load(place).moves for name, place in chosen.items()}
    moves = {name: count for name, count in found.items() if count}
    rows, report = {}, make_report({}, {}, timing)
    try:
        device = runner.device() if kind == "GPU" else None
        with busy_processes(options.beside):
            for name, row in runner.each(chosen.values()):
                rows[name] = {library: entry.to_json() for library, entry in row.items()}
                report = make_report(rows, runner.versions(), timing, device, moves)
                if options.out:  # after every workload: a run that is stopped leaves what it has
                    options.out.write_text(json.dumps(report, indent=1) + "\n")
    except WorkerError as error:
        if not error.missing:
            raise
        raise SystemExit(f"treadle cannot work on {options.device}: {error}") from None
    finally:
        runner.close()
    for library, why in runner.missing.items():
        print(f"{library} takes no part: {why}", file=sys.stderr)
    print(table(report))
    if "device" in report:
        print(device_text(report["device"]))


if __name__ == "__main__":
    main()
