"""Random graphs of tests/runtime/fuzz: the quick part. `fuzz/run.py` is the long one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.fuzz.compare import EPSILON, Difference, agree, check, eager
from tests.runtime.fuzz.generate import generate
from tests.runtime.fuzz.program import Block, Program, Step, steps_of, text
from tests.runtime.fuzz.registry import OPERATIONS, Operation
from tests.runtime.fuzz.shrink import shrink

pytestmark = pytest.mark.thorough

SEEDS = [0, *range(2, 9), 10, 11, *range(14, 20)]  # without the largest


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STRICT", "1")


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ways_of_running_agree(seed: int) -> None:
    assert check(generate(seed), seed) >= 5


def test_a_seed_gives_one_program() -> None:
    assert text(generate(3)) == text(generate(3)) != text(generate(4))


def test_programs_use_most_operations() -> None:
    used = {s.op for seed in range(40) for s in steps_of(generate(seed).block)}
    assert len(used & set(OPERATIONS)) > 0.6 * len(OPERATIONS)
    assert {"while", "cond", "gradient", "read", "assign"} <= used


def test_differences_are_found_and_programs_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation that is wrong while something traces is found, and little more is shown."""
    plain = OPERATIONS["cube"]

    def wrong(x):
        return plain.run(x) * (1.5 if getattr(x, "is_symbolic", False) else 1)

    monkeypatch.setitem(OPERATIONS, "cube", Operation(wrong, plain.choose))
    names = ["square", "cube", "negative", "abs", "plus"]
    steps = tuple(Step(n, (k,), {}, (k + 1,)) for k, n in enumerate(names))
    program = Program(Block((0,), steps, (2, 5)), {0: np.arange(1.0, 4.0)})

    def fails(other: Program) -> bool:
        try:
            check(other, 0, ["native"])
        except Difference:
            return True
        return False

    assert fails(program)
    assert [s.op for s in steps_of(shrink(program, fails).block)] == ["cube"]


def test_what_counts_as_rounding() -> None:
    wanted = np.array([1.0, 100.0, np.inf, np.nan], np.float32)
    near = wanted * np.float32(1 + 1e-6)
    assert agree(near, wanted, None, EPSILON)
    for k, other in enumerate([1.1, 100.1, -np.inf, 0.0]):
        wrong = wanted.copy()
        wrong[k] = other
        assert not agree(wrong, wanted, None, EPSILON)
    whole = np.array([1, 2])
    assert not agree(whole, whole + 1, None, EPSILON)
    assert agree(whole, whole + 1, np.ones(2), EPSILON)  # noise moves them
    moved = np.array([0.2, 0.0, 0.0, 0.0])
    assert agree(np.array([1.1, 100.0, np.inf, np.nan], np.float32), wanted, moved, EPSILON)


def test_programs_run_for_several_sizes() -> None:
    program = next(p for p in map(generate, range(99)) if p.batch and not p.variables)
    (value, axis), *_ = program.batch.items()
    assert program.of_size(4).arrays[value].shape[axis] == 4
    assert len(eager(program).results) == len(program.block.results)
