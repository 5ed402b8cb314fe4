"""Program text on the terminal: highlighted where there is colour, and never cut or wrapped."""

import textwrap

from rich.console import Console
from rich.syntax import Syntax


def print_code(console: Console, code: str, language: str = "python") -> None:
    """Print `code` indented by two columns."""
    text = textwrap.indent(code.strip("\n"), "  ")
    highlighted = Syntax("", language, background_color="default").highlight(text)
    highlighted.rstrip()
    console.print(highlighted, soft_wrap=True)
