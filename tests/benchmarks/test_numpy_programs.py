"""The NumPy programs of the benchmark: jitted, and written for JAX, they do what NumPy does."""

import ast
import importlib.util
import json
import os
from pathlib import Path

import pytest

import treadle as td
from benchmarks.numpy_programs import PROGRAMS, in_jax
from benchmarks.numpy_programs.worker import agree, agree_by_value

TEXTS = Path(in_jax.__file__).parent
RECORDED = Path(__file__).parents[2] / "docs" / "results" / "numpy_programs.json"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    assert agree(program, td.jit(program.function), program.arguments(program.small))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program_in_jax(program):
    if importlib.util.find_spec("jax") is None:
        assert not os.environ.get("TREADLE_TEST_PEERS"), "the environment of peers has no JAX"
        pytest.skip("JAX is not installed; the recorded run has its answers")
    import jax

    with jax.enable_x64(True):
        run = in_jax.text(program)
        if run is not None:
            assert agree_by_value(program, run, program.arguments(program.small))


def test_the_recorded_run_had_every_peer():
    """Where benchmarks are run, JAX must be there, and its answers right."""
    programs = json.loads(RECORDED.read_text())["programs"]
    assert set(programs) == {program.name for program in PROGRAMS}
    wrong = {
        (name, library)
        for name, found in programs.items()
        for library in ("treadle", "jax")
        if not found[library].get("agrees")
    }
    assert wrong == {("union_find", "jax")}  # JAX has no text for it


def test_texts_for_jax_have_the_names_of_programs():
    known = {(program.function.__module__.rpartition(".")[2], program.name) for program in PROGRAMS}
    written = {
        (path.stem, node.name)
        for path in TEXTS.glob("*.py")
        if path.stem != "__init__"
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    assert written <= known
    assert {name for _, name in known - written} == {"union_find"}


def test_a_text_must_give_the_changed_arrays_too():
    program = next(p for p in PROGRAMS if p.name == "heat_rod")
    arguments = program.arguments(program.small)

    def right(u, v, steps):
        u, v = u.copy(), v.copy()
        program.function(u, v, steps)
        return u, v

    assert agree_by_value(program, right, arguments)
    assert not agree_by_value(program, lambda *args: right(*args)[0], arguments)
    assert not agree_by_value(program, lambda *args: right(*args)[::-1], arguments)
