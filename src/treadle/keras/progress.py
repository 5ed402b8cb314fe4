"""Progress of training as text: a bar on terminals, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

_interactive = True


def enable_interactive_logging() -> None:
    """Print progress to the standard output."""
    global _interactive
    _interactive = True


def disable_interactive_logging() -> None:
    """Print one line an epoch, and nothing of what `verbose="auto"` stands for."""
    global _interactive
    _interactive = False


def is_interactive_logging_enabled() -> bool:
    """Whether progress is printed to the standard output."""
    return _interactive


def on_terminal() -> bool:
    """Whether what is printed can be printed over: a terminal or a notebook."""
    is_terminal = getattr(sys.stdout, "isatty", lambda: False)
    return is_terminal() or "ipykernel" in sys.modules or "PYCHARM_HOSTED" in os.environ


def level_of(verbose: Any) -> int:
    """0, 1 or 2 for what `verbose` was given: "auto" is a bar (1) on terminals and plain lines (2)
    elsewhere."""
    if verbose == "auto":
        return 1 if _interactive and on_terminal() else 2
    return int(verbose)


class Progbar:
    """A bar of steps with the time that they take and values.

    On terminals the bar is printed over itself; elsewhere one line is printed at the end.

    Args:
        target: the number of steps; None where it is not known.
        width: of the bar.
        verbose: 0 is silent, 1 a bar, 2 a line at the end.
        interval: the least time between two updates of the bar, in seconds.
        stateful_metrics: names of values that are shown as they are; the others' means are shown.
        stateless_metrics: names of values whose means are shown; the others as they are.
        unit_name: of a step.
    """

    def __init__(
        self, target: int | None, width: int = 20, verbose: int = 1, interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None, unit_name: str = "step",
    ) -> None:  # fmt: skip
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError("Progbar: give stateful_metrics or stateless_metrics, not both")
        self.target, self.width, self.verbose = target, width, verbose
        self.interval, self.unit_name = interval, unit_name
        self._as_is = set(stateful_metrics or ())
        self._averaged = None if stateless_metrics is None else set(stateless_metrics)
        self._dynamic = on_terminal()
        self._values: dict[str, tuple[Any, int]] = {}  # the sum and the number of what was added
        self._seen, self._printed = 0, 0
        self._start = time.perf_counter()
        self._last_update = -math.inf
        self._after_first: float | None = None

    def is_due(self) -> bool:
        """Whether an update that is not the last one would be shown."""
        late = time.perf_counter() - self._last_update >= self.interval
        return self.verbose == 1 and self._dynamic and late

    def update(
        self, current: int, values: Iterable[tuple[str, Any]] | None = None,
        finalize: bool | None = None,
    ) -> None:  # fmt: skip
        """Show that `current` steps are done.

        Args:
            values: names with values of the last step.
            finalize: whether it is the last update; when the target is reached if omitted.
        """
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        for name, value in values or ():
            self._add(name, value, current, finalize)
        self._seen = current
        now = time.perf_counter()
        duration = self._step_duration(current, now)
        if self.verbose == 1 and (finalize or self.is_due()):
            self._show(current, now, duration, finalize)
        elif self.verbose == 2 and finalize and self.target:
            done = f"{current:{len(str(self.target))}d}/{self.target}"
            line = f"{done} - {now - self._start:.0f}s -{self._per_step(duration)}"
            _write(f"{line}{self._shown_values()}\n")
        else:
            return
        self._last_update = now

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Show that `n` more steps are done."""
        self.update(self._seen + n, values)

    def _add(self, name: str, value: Any, current: int, finalize: bool) -> None:
        averaged = name not in self._as_is if self._averaged is None else name in self._averaged
        if not averaged or finalize:
            self._values[name] = value, 1
            return
        steps = max(current - self._seen, 1)
        total, count = self._values.get(name, (0.0, 0))
        self._values[name] = total + value * steps, count + steps

    def _show(self, current: int, now: float, duration: float, finalize: bool) -> None:
        if self.target:
            done = f"{current:{len(str(self.target))}d}/{self.target}"
            full = int(self.width * current / self.target)
            bar = [(done, "1"), (" ", ""), ("━" * full, "32"), ("━" * (self.width - full), "37")]
        else:
            bar = [(f"{current:7d}/Unknown", "")]
        if self.target and not finalize:
            passed = _duration(duration * (self.target - current))
        else:
            passed = f"{now - self._start:.0f}s"
        bar += [(" ", ""), (passed, "1"), (self._per_step(duration) + self._shown_values(), "")]
        plain = "".join(text for text, _ in bar)
        line = plain
        if self._dynamic:
            line = "".join(f"\x1b[{code}m{text}\x1b[0m" if code else text for text, code in bar)
            line = "\b" * self._printed + "\r" + line + " " * (self._printed - len(plain))
        _write(line + ("\n" if finalize else ""))
        self._printed = len(plain)

    def _shown_values(self) -> str:
        return "".join(
            f" - {name}: {_number(float(np.mean(total)) / max(1, count))}"
            for name, (total, count) in self._values.items()
        )

    def _per_step(self, duration: float) -> str:
        if duration >= 1 or duration == 0:
            return f" {duration:.0f}s/{self.unit_name}"
        if duration >= 1e-3:
            return f" {duration * 1e3:.0f}ms/{self.unit_name}"
        return f" {duration * 1e6:.0f}us/{self.unit_name}"

    def _step_duration(self, current: int, now: float) -> float:
        """The mean time of a step; the first one, which compiles, is left out once there are
        others."""
        if not current:
            return 0.0
        if self._after_first is not None and current > 1:
            return (now - self._after_first) / (current - 1)
        if current == 1:
            self._after_first = now
        return (now - self._start) / current


def _duration(seconds: float) -> str:
    if seconds > 3600:
        return f"{seconds // 3600:.0f}:{seconds % 3600 // 60:02.0f}:{seconds % 60:02.0f}"
    if seconds > 60:
        return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"
    return f"{int(seconds)}s"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) > 1e-3 else f"{value:.4e}"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def message(text: str) -> None:
    """Print a line."""
    _write(text + "\n")
