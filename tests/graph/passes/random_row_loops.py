"""Random loops over the rows and columns of arrays, of which some may be done at once."""

from __future__ import annotations

import random

import numpy as np

import treadle as td
from tests.jitted.differential import compiled_text
from treadle.core.switches import disabled

SIZE = 7


def program(seed: int) -> str:
    """The text of a function of the square arrays a, b and c that changes them."""
    rng = random.Random(seed)
    lines = ["import numpy as np", "", "", "def f(a, b, c):"]
    outer = rng.random() < 0.4
    indent = "    "
    if outer:
        lines.append(f"    for k in range({SIZE - 1}):")
        indent += "    "
    low, high = rng.choice([("0", f"{SIZE}"), ("1", f"{SIZE - 1}"), ("2", "5")])
    if outer and rng.random() < 0.6:
        low, high = rng.choice([("k + 1", f"{SIZE}"), ("0", "k"), ("0", "k + 1")])
    step = rng.choice(["", ", 2", "down"]) if not outer or low.isdigit() else ""
    bounds = f"{high} - 1, {low} - 1, -1" if step == "down" else f"{low}, {high}{step}"
    lines.append(f"{indent}for i in range({bounds}):")
    for _ in range(rng.randint(1, 3)):
        lines.append(f"{indent}    {_statement(rng, outer, low == '1')}")
    return "\n".join(lines) + "\n"


def _statement(rng: random.Random, outer: bool, inner: bool) -> str:
    if rng.random() < 0.25:
        return _element(rng, ["i", "i", "k", "k"] if outer else ["i", "i", "3"])
    column = rng.random() < 0.4
    target = _part(rng, rng.choice("ab"), column, ["i"] * 5 + ["k"] * outer + ["i - 1"] * inner)
    positions = ["i"] * 6 + ["2"] + ["k", "k"] * outer + ["i - 1", "i + 1"] * inner
    terms = [_part(rng, rng.choice("abc"), column, positions) for _ in range(rng.randint(1, 2))]
    extra = ["0.5", "i", "np.exp(-0.1 * i * i)", f"c[{rng.choice(positions)}, 1]"]
    extra += [f"np.sum({terms[0]})", f"np.max({terms[-1]})"]
    terms.append(rng.choice(extra))
    text = terms[0]
    for term in terms[1:]:
        text = f"{text} {rng.choice('+-*')} {term}"
    return f"{target} {rng.choice(['=', '=', '+=', '-='])} {text}"


def _element(rng: random.Random, positions: list[str]) -> str:
    row, column = rng.choice(positions), rng.choice(positions)
    values = [f"{rng.choice('ab')}[{column}, {row}]", f"c[{column}, 2] * i"]
    values += [f"np.sum(c[{row}] * c[{column}])", f"np.sum(b[:, {row}] * c[:, {column}])"]
    return (
        f"{rng.choice('ab')}[{row}, {column}] {rng.choice(['=', '=', '+='])} {rng.choice(values)}"
    )


def _part(rng: random.Random, name: str, column: bool, positions: list[str]) -> str:
    place = rng.choice(positions)
    return f"{name}[:, {place}]" if column else f"{name}[{place}]"


def difference(seed: int) -> str | None:
    """How the compiled function differs from NumPy, or from its iterations one after the other."""
    text = program(seed)
    function = compiled_text(text, f"of rows {seed}")
    numbers = np.random.default_rng(seed)
    given = [numbers.uniform(-1, 1, (SIZE, SIZE)) for _ in "abc"]
    expected, single, found = ([x.copy() for x in given] for _ in range(3))
    function(*expected)
    td.jit(function)(*found)
    with disabled("independent_iterations"):
        td.jit(lambda a, b, c: function(a, b, c))(*single)
    for a, b, c in zip(found, single, expected, strict=True):
        if not np.all(np.isfinite(c)):
            return None
        scale = max(1.0, float(np.max(np.abs(c))))
        if not np.allclose(a, c, 1e-9, 1e-11 * scale):
            return f"NumPy gives another result:\n{text}"
        if not np.allclose(a, b, 1e-11, 1e-13 * scale):
            return f"the loop gives another result:\n{text}"
        if "sum" not in text and not np.array_equal(a, b, equal_nan=True):
            return f"the loop has other bits:\n{text}"
    return None
