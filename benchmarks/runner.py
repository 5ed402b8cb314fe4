"""Runs workloads over libraries: results compared first, then timed in interleaved rounds."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.agreement import Disagreement, check_agreement
from benchmarks.measure import Timing
from benchmarks.process import Process, WorkerError
from benchmarks.workload import Workload, load

Place = tuple[str, int]  # of a workload: see benchmarks.workload
PAUSE = 0.01  # seconds between two libraries, for the thread pool of the first to go to sleep


@dataclass
class Settings:
    libraries: list[str]
    peers_python: str
    rounds: int = 5
    seconds: float = 0.2
    device: str = "CPU:0"
    clock: str = "wall"


@dataclass
class Entry:
    """One library on one workload: its timings, or why there are none."""

    timings: list[Timing] = field(default_factory=list)
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        if self.error:
            return {"error": self.error}
        return {"rounds": [asdict(timing) for timing in self.timings]}


class Runner:
    """One process per library (two thread pools in one process fight), started when needed.

    Attributes:
        missing: why libraries take no part.
    """

    def __init__(self, settings: Settings, log: Callable[[str], None]) -> None:
        self.settings = settings
        self.log = log
        self.missing: dict[str, str] = {}
        self._stack = ExitStack()
        self._processes: dict[str, Process] = {}
        self._cache = self._stack.enter_context(tempfile.TemporaryDirectory())

    def run(self, places: Iterable[Place]) -> dict[str, dict[str, Entry]]:
        """{workload: {library: entry}}; a library that cannot do a workload has no entry."""
        return dict(self.each(places))

    def each(self, places: Iterable[Place]) -> Iterator[tuple[str, dict[str, Entry]]]:
        """The same, one workload at a time."""
        for place in places:
            workload = load(place)
            self.log(workload.name)
            run = self._run_fresh if workload.fresh else self._run_steady
            yield workload.name, run(place, workload)

    def versions(self) -> dict[str, str]:
        """The versions of the libraries that took part."""
        present = {k: p for k, p in self._processes.items() if k not in self.missing and p.alive}
        return {library: process.ask("version") for library, process in present.items()}

    def device(self) -> dict[str, Any]:
        """What treadle finds of the device."""
        found: dict[str, Any] = self._process("treadle").ask("figures")
        return found

    def close(self) -> None:
        self._stack.close()

    def _process(self, library: str) -> Process:
        process = self._processes.get(library)
        if process is None or not process.alive:
            python, device = self.settings.peers_python, self.settings.device
            process = Process(library, python, self._cache, device=device)
            self._processes[library] = self._stack.enter_context(process)
        return process

    def _run_steady(self, place: Place, workload: Workload) -> dict[str, Entry]:
        entries = self._collect(
            workload, lambda library: self._process(library).ask("prepare", place)
        )
        live = [library for library, entry in entries.items() if entry.error is None]
        for _ in range(self.settings.rounds):
            for library in live:
                time.sleep(PAUSE)
                timing = self._process(library).ask(
                    "time", self.settings.seconds, self.settings.clock
                )
                entries[library].timings.append(timing)
        for library in live:
            self._process(library).ask("drop")
        return entries

    def _run_fresh(self, place: Place, workload: Workload) -> dict[str, Entry]:
        timings: dict[str, list[Timing]] = {library: [] for library in self.settings.libraries}
        with tempfile.TemporaryDirectory() as shared:

            def first(library: str) -> Any:
                with tempfile.TemporaryDirectory() as own:
                    cache = shared if workload.warm else own
                    python, device = self.settings.peers_python, self.settings.device
                    with Process(library, python, cache, workload.warm, device=device) as process:
                        answer = process.ask("first", place, self.settings.clock)
                if answer is None:
                    return None
                timings[library].append(answer[0])
                return answer[1]

            entries = self._collect(workload, first)
            live = [library for library, entry in entries.items() if entry.error is None]
            for _ in range(self.settings.rounds - (0 if workload.warm else 1)):
                for library in live:
                    first(library)
        for library in live:
            # With a cache the first call filled it, and does not count.
            entries[library].timings = timings[library][1 if workload.warm else 0 :]
        return entries

    def _collect(self, workload: Workload, ask: Callable[[str], Any]) -> dict[str, Entry]:
        """An entry for each library that has the workload, errors and disagreements noted."""
        results: dict[str, Any] = {}
        entries: dict[str, Entry] = {}
        for library in self.settings.libraries:
            if library in self.missing:
                continue
            try:
                answer = ask(library)
            except WorkerError as error:
                if error.missing:
                    self.missing[library] = str(error)
                else:
                    self._note(entries, library, str(error))
                continue
            if answer is not None:
                results[library] = answer
                entries[library] = Entry()
        for library, problem in check_agreement(results, workload.tolerance).items():
            self._note(entries, library, problem)
        return entries

    def _note(self, entries: dict[str, Entry], library: str, problem: str | Disagreement) -> None:
        entries[library] = Entry(error=str(problem))
        self.log(f"  {library}: {str(problem).strip().splitlines()[-1]}")
