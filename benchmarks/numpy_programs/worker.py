"""Runs one program by one library in a process of its own and prints what it took as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import ForeignLoad
from benchmarks.numpy_programs import PROGRAMS
from benchmarks.numpy_programs.program import Program

SECONDS = 0.5  # of timed calls
MOST_CALLS = 1000


def compiled(library: str, program: Program) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """What to time, and what makes an argument ready for it.

    Raises:
        LookupError: the program is not written for the library.
    """
    if library == "numpy":
        return program.function, _copied
    if library == "treadle":
        import treadle as td

        return td.jit(program.function), _copied
    if library == "jax":
        import jax

        from benchmarks.numpy_programs import in_jax

        jax.config.update("jax_enable_x64", True)
        run = in_jax.text(program)
        if run is None:
            raise LookupError(f"{program.name} is not written for JAX")
        return lambda *args: jax.block_until_ready(run(*args)), lambda a: (
            jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a
        )
    import numba

    options = {"parallel": True} if library == "numba_parallel" else {}
    return numba.njit(**options)(program.function), _copied


def _copied(argument: Any) -> Any:
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def agree(program: Program, function: Callable[..., Any], arguments: Any) -> bool:
    """Whether a library gives NumPy's result and leaves the same in the arguments."""
    mine, theirs = ([_copied(a) for a in arguments] for _ in range(2))
    found, expected = function(*mine), program.function(*theirs)
    pairs = [*zip(mine, theirs, strict=True), (found, expected)]
    return all(_near(a, b) for a, b in pairs)


def agree_by_value(program: Program, function: Callable[..., Any], arguments: Any) -> bool:
    """Whether a function that changes no array gives NumPy's result, and after it the arrays that
    the program changes."""
    theirs = [_copied(a) for a in arguments]
    result = program.function(*theirs)
    expected = [] if result is None else [result]
    for before, after in zip(arguments, theirs, strict=True):
        if after is not result and not np.array_equal(before, after):
            expected.append(after)
    found = function(*arguments)
    return _near(found if isinstance(found, tuple) else (found,), tuple(expected))


def _near(a: Any, b: Any) -> bool:
    if isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_near, a, b))
    if b is None:
        return a is None
    x, y = np.asarray(a), np.asarray(b)
    scale = float(np.max(np.abs(y), initial=1e-300)) if y.dtype.kind in "fc" else 1.0
    return x.shape == y.shape and bool(np.allclose(x, y, 1e-6, 1e-8 * scale, True))


def measured(library: str, program: Program, size: int) -> dict[str, Any]:
    """Seconds of the first call and the second, the median of later ones."""
    function, ready = compiled(library, program)
    arguments = program.arguments(size)

    def timed() -> float:
        given = [ready(a) for a in arguments]
        start = time.perf_counter()
        function(*given)
        return time.perf_counter() - start

    check = agree_by_value if library == "jax" else agree
    watch = ForeignLoad()
    first, second = timed(), timed()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(times) < 3 or (time.perf_counter() < end and len(times) < MOST_CALLS):
        times.append(timed())
    return {
        "first": first, "second": second, "median": float(np.median(times)), "best": min(times),
        "calls": len(times), "foreign_cpu": watch.share(),
        "agrees": check(program, function, program.arguments(program.small)),
    }  # fmt: skip


def main() -> None:
    library, name, size = sys.argv[1:4]
    program = next(p for p in PROGRAMS if p.name == name)
    try:
        found = measured(library, program, int(size) or program.size)
    except LookupError as error:
        found = {"missing": str(error)}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {str(error).strip()[:300]}"}
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main()
