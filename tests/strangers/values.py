"""What the names of a program mean after each part, in brief, so that two libraries' can be
compared.

`install` has both libraries draw the same random numbers: Keras's are equal when seeded, others
are drawn from counted seeds by the functions without state, whose numbers are TensorFlow's, and
datasets are not shuffled. `Told` sums up the values that a part gave names, and `differences` says
where two programs' summaries disagree. Each name counts once: what follows from it differs, too.
"""

from __future__ import annotations

import itertools
import math
import random
import types
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

TOLERANCE = 1e-3  # of float32 after some steps of training
LENGTH, DEPTH, WEIGHTS, SOME = 12, 3, 40, 10_000


def install(tf: Any) -> None:
    """Have a process draw the same numbers with any library that is imported as tensorflow."""
    tf.keras.utils.set_random_seed(0)
    counted: Counter[tuple[int, ...]] = Counter()

    def seed(shape: Any) -> list[int]:
        # Counted by shapes: the libraries' own draws between those of the program are others.
        try:
            key = tuple(int(n) for n in shape)
        except (TypeError, ValueError):  # a tensor of a graph, or a size that is open in one
            key = (-1,)
        counted[key] += 1
        return [7 + sum(key), counted[key]]

    def normal(
        shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = tf.float32, *_: Any, **__: Any
    ) -> Any:
        return tf.random.stateless_normal(shape, seed(shape), mean, stddev, dtype)

    def truncated(
        shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = tf.float32, *_: Any, **__: Any
    ) -> Any:
        drawn = tf.clip_by_value(tf.random.stateless_normal(shape, seed(shape), dtype=dtype), -2, 2)
        return tf.cast(mean, dtype) + tf.cast(stddev, dtype) * drawn

    def uniform(
        shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = tf.float32, *_: Any, **__: Any
    ) -> Any:
        if maxval is None:
            maxval = 1
        return tf.random.stateless_uniform(shape, seed(shape), minval, maxval, dtype)

    def shuffle(value: Any, *_: Any, **__: Any) -> Any:
        return tf.identity(value)

    for module in (tf.random, tf, tf.compat.v1, tf.compat.v1.random):
        for kinds, function in (
            (("normal", "random_normal"), normal), (("uniform", "random_uniform"), uniform),
            (("truncated_normal",), truncated), (("shuffle", "random_shuffle"), shuffle),
        ):  # fmt: skip
            for name in kinds:
                if hasattr(module, name):
                    setattr(module, name, function)
    fit = tf.keras.Model.fit
    tf.keras.Model.fit = lambda *given, **named: fit(*given, **named | {"shuffle": False})

    def as_it_is(self: Any, *_: Any, **__: Any) -> Any:
        """The dataset itself."""
        return self

    tf.data.Dataset.shuffle = as_it_is
    seeded = np.random.default_rng
    np.random.default_rng = lambda seed=0: seeded(0 if seed is None else seed)
    random.seed(0)


class Told:
    """Summaries of a program's names.

    Args:
        names: those of the module that the program is.
        tf: the library that it imports as tensorflow.
    """

    def __init__(self, names: dict[str, Any], tf: Any) -> None:
        self._names, self._tf = names, tf
        self._known: dict[str, Any] = {}

    def news(self) -> dict[str, Any]:
        """Summaries that are new, or others than when this was called before."""
        found = {}
        for name, value in list(self._names.items()):
            if name.startswith("__") or isinstance(value, types.ModuleType | type):
                continue
            try:
                told = self._told(value, 0)
            except Exception as problem:  # the value's own: it is of another's class
                told = ["no summary", type(problem).__name__]
            if told is not None and self._known.get(name) != told:
                found[name] = self._known[name] = told
        return found

    def _told(self, value: Any, depth: int) -> Any:
        tf = self._tf
        if value is None or isinstance(value, bool | int | str):
            return value if not isinstance(value, str) else value[:80]
        if isinstance(value, float | complex | np.generic):
            return _of_array(np.asarray(value), kind=type(value).__name__)
        if isinstance(value, np.ndarray):
            return _of_array(value)
        if isinstance(value, tf.keras.Model):
            weights = value.weights if getattr(value, "built", True) else []
            return {
                f"{i}": _of_array(np.asarray(w.numpy()))
                for i, w in enumerate(weights[:WEIGHTS]) if "seed" not in w.name
            }  # fmt: skip
        if isinstance(value, tf.Tensor | tf.Variable):
            if not hasattr(value, "numpy"):
                return ["tensor", str(value.dtype), str(value.shape)]
            return _of_array(np.asarray(value.numpy()))
        if isinstance(value, tf.keras.callbacks.History):
            return self._told(value.history, depth)
        if depth < DEPTH and isinstance(value, Mapping):
            some = itertools.islice(value.items(), LENGTH)
            return {str(k)[:40]: self._told(v, depth + 1) for k, v in some}
        if depth < DEPTH and isinstance(value, list | tuple):
            return [len(value), *(self._told(v, depth + 1) for v in value[:LENGTH])]
        return None


def _of_array(array: np.ndarray, kind: str = "array") -> list[Any]:
    """The dtype, the shape, and for numbers the mean, the mean size, and a mean that
    tells their order."""
    about = [kind, str(array.dtype), list(array.shape)]
    if array.dtype.kind in "OSU":
        return [*about, [str(one)[:30] for one in array.ravel()[:LENGTH]]]
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag])
    if array.dtype.kind not in "fiub" and array.dtype.kind != "V":
        return about
    if not array.size:
        return about
    # Of large arrays some elements that stand for all of them: this is done after each part.
    numbers = array.reshape(-1)[:: max(1, array.size // SOME)].astype(np.float64)
    with np.errstate(all="ignore"):
        weights = np.cos(np.arange(numbers.size, dtype=np.float64))
        sums = [numbers.mean(), np.abs(numbers).mean(), (numbers * weights).mean()]
    return [*about, [float(s) if math.isfinite(s) else str(s) for s in sums]]


def differences(found: dict[str, Any], there: dict[str, Any]) -> list[str]:
    """Where the summaries of a program with one library are not those with another one: up to a
    part that one of them refuses, or in which a loop ended early."""
    seen: set[str] = set()
    all_of_them = []
    for number, (ours, theirs) in enumerate(zip(found["list"], there["list"], strict=False)):
        if ("error" in ours) != ("error" in theirs) or "cut" in ours or "cut" in theirs:
            break  # what comes after it may lack what this part would have done
        mine, other = ours.get("values", {}), theirs.get("values", {})
        for name in sorted(mine.keys() & other.keys() - seen):
            said = next(_unlike(mine[name], other[name], name), None)
            if said is not None:
                seen.add(name)
                all_of_them.append(f"part {number}: {said}")
    return all_of_them


def _unlike(a: Any, b: Any, name: str) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        if a.keys() != b.keys():
            yield f"{name}: {sorted(a)} and {sorted(b)}"[:300]
        for key in a.keys() & b.keys():
            yield from _unlike(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        numbers = all(isinstance(x, float) for x in (*a, *b))
        if numbers and len(a) == len(b) == 3:
            size = max(abs(a[1]), abs(b[1]), 1e-6)
            if any(abs(x - y) > TOLERANCE * size for x, y in zip(a, b, strict=True)):
                yield f"{name}: {a} and {b}"
        elif len(a) != len(b):
            yield f"{name}: {a} and {b}"[:300]
        else:
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from _unlike(x, y, f"{name}[{i}]")
    elif a != b:
        yield f"{name}: {a} and {b}"[:300]
