"""Runs programs that are data: eagerly, or while something traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import treadle as td
from tests.runtime.fuzz import movement, pointwise, products, reductions  # noqa: F401
from tests.runtime.fuzz.program import Block, Program, Step
from tests.runtime.fuzz.regions import REGIONS
from tests.runtime.fuzz.registry import OPERATIONS

Noise = Callable[[Any], Any]  # changes a value a little, to see what depends on rounding


def function(
    program: Program, variables: Mapping[int, td.Variable], noise: Noise | None = None
) -> Callable[..., list[Any]]:
    """The program as a function of tensors."""

    def run(*args: Any) -> list[Any]:
        env = dict(zip(program.block.params, args, strict=True))
        Run(variables, noise).block(program.block, env)
        return [env[v] for v in program.block.results]

    return run


@dataclass(frozen=True)
class Run:
    """Executes blocks, eagerly or while something traces."""

    variables: Mapping[int, td.Variable]
    noise: Noise | None = None

    def block(self, block: Block, env: dict[int, Any]) -> None:
        for step in block.steps:
            self.step(step, env)

    def step(self, step: Step, env: dict[int, Any]) -> None:
        args = [env[a] for a in step.args]
        if step.op in REGIONS:
            results = REGIONS[step.op](self, step, args, env)
        elif step.op in STATEFUL:
            results = STATEFUL[step.op](self.variables[step.attrs["variable"]], *args)
        else:
            results = OPERATIONS[step.op].run(*args, **step.attrs)
        if not isinstance(results, list | tuple):
            results = [results]
        for value, result in zip(step.outs, results, strict=True):
            env[value] = result if self.noise is None else self.noise(result)


def _update(method: str) -> Callable[..., list[Any]]:
    def run(variable: td.Variable, x: Any) -> list[Any]:
        getattr(variable, method)(x)
        return []

    return run


STATEFUL: dict[str, Callable[..., Any]] = {
    "read": lambda variable: variable.value(),
    "assign": _update("assign"),
    "assign_add": _update("assign_add"),
    "assign_sub": _update("assign_sub"),
}
