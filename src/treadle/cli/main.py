"""Arguments of the command line; each subcommand's module is imported when it is chosen."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from treadle.version import __version__

from .errors import UsageError

STAGES = (
    "source, autograph, graph (as traced), graph after passes, graph for the target, "
    "schedule, memory, kernels, llvm, assembly; on a GPU: launches, copies, cuda, ptx, sass"
)


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line instead of after the whole usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="treadle", description="Decorate, inspect and benchmark Python functions.")
    top.add_argument("--version", action="version", version=f"treadle {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="train a small CNN on digits, eager and graph")
    demo.add_argument("--epochs", type=positive, default=10, help="default: %(default)s")

    bench = commands.add_parser("bench", help="time eager against graph")
    bench.add_argument("--only", help="the workloads whose name contains this text")
    bench.add_argument(
        "--bisect-passes",
        action="store_true",
        help="what each pass and mechanism contributes: time graphs without each in turn",
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    bench.add_argument("--plot", type=Path, metavar="FILE", help="draw a plot there")

    commands.add_parser("passes", help="list the passes and mechanisms that can be switched off")

    env = commands.add_parser("env", help="what programs are made for: versions, machine, caches")
    env.add_argument("--json", action="store_true", help="as one JSON object")

    inspect = commands.add_parser("inspect", help="show the stages of a function")
    _add_function(inspect)
    inspect.add_argument(
        "--stage", action="append", metavar="NAME", help=f"only this stage: {STAGES}"
    )
    inspect.add_argument("--device", metavar="NAME", help="where it is to run, such as GPU:0")

    compile = commands.add_parser(
        "compile", help="write a function as a shared object with a C header, which needs no Python"
    )
    _add_function(compile)
    compile.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the library, such as libmodel.so"
    )
    compile.add_argument(
        "--target", default="native", metavar="NAME",
        help="native (the default), x86-64, x86-64-v2, x86-64-v3, x86-64-v4 or aarch64",
    )  # fmt: skip
    compile.add_argument("--threads", type=positive, metavar="N", help="the most that a call uses")
    compile.add_argument("--name", metavar="NAME", help="what names in C begin with")
    compile.add_argument("--compiler", metavar="COMMAND", help="the C compiler that links")

    upgrade = commands.add_parser(
        "upgrade", help="rewrite programs for TensorFlow 1 and 2, and tell what a person must do"
    )
    upgrade.add_argument("path", type=Path, metavar="FILE|FOLDER", help="a program, or many")
    upgrade.add_argument(
        "--out", type=Path, metavar="PATH",
        help="the file or folder to write; without it the changes are only shown",
    )  # fmt: skip
    upgrade.add_argument("--report", type=Path, metavar="FILE", help="write the report there: JSON")
    return top


def _add_function(command: argparse.ArgumentParser) -> None:
    """The arguments that name a function and say what to trace it with."""
    command.add_argument("function", metavar="MODULE:FUNCTION")
    command.add_argument(
        "--args",
        nargs="*",
        default=[],
        metavar="ARG",
        help="what to trace it with: float32[3,4], f32[?,4], int32[], or a Python literal",
    )


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status (2 for a wrong command line)."""
    try:
        options = parser().parse_args(argv)
        importlib.import_module(f"treadle.cli.{options.command}").run(options)
    except UsageError as error:
        print(f"treadle: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("treadle: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone; Python would complain again at exit.
        sys.stderr.close()
        return 141
    return 0
