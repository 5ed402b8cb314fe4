"""AutoGraph: ordinary Python control flow on tensors becomes control flow of the graph."""

from __future__ import annotations

from treadle.autograph import experimental
from treadle.autograph.api import converted, tf_convert, to_code, to_graph
from treadle.autograph.errors import (
    AutoGraphError,
    ConversionError,
    SourceNotFoundError,
    StagingError,
    UndefinedVariableError,
    UnsupportedSyntaxError,
)
from treadle.autograph.experimental import do_not_convert
from treadle.autograph.logs import set_verbosity, trace

__all__ = [
    "AutoGraphError",
    "ConversionError",
    "SourceNotFoundError",
    "StagingError",
    "UndefinedVariableError",
    "UnsupportedSyntaxError",
    "converted",
    "do_not_convert",
    "experimental",
    "set_verbosity",
    "tf_convert",
    "to_code",
    "to_graph",
    "trace",
]
