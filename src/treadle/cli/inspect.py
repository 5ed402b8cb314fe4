"""`treadle inspect`: the stages of a function, from its source to assembly."""

import argparse
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.rule import Rule

import treadle as td

from .code import print_code
from .errors import UsageError
from .target import find_function, parse_arguments

LANGUAGES = {
    "source": "python", "autograph": "python", "llvm": "llvm", "assembly": "nasm", "cuda": "cuda",
    "ptx": "ptx",
}  # fmt: skip


def run(options: argparse.Namespace) -> None:
    function = find_function(options.function)
    arguments = parse_arguments(options.args)
    console = Console()
    try:
        with _device(options.device):
            stages = td.inspect.stages(function, *arguments)
    except TypeError as error:
        # Above all a missing argument: the message names it.
        hint = "" if options.args else "; give arguments: --args 'float32[3,4]' 2 ..."
        message = str(error).partition("\n")[0]
        raise UsageError(f"{options.function}: {message}{hint}") from None
    for name, text in select(stages, options.stage).items():
        console.print(Rule(name, align="left"))
        print_code(console, text, LANGUAGES.get(name, "text"))


def _device(name: str | None) -> AbstractContextManager[Any]:
    """The scope of a device, which must be there; None: no scope."""
    if name is None:
        return nullcontext()
    try:
        spec = td.DeviceSpec.from_string(name)
    except ValueError as error:
        raise UsageError(str(error).partition("\n")[0]) from None
    known = [device.name for device in td.config.list_logical_devices()]
    if f"/device:{spec.device_type}:{spec.device_index or 0}" not in known:
        names = ", ".join(each.removeprefix("/device:") for each in known)
        raise UsageError(f"there is no device {name!r}: there are {names} (see treadle env)")
    return td.device(spec)


def select(stages: Mapping[str, str], names: list[str] | None) -> Mapping[str, str]:
    """The stages called `names`, or else those whose names start so; all for None."""
    if not names:
        return stages
    unknown = [name for name in names if not any(stage.startswith(name) for stage in stages)]
    if unknown:
        raise UsageError(f"there is no stage {unknown[0]!r}: {', '.join(stages)}")
    whole = [name for name in names if name in stages]
    begun = tuple(name for name in names if name not in stages)
    return {n: stages[n] for n in stages if n in whole or n.startswith(begun)}
