"""The modules of the convolution routines."""

from __future__ import annotations

from treadle.runtime.cpu.convolution.filter_gradient import add_filter_gradient
from treadle.runtime.cpu.convolution.forward import add_forward
from treadle.runtime.cpu.convolution.frame import add_frames
from treadle.runtime.cpu.convolution.input_gradient import add_input_gradient
from treadle.runtime.cpu.library_text import add_vector_loops
from treadle.runtime.cpu.llvm_text import Module


def add_convolution(module: Module, name: str, element: str) -> None:
    """Add ``@conv2d_float``, ``@conv2d_backprop_input_float`` or ``..._filter_float``: each is a
    module of its own."""
    add_vector_loops(module, element)
    add_frames(module, element)
    _ROUTINES[name](module, element)


_ROUTINES = {
    "conv2d": add_forward,
    "conv2d_backprop_input": add_input_gradient,
    "conv2d_backprop_filter": add_filter_gradient,
}
