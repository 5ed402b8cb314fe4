"""The exceptions of AutoGraph. Names follow ``tf.autograph``; each is also the built-in type that
plain Python would raise, where there is one."""

from __future__ import annotations


class AutoGraphError(Exception):
    """Something about the conversion of Python code."""


class ConversionError(AutoGraphError):
    """A function cannot be converted. The message names the user's file and line."""


class SourceNotFoundError(ConversionError, ValueError):
    """The source text of a function is not available."""


class UnsupportedSyntaxError(ConversionError, NotImplementedError):
    """A statement or expression that AutoGraph does not convert."""


class UndefinedVariableError(AutoGraphError, UnboundLocalError, ValueError):
    """A variable is read that was not assigned on the path that was taken."""


class StagingError(AutoGraphError):
    """Control flow over tensors that cannot be built, such as branches of different dtypes."""


class StagingTypeError(StagingError, TypeError):
    """Values of different types where the graph needs one type."""


class SharedElementsError(StagingTypeError):
    """A part of a tensor is assigned that another variable, which is read later, holds too."""


class StagingValueError(StagingError, ValueError):
    """Values of different shapes where the graph needs one shape."""
