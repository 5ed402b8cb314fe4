"""`treadle passes`: what can be switched off by name, and what it does."""

import argparse

from rich.console import Console
from rich.table import Table

from treadle.passes import disabled_passes, switches


def run(options: argparse.Namespace) -> None:
    """Print the table; what TREADLE_DISABLE_PASSES names is marked."""
    off = disabled_passes()
    shown = Table(title="switched off by TREADLE_DISABLE_PASSES=name,name or td.passes.disabled")
    for heading in ("name", "of", "what it does, and why it comes where it comes"):
        shown.add_column(heading, overflow="fold")
    for switch in switches():
        mark = " (off)" if {switch.name, "all"} & off else ""
        if switch.required:
            mark = " (always on)"
        shown.add_row(switch.name + mark, switch.stage, switch.does)
    Console().print(shown)
