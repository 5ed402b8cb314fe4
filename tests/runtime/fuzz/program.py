"""Random programs as data: steps over numbered values, with bodies for loops and the like.

Data can be run eagerly, traced, made smaller and printed; a Python function could only be called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import treadle as td


@dataclass(frozen=True)
class Step:
    """``outs = op(*args, **attrs)``. Numbers of values are unique over a program."""

    op: str
    args: tuple[int, ...]
    attrs: Mapping[str, Any]
    outs: tuple[int, ...]
    bodies: tuple[Block, ...] = ()


@dataclass(frozen=True)
class Block:
    """A body: what it is called with, what it does, what it gives. It sees all outer values."""

    params: tuple[int, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """A block with arrays for its parameters.

    Attributes:
        batch: the axes of parameters whose size is not known when the program is traced.
        variables: the arrays that variables start with.
    """

    block: Block
    arrays: Mapping[int, Any]
    variables: Mapping[int, Any] = field(default_factory=dict)
    batch: Mapping[int, int] = field(default_factory=dict)

    def of_size(self, size: int) -> Program:
        """The program with arguments of another size."""
        arrays = dict(self.arrays)
        for value, axis in self.batch.items():
            arrays[value] = np.take(arrays[value], np.arange(size), axis, mode="wrap")
        return replace(self, arrays=arrays)

    def specs(self) -> list[td.TensorSpec]:
        """What the parameters are: sizes along axes of `batch` are None."""
        found = []
        for value in self.block.params:
            dims: list[int | None] = list(self.arrays[value].shape)
            if value in self.batch:
                dims[self.batch[value]] = None
            found.append(td.TensorSpec(dims, self.arrays[value].dtype))
        return found


def steps_of(block: Block) -> Iterator[Step]:
    """All steps, inner ones included."""
    for step in block.steps:
        yield step
        for body in step.bodies:
            yield from steps_of(body)


def text(program: Program) -> str:
    """The program to read."""
    lines = []
    for value in program.block.params:
        array = program.arrays[value]
        batch = f", axis {program.batch[value]} of any size" if value in program.batch else ""
        data = f" = {array.tolist()}" if array.size <= 4 else ""
        lines.append(f"v{value}: {array.dtype} {array.shape}{batch}{data}")
    for value, array in program.variables.items():
        lines.append(f"variable {value}: {array.dtype} {array.shape}")
    return "\n".join([*lines, *_block_lines(program.block, "")])


def _block_lines(block: Block, indent: str) -> Iterator[str]:
    for step in block.steps:
        outs = ", ".join(f"v{v}" for v in step.outs)
        args = [f"v{v}" for v in step.args] + [f"{k}={v!r}" for k, v in step.attrs.items()]
        yield f"{indent}{outs} = {step.op}({', '.join(args)})"
        for body in step.bodies:
            yield f"{indent}  body({', '.join(f'v{v}' for v in body.params)}):"
            yield from _block_lines(body, indent + "    ")
    yield f"{indent}return {', '.join(f'v{v}' for v in block.results)}"
