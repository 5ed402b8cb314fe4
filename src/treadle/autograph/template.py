"""Templates, the results of conversions."""

from __future__ import annotations

import types
from typing import NamedTuple

from treadle.autograph.facts import Facts


class Template(NamedTuple):
    """The converted form of one code object, for functions whose names have certain facts.

    Attributes:
        text: the generated text.
        source: the name of the file with the source.
        lines: its lines; those after the text's own stand for expressions that come from another
            source line than the line they are printed on.
        origins: for each line the line of the source and the function that it belongs to.
        code: the compiled code; None where nothing had to be converted.
        asked: the facts, by dotted name.
        moved: expressions with those added numbers (`generated.parsed`).
    """

    text: str
    source: str
    lines: list[str]
    origins: list[tuple[int, str]]
    code: types.CodeType | None
    asked: dict[str, Facts]
    moved: list[tuple[int, int]]
