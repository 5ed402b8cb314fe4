"""`treadle compile`: a function as a shared object with a C header."""

import argparse

import treadle as td

from .errors import UsageError
from .target import find_function, parse_arguments


def run(options: argparse.Namespace) -> None:
    function = find_function(options.function)
    arguments = parse_arguments(options.args)
    name = options.function.rpartition(":")[2].rpartition(".")[2]
    try:
        made = td.shared_object.export(
            {name: (function, *arguments)}, options.out, target=options.target,
            threads=options.threads, name=options.name, compiler=options.compiler,
        )  # fmt: skip
    except TypeError as error:
        # Above all a missing argument: the message names it.
        hint = "" if options.args else "; give arguments: --args 'float32[3,4]' 2 ..."
        message = str(error).partition("\n")[0]
        raise UsageError(f"{options.function}: {message}{hint}") from None
    except (td.errors.OpError, ValueError) as error:
        raise UsageError(str(error)) from None
    print(f"{made.library}: {made.library.stat().st_size:,} bytes for {options.target}")
    print(f"{made.header}: {', '.join(made.functions.values())}")
