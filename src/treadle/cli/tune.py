"""`treadle tune`: tries out the products and convolutions of a function, and shows the gain."""

import argparse

from rich.console import Console
from rich.table import Table

from treadle.tuner import Tuned, routines_of, tune

from .bench import check_writable, write
from .errors import UsageError
from .target import find_function, parse_arguments


def run(options: argparse.Namespace) -> None:
    """Tune the routines, print the table, and keep the winners."""
    function, arguments = find_function(options.function), parse_arguments(options.args)
    if options.json is not None:
        check_writable(options.json)
    console, found = Console(), []
    try:
        routines = routines_of(function, *arguments)
    except TypeError as error:
        hint = "" if options.args else "; give arguments: --args 'float32[3,4]' 2 ..."
        message = str(error).partition("\n")[0]
        raise UsageError(f"{options.function}: {message}{hint}") from None
    with console.status("trying out products and convolutions"):
        found = list(tune(routines))
    if not found:
        console.print("there is no product or convolution that could be divided otherwise")
    else:
        console.print(table(found))
    if options.json is not None:
        write(options.json, {"routines": [report(each) for each in found]}, console)


def table(found: list[Tuned]) -> Table:
    shown = Table(title="µs of processor time of the thread that has most to do")
    shown.add_column("product (m x n x k) or convolution")
    for heading in ("candidates", "as before", "now", "gain"):
        shown.add_column(heading, justify="right")
    shown.add_column("what changed")
    for each in found:
        shown.add_row(
            each.title,
            str(each.tried),
            f"{each.seconds * 1e6:,.1f}",
            f"{each.best * 1e6:,.1f}",
            f"{each.gain:.2f} x",
            each.change,
        )
    return shown


def report(each: Tuned) -> dict[str, object]:
    """The figures of one routine."""
    return {
        "routine": each.title,
        "candidates": each.tried,
        "before_us": each.seconds * 1e6,
        "now_us": each.best * 1e6,
        "gain": each.gain,
        "change": each.change,
    }
