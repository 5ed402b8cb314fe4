"""Argument sets of the tables, changed at random: where do TensorFlow and treadle differ?

::

    python tests/facts_tf/mutate.py make 7 6000 sets.json     6,000 sets, by seed 7
    python tests/facts_tf/mutate.py run tensorflow sets.json  what TensorFlow gives: sets.tensorflow
    python tests/facts_tf/mutate.py run treadle sets.json     what treadle gives: sets.treadle
    python tests/facts_tf/mutate.py compare sets.json         the differences, by kind

Operands get other dtypes, shapes, sizes of numbers, NaN and infinities, numbers other values, and
parameters those that other sets give them. Each library runs where it is installed, eagerly,
in children that a crash or a call of 20 seconds ends. What TensorFlow means and treadle does
otherwise becomes an argument set of a table (`calls.py`), and is mended or listed as a deviation.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.facts_tf.calls import _LETTERS, TABLES, Call, calls
from tests.facts_tf.comparison import RAISES, differences
from tests.facts_tf.parameters import FILE
from tests.facts_tf.registry import outcome

CHUNK = 300  # sets that one child runs
SECONDS = 20  # for one call
CRASHED = "crashed or ran too long"
# Parameters that say nothing about the result, or make it random.
_LEFT_OUT = {
    "name", "seed", "dtype_hint", "swap_memory", "parallel_iterations", "back_prop", "summarize",
    "message", "data", "timeout",
}  # fmt: skip
_FACTORS = {
    "i8": 25, "u8": 25, "i16": 6000, "u16": 6000, "i": 4 * 10**8, "u32": 4 * 10**8, "l": 10**18,
    "u64": 10**18, "f": 1e30, "d": 1e200, "h": 6000, "bf": 1e30,
}  # fmt: skip
_OPERAND = re.compile(
    r"\b(" + "|".join(sorted(_LETTERS, key=len, reverse=True)) + r")\((\d[\d, ]*)?\)"
)
_VALUE = r"(?:\[[^\]]*\]|\([^)]*\)|\"[^\"]*\"|[-\w.]+(?:\([^)]*\))?)"
_GIVEN = re.compile(rf"(\w+)=({_VALUE})")
_NUMBER = re.compile(r"(?<![\w.(])-?\d+(?![\w.])")


class Mutation:
    """Changes of argument sets, drawn from one generator of random numbers."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.sets = [c for table in TABLES for c in calls(table)]
        self.parameters = json.loads(FILE.read_text())
        self.values: dict[str, set[str]] = {}  # that sets give to a parameter
        for call in self.sets:
            for name, value in _GIVEN.findall(call.text):
                self.values.setdefault(name, set()).add(value)

    def drawn(self, count: int) -> list[tuple[str, str, bool]]:
        """So many sets that no table has."""
        known = {(c.name, c.text) for c in self.sets}
        found: dict[tuple[str, str], bool] = {}
        for _ in range(30 * count):
            call = self.draw.choice(self.sets)
            text = self.changed(call.name, call.text)
            if text and self.draw.random() < 0.3:
                text = self.changed(call.name, text) or text
            if text and (call.name, text) not in known:
                found[call.name, text] = call.shapes_only
            if len(found) == count:
                break
        return [(name, text, shapes_only) for (name, text), shapes_only in found.items()]

    def changed(self, name: str, text: str) -> str | None:
        """A text with one change; None where the kind of change that is drawn finds no place."""
        kinds: list[Callable[[str, str], str | None]] = [
            self._dtype, self._dtypes, self._large, self._special, self._shape, self._number,
            self._parameter, self._parameter, self._parameter,
        ]  # fmt: skip
        return self.draw.choice(kinds)(name, text)

    def _replaced(
        self, text: str, pattern: re.Pattern[str], new: Callable[[Any], str]
    ) -> str | None:
        places = list(pattern.finditer(text))
        if not places:
            return None
        place = self.draw.choice(places)
        return text[: place.start()] + new(place) + text[place.end() :]

    def _dtype(self, name: str, text: str) -> str | None:
        letter = self.draw.choice(list(_LETTERS))
        return self._replaced(text, _OPERAND, lambda m: f"{letter}({m[2] or ''})")

    def _dtypes(self, name: str, text: str) -> str | None:
        letter = self.draw.choice(list(_LETTERS))
        return _OPERAND.sub(lambda m: f"{letter}({m[2] or ''})", text)

    def _large(self, name: str, text: str) -> str | None:
        def new(place: Any) -> str:
            factor = _FACTORS.get(place[1], 1)
            if place[1] in ("f", "d", "h", "bf"):
                factor = self.draw.choice([factor, 7, 1e-3])
            return f"large({place[1]!r}, {factor}, {place[2] or ''})"

        return self._replaced(text, _OPERAND, new)

    def _special(self, name: str, text: str) -> str | None:
        pattern = re.compile(r"\b([fdh])\((\d[\d, ]*)?\)")
        return self._replaced(text, pattern, lambda m: f"special({m[1]!r}, {m[2] or ''})")

    def _shape(self, name: str, text: str) -> str | None:
        def new(place: Any) -> str:
            dims = [d for d in (place[2] or "").replace(" ", "").split(",") if d]
            at = self.draw.randrange(len(dims)) if dims else 0
            kind = self.draw.randrange(5)
            if kind == 0 or not dims:
                dims.insert(0, self.draw.choice("123"))
            elif kind == 1:
                dims.pop(at)
            else:
                dims[at] = ["0", "1", str(int(dims[at]) + self.draw.randrange(1, 4))][kind - 2]
            return f"{place[1]}({','.join(dims)})"

        return self._replaced(text, _OPERAND, new)

    def _number(self, name: str, text: str) -> str | None:
        def new(place: Any) -> str:
            number = int(place[0])
            return str(self.draw.choice([number + 1, number - 1, 0, -1, -2, 1, 2]))

        return self._replaced(text, _NUMBER, new)

    def _parameter(self, name: str, text: str) -> str | None:
        given = [p.partition("=") for p in self.parameters.get(name, ())]
        places = [(p, d) for p, has, d in given if has and p[0] != "*" and p not in _LEFT_OUT]
        if not places:
            return None
        parameter, default = self.draw.choice(places)
        values = self.values.get(parameter, set()) | self._likely(parameter, default)
        if not values:
            return None
        rest = re.sub(rf"(^|, ){parameter}={_VALUE}", "", text).lstrip(", ")
        return f"{rest}{', ' if rest else ''}{parameter}={self.draw.choice(sorted(values))}"

    def _likely(self, parameter: str, default: str) -> set[str]:
        if default in ("True", "False"):
            return {"True", "False"}
        if parameter in ("axis", "axes", "dim", "batch_dims"):
            return {"0", "1", "-1", "-2", "2", "[0]", "[0, 1]"}
        if parameter in ("dtype", "out_type", "output_type"):
            return {"float32", "float64", "int32", "int64", "float16", "uint8", "bool"}
        if re.fullmatch(r"-?\d+", default):
            return {"0", "1", "2", "-1", "3"}
        return {"0.5", "2.0", "0.0", "-1.0"} if re.fullmatch(r"-?\d+\.\d*", default) else set()


