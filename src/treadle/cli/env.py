"""`treadle env`: versions, the machine that programs are made for, and how code is fitted to it."""

import argparse
import dataclasses
import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from treadle.machine import facts, measure, this_machine, using

from .errors import UsageError


def measured_facts() -> list[tuple[str, str, str]]:
    """What later processes will find."""
    with using(dataclasses.replace(this_machine(), measured=measure())):
        return list(facts())


def run(options: argparse.Namespace) -> None:
    """Print the table, or one JSON object."""
    try:
        found = measured_facts() if options.measure else list(facts())
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.json:
        print(json.dumps({name: value for name, value, _ in found}, indent=1))
        return
    shown = Table(title="what programs are made for")
    for heading in ("name", "value", "what it is"):
        shown.add_column(heading, overflow="fold")
    for row in found:
        shown.add_row(*map(escape, row))
    Console().print(shown)
