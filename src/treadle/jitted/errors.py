"""Why the control flow of a jitted function cannot become the graph's."""

from __future__ import annotations


class NotStaged(TypeError):
    """A loop or branch cannot be one of the graph: its variables do not keep their structure."""


class NoForm(TypeError):
    """A value that the graph cannot hold, or two that it cannot hold in one variable."""
