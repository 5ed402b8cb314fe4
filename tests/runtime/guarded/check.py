"""Makes random calls, runs them eagerly and compiled on guarded arrays, and compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import treadle as td
from tests.jitted.differential import difference
from tests.runtime.guarded import calls, more_calls  # noqa: F401  (fill the registry)
from tests.runtime.guarded.memory import Pages
from tests.runtime.guarded.registry import CALLS, Call, mutated

MOST_BYTES = 1 << 20  # of an argument
MOST_COMPARED = 1 << 20  # elements of a result
JITTED = 8  # every such seed is a NumPy program
SAMPLES = 8  # arguments that each random call is tried on
POOR = (
    AttributeError,
    RecursionError,
    IndexError,
    KeyError,
    ZeroDivisionError,
    OverflowError,
    AssertionError,
    UnboundLocalError,
    RuntimeError,
    SystemError,
    NotImplementedError,
)
LIMITS = (
    "instead of 1 (the value of",
    "with remapped shapes",
    " and 1 differ",
    "logits and labels do not fit together",
    "sizes that only the running program knows are not broadcast",
    "needs an axis of known size",
)
VALUES = "other values"
RELATIVE = {"f2": 2e-2, "f4": 2e-4, "f8": 1e-9, "c8": 2e-4, "c16": 1e-9}


@dataclass
class Outcome:
    """What a call gave: arrays, or the exception that it raised."""

    arrays: list[np.ndarray]
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"[:300]
        return ", ".join(
            f"{a.dtype}{list(a.shape)} {np.array2string(a, threshold=12)}" for a in self.arrays
        )[:400]


@dataclass
class Fault:
    """Two ways of running a call do not agree, or its exception is a poor one."""

    seed: int
    text: str
    kind: str
    what: str


def make(seed: int) -> Call:
    """The call of a seed."""
    r = Random(seed)
    name = r.choice(sorted(CALLS))
    made = CALLS[name](r)
    chance = r.random()
    if chance < 0.2:
        return _then(made)
    if chance < 0.35:
        return _after(made)
    if chance < 0.55 and made.differentiable and any("float" in i.dtype for i in made.inputs):
        return _gradient(made)
    return made


def _numbers(results: Any) -> list[Any]:
    found = td.nest.flatten(results)
    return [y for y in found if td.is_tensor(y) and not y.dtype.is_bool]


def _then(call: Call) -> Call:
    """With an elementwise operation on its results, which fusion takes in."""

    def function(*xs: Any) -> Any:
        y = call.function(*xs)
        return [z * 2 + 1 for z in _numbers(y)] or y

    return replace(call, text=f"{call.text}, then * 2 + 1", function=function)


def _after(call: Call) -> Call:
    """With an elementwise operation on its floating arguments, which fusion takes in."""

    def function(*xs: Any) -> Any:
        return call.function(
            *(
                td.maximum(x, -x) if x.dtype.is_floating else x
                for x in map(td.convert_to_tensor, xs)
            )
        )

    return replace(call, text=f"{call.text} of abs", function=function)


def _gradient(call: Call) -> Call:
    def function(*xs: Any) -> Any:
        tensors = [td.convert_to_tensor(x) for x in xs]
        sources = [x for x in tensors if x.dtype.is_floating]
        with td.GradientTape() as tape:
            tape.watch(sources)
            results = call.function(*tensors)
            parts = [td.reduce_sum(y * y) for y in _numbers(results) if y.dtype.is_floating]
            total = td.add_n(parts) if parts else None
        found = [] if total is None else tape.gradient(total, sources)
        found = [td.zeros_like(x) if g is None else g for g, x in zip(found, sources, strict=False)]
        return [*found, *td.nest.flatten(results)]

    return Call(f"gradient of {call.text}", function, call.inputs, False)


def run(function: Callable[..., Any], arguments: list[Any]) -> Outcome:
    try:
        found = td.nest.flatten(function(*arguments))
    except Exception as error:
        return Outcome([], error)
    return Outcome([np.array(y.numpy() if td.is_tensor(y) else y) for y in found])


def ways(call: Call) -> dict[str, Callable[..., Any]]:
    """How a call is compiled: for its shapes, and for open ones."""
    specs = [td.TensorSpec(i.open_dims, i.dtype) for i in call.inputs]
    return {
        "shapes": td.function(call.function, autograph=False),
        "open": td.function(call.function, input_signature=specs, autograph=False),
    }


def check(seed: int, pages: Pages, counts: Counter[str]) -> Iterator[Fault]:
    """Run the call of a seed on some arguments in all ways; for some seeds, a NumPy program."""
    if seed % JITTED == JITTED - 1:
        yield from check_jitted(seed, pages, counts)
        return
    call, r = make(seed), Random(seed + 1)
    compiled = ways(call)
    for number in range(SAMPLES):
        arrays = (
            mutated(r, call.inputs) if number else [a for a in mutated(Random(seed), call.inputs)]
        )
        if any(a.nbytes > MOST_BYTES for a in arrays):
            continue
        text = f"{call.text} ({', '.join(f'{a.dtype}{list(a.shape)}' for a in arrays)})"
        expected = run(call.function, [td.constant(a) for a in arrays])
        counts["refused" if expected.error else "accepted"] += 1
        if call.raises == "the same" and is_poor(expected.error):
            yield Fault(seed, text, f"poor {type(expected.error).__name__}", str(expected))
        for way, function in compiled.items():
            at_end = r.random() < 0.6
            guarded = pages.arrays(arrays, at_end)
            actual = run(function, guarded)
            counts["calls"] += 1
            difference = differ(expected, actual, call)
            if difference and is_limit(expected, actual):
                counts["limits of open dims"] += 1
            elif difference == VALUES and is_rounding(call, arrays, expected, actual):
                counts["rounding of cancelled sums"] += 1
            elif difference:
                yield Fault(seed, text, f"{way}: {difference}", f"{expected}  <>  {actual}")
            for given, after in zip(arrays, guarded, strict=True):
                if given.tobytes() != after.tobytes():
                    yield Fault(seed, text, f"{way}: an argument was changed", "")


def check_jitted(seed: int, pages: Pages, counts: Counter[str]) -> Iterator[Fault]:
    """Run a random NumPy program with `td.jit`, its arrays at either end of guarded memory."""

    def placed(arguments: list[Any]) -> list[Any]:
        counts["calls"] += 1
        own = [a for a in arguments if isinstance(a, np.ndarray)]
        arrays = iter(pages.arrays(own, at_end=counts["calls"] % 2 == 0))
        return [next(arrays) if isinstance(a, np.ndarray) else a for a in arguments]

    found = difference(seed, calls=4, placed=placed)
    counts["jitted programs"] += 1
    if found is not None:
        yield Fault(seed, "a NumPy program", "jitted", found)


def is_poor(error: BaseException | None) -> bool:
    """Whether an exception says something about the library, not about the arguments."""
    return isinstance(error, POOR) and not isinstance(error, td.errors.OpError)


def is_rounding(call: Call, arrays: list[np.ndarray], expected: Outcome, actual: Outcome) -> bool:
    """Whether what was compiled is about as far as what was called eagerly from the values that
    twice the digits give: both have lost digits where large numbers cancelled."""
    if not any(a.dtype == np.float32 for a in arrays):
        return False
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    exact = run(call.function, [td.constant(a) for a in wide])
    if exact.error is not None:
        return False
    with np.errstate(all="ignore"):
        for true, x, y in zip(exact.arrays, expected.arrays, actual.arrays, strict=True):
            if not close(x, y):
                errors = [np.abs(v.astype(np.float64) - true).max(initial=0) for v in (x, y)]
                if not errors[1] <= 8 * errors[0] + 1e-6:
                    return False
    return True


def is_limit(expected: Outcome, actual: Outcome) -> bool:
    """Whether a difference is a documented limit: sizes that only a run knows are not broadcast,
    and a -1 beside a dim that is 0 has its size from the other dims."""
    refused, accepted = str(actual.error), str(expected.error)
    return any(text in refused for text in LIMITS) or "do not divide into 0" in accepted


def differ(expected: Outcome, actual: Outcome, call: Call) -> str:
    """How two outcomes differ; empty where they do not."""
    if (expected.error is None) != (actual.error is None):
        return "refused" if actual.error else "accepted"
    if expected.error is not None:
        a, b = type(expected.error), type(actual.error)
        alike = a is b or call.raises == "anything"
        return "" if alike else f"raised {b.__name__}, not {a.__name__}"
    if len(expected.arrays) != len(actual.arrays):
        return "another number of results"
    for x, y in zip(expected.arrays, actual.arrays, strict=True):
        if x.dtype != y.dtype or x.shape != y.shape:
            return "another dtype or shape"
        if call.compares == "values" and not close(x, y):
            return VALUES
    return ""


def close(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether values are equal up to rounding, measured by the largest of them."""
    if x.dtype.kind in "iub":
        return bool(np.array_equal(x, y))
    relative = RELATIVE.get(x.dtype.str[1:], 2e-2)
    if x.dtype.kind == "V":
        x, y = x.astype(np.float32), y.astype(np.float32)
    x, y = x.reshape(-1)[:MOST_COMPARED], y.reshape(-1)[:MOST_COMPARED]
    finite = np.abs(x[np.isfinite(x)]).astype(np.float64)
    scale = min(max(float(finite.max(initial=0)), 1e-3), 1e3)
    with np.errstate(all="ignore"):
        return np.allclose(x, y, rtol=relative, atol=relative * scale, equal_nan=True)
