"""The module of the convolution routines."""

from __future__ import annotations

from treadle.runtime.cpu.convolution.filter_gradient import add_filter_gradient
from treadle.runtime.cpu.convolution.forward import add_forward
from treadle.runtime.cpu.convolution.frame import add_frames
from treadle.runtime.cpu.convolution.input_gradient import add_input_gradient
from treadle.runtime.cpu.library_text import add_vector_loops
from treadle.runtime.cpu.llvm_text import Module
from treadle.runtime.cpu.matmul.packing import add_packing


def add_convolutions(module: Module, element: str) -> None:
    """Add ``@conv2d_float``, ``@conv2d_backprop_input_float`` and ``..._filter_float``."""
    add_vector_loops(module, element)
    add_packing(module, element)
    add_frames(module, element)
    add_forward(module, element)
    add_input_gradient(module, element)
    add_filter_gradient(module, element)
