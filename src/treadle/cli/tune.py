"""`treadle tune`: tries out the matrix products of a function, and shows what that gained."""

import argparse

from rich.console import Console
from rich.table import Table

from treadle.tuner import Tuned, products_of, tune

from .bench import check_writable, write
from .errors import UsageError
from .target import find_function, parse_arguments


def run(options: argparse.Namespace) -> None:
    """Tune the products, print the table, and keep the winners."""
    function, arguments = find_function(options.function), parse_arguments(options.args)
    if options.json is not None:
        check_writable(options.json)
    console, found = Console(), []
    try:
        products = products_of(function, *arguments)
    except TypeError as error:
        hint = "" if options.args else "; give arguments: --args 'float32[3,4]' 2 ..."
        message = str(error).partition("\n")[0]
        raise UsageError(f"{options.function}: {message}{hint}") from None
    with console.status("trying out products"):
        found = list(tune(products))
    if not found:
        console.print("there is no matrix product of known sizes that could be divided otherwise")
    else:
        console.print(table(found))
    if options.json is not None:
        write(options.json, {"products": [report(each) for each in found]}, console)


def table(found: list[Tuned]) -> Table:
    shown = Table(title="products, µs of processor time of the thread that has most to do")
    shown.add_column("product m x n x k")
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
    """The figures of one product."""
    return {
        "product": each.title,
        "candidates": each.tried,
        "before_us": each.seconds * 1e6,
        "now_us": each.best * 1e6,
        "gain": each.gain,
        "change": each.change,
    }