def run(library_name: str, file: Path) -> None:
    """What a library gives for each set of a file, a line each."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    library = importlib.import_module(library_name)
    warnings.simplefilter("ignore")
    sets = json.loads(file.read_text())
    results = file.with_suffix(f".{library_name}")
    results.write_text("")
    done = 0
    while done < len(sets):
        end = min(done + CHUNK, len(sets))
        child = os.fork()
        if not child:
            with results.open("a") as lines:
                for name, text, shapes_only in sets[done:end]:
                    signal.alarm(SECONDS)
                    print(json.dumps(_given(library, Call(name, text, shapes_only))), file=lines)
                    lines.flush()
            os._exit(0)
        os.waitpid(child, 0)
        done = len(results.read_text().splitlines())
        if done < end:
            with results.open("a") as lines:
                print(json.dumps([CRASHED, ""]), file=lines)
            done += 1


def _given(library: Any, call: Call) -> tuple[Any, str]:
    """What a call gives, and the message of the error if there is one."""
    message = ""

    def of() -> Any:
        nonlocal message
        try:
            return call.described(call.of(library, lambda tensor: tensor))
        except Exception as error:
            message = str(error)[:300]
            raise

    return outcome(of), message


def compare(file: Path) -> None:
    """Print what differs, and how much of each kind there is."""
    sets = json.loads(file.read_text())
    given = [
        [json.loads(line) for line in file.with_suffix(f".{name}").read_text().splitlines()]
        for name in ("tensorflow", "treadle")
    ]
    kinds: Counter[str] = Counter()
    for (name, text, _), *results in zip(sets, *given, strict=True):
        (wanted, error), (found, own_error) = results
        kind = _kind(wanted, found)
        kinds[kind] += 1
        if kind != "same":
            print(f"{kind}: {name}({text})")
            print(f"    tensorflow: {json.dumps(wanted)[:300]} {error}")
            print(f"    treadle:    {json.dumps(found)[:300]} {own_error}")
    print(json.dumps(kinds))


def _kind(wanted: Any, found: Any) -> str:
    raises = [isinstance(x, str) and x.startswith(RAISES) for x in (wanted, found)]
    if CRASHED in (wanted, found):
        return f"{'tensorflow' if wanted == CRASHED else 'treadle'} crashed"
    if not differences(wanted, found):
        return "same"
    if all(raises):
        return "another error"
    return (
        ("only treadle raises" if raises[1] else "only tensorflow raises")
        if any(raises)
        else "values"
    )


def main(command: str, *args: str) -> None:
    if command == "make":
        seed, count, file = args
        Path(file).write_text(json.dumps(Mutation(int(seed)).drawn(int(count))))
    elif command == "run":
        run(args[0], Path(args[1]))
    else:
        compare(Path(args[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
