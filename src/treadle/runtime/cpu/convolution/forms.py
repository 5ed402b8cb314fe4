"""How a convolution is divided: by short convolutions where these take it, else directly."""

from __future__ import annotations

from treadle.runtime.cpu.convolution import tiling
from treadle.runtime.cpu.convolution.tiling import Form, Geometry, Tiling
from treadle.runtime.cpu.convolution.winograd_tiling import (
    takes_winograd,
    winograd_rule,
    winograd_tiling,
)
from treadle.runtime.cpu.target import Target


def rule(name: str, g: Geometry, target: Target) -> Form:
    """What is chosen for an op, one of the three, where nobody tried out others."""
    find = winograd_rule if takes_winograd(name, g) else tiling.rule
    return find(name, g, target)


def tiling_of(name: str, g: Geometry, target: Target, form: Form | None = None) -> Tiling:
    """The division of an op's work on a machine; by default in the form of `rule`."""
    form = rule(name, g, target) if form is None else form
    find = winograd_tiling if takes_winograd(name, g) else tiling.tiling_of
    return find(name, g, target, form)
