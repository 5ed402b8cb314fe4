"""The modules of the convolution routines."""

from __future__ import annotations

from treadle.runtime.cpu.convolution import TO_FILTER
from treadle.runtime.cpu.convolution.filter_gradient import add_filter_gradient
from treadle.runtime.cpu.convolution.forward import add_forward
from treadle.runtime.cpu.convolution.frame import add_frames
from treadle.runtime.cpu.convolution.input_gradient import add_input_gradient
from treadle.runtime.cpu.convolution.winograd import add_winograd
from treadle.runtime.cpu.convolution.winograd_filters import add_winograd_filters
from treadle.runtime.cpu.convolution.winograd_tiling import WINOGRAD
from treadle.runtime.cpu.library_text import add_vector_loops
from treadle.runtime.cpu.llvm_text import Module


def add_convolution(module: Module, name: str, element: str) -> None:
    """Add ``@conv2d_float``, ``@conv2d_backprop_input_float`` or ``..._filter_float``, or one of
    these by short convolutions (``@winograd3x3_conv2d_float``): each is a module of its own."""
    window, _, op = name.partition("_")
    if window.startswith(WINOGRAD):
        sides = [int(k) for k in window.removeprefix(WINOGRAD).split("x")]
        if op == TO_FILTER:
            add_winograd_filters(module, name, element, sides)
        else:
            add_winograd(module, name, op, element, sides)
        return
    add_vector_loops(module, element)
    add_frames(module, element)
    _ROUTINES[name](module, element)


_ROUTINES = {
    "conv2d": add_forward,
    "conv2d_backprop_input": add_input_gradient,
    "conv2d_backprop_filter": add_filter_gradient,
}
