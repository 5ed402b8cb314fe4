"""Convolutions by cuDNN, through NVIDIA's front end for it (``import cudnn``) where both are
installed.

A graph of one operation, and of the bias and the activation that follow, is built for the sizes of
each convolution that comes; its plan is kept.
Images, filters and outputs have their channels last in memory. Engines whose sums have another
order each time are left out, and those that round float32 unless TensorFloat-32 is allowed.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.runtime.gpu.driver import Memory
from treadle.runtime.gpu.finish import GELU, RELU, Finish

Shape = tuple[int, int, int, int]
Allocate = Callable[[int], Memory]

# The front end's names of the dtypes that convolutions by cuDNN have.
KINDS: dict[DType, str] = {
    dtypes.float32: "FLOAT", dtypes.float16: "HALF", dtypes.bfloat16: "BFLOAT16",
}  # fmt: skip
# An op's name in the library -> the front end's, its operands, and the result.
_OPERATIONS = {
    "conv2d": ("conv_fprop", {"image": "images", "weight": "filters"}, "outputs"),
    "conv2d_backprop_input": ("conv_dgrad", {"loss": "outputs", "filter": "filters"}, "images"),
    "conv2d_backprop_filter": ("conv_wgrad", {"image": "images", "loss": "outputs"}, "filters"),
}
_ACTIVATIONS = {RELU: RELU, GELU: "gelu_approx_tanh"}
_LOG = logging.getLogger("treadle")


class Convolution(NamedTuple):
    """A convolution, or one of its gradients.

    Attributes:
        name: of the op in the library.
        images: [images, channels, height, width].
        filters: [outputs, channels of a group, height, width].
        outputs: [images, outputs, height, width].
        before, after: rows and columns of zeros around the images.
        tensor_float: whether factors of float32 may be rounded.
        finish: of the outputs.
    """

    name: str
    dtype: DType
    images: Shape
    filters: Shape
    outputs: Shape
    before: tuple[int, int]
    after: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    tensor_float: bool = False
    finish: Finish = Finish()


def has_cudnn() -> bool:
    """Whether the front end is installed; cuDNN may be missing for all that."""
    return importlib.util.find_spec("cudnn") is not None


class Plan:
    """A convolution as cuDNN computes it."""

    def __init__(self, cudnn: Cudnn, asked: Convolution) -> None:
        library, self.handle = cudnn.library, cudnn.handle
        kind = getattr(library.data_type, KINDS[asked.dtype])
        self.graph = library.pygraph(
            io_data_type=kind, intermediate_data_type=library.data_type.FLOAT,
            compute_data_type=library.data_type.FLOAT, handle=self.handle,
        )  # fmt: skip
        operation, operands, result = _OPERATIONS[asked.name]
        self.tensors: dict[str, Any] = {}
        self.channels = asked.outputs[1]
        for name in operands.values():
            dims, strides = layout(getattr(asked, name))
            self.tensors[name] = self.graph.tensor(
                dim=dims, stride=strides, data_type=kind, name=name
            )
        made = getattr(self.graph, operation)(
            **{given: self.tensors[name] for given, name in operands.items()},
            pre_padding=list(asked.before), post_padding=list(asked.after),
            stride=list(asked.strides), dilation=list(asked.dilations),
        )  # fmt: skip
        made = self._finished(made, asked.finish, kind)
        dims, strides = layout(getattr(asked, result))
        made.set_output(True).set_dim(dims).set_stride(strides).set_data_type(kind)
        self.tensors[result] = made
        self._choose(library, asked)
        size = int(self.graph.get_workspace_size())
        self.workspace = cudnn.allocate(max(size, 1))

    def _finished(self, made: Any, finish: Finish, kind: Any) -> Any:
        """The graph's last value: what comes before it stays in the registers of one kernel."""
        if finish.bias:
            dims, strides = layout((1, self.channels, 1, 1))
            bias = self.graph.tensor(dim=dims, stride=strides, data_type=kind, name="bias")
            self.tensors["bias"] = bias
            made = self.graph.bias(input=made, bias=bias)
        if finish.activation:
            made = getattr(self.graph, _ACTIVATIONS[finish.activation])(input=made)
        return made

    def _choose(self, library: Any, asked: Convolution) -> None:
        notes, graph = library.numerical_note, self.graph
        left_out = [notes.NONDETERMINISTIC]
        if asked.dtype is dtypes.float32 and not asked.tensor_float:
            left_out += [notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS]
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([library.heur_mode.A, library.heur_mode.FALLBACK])
        graph.deselect_numeric_notes(left_out)
        graph.check_support()
        graph.build_plans()

    def __call__(self, images: int, filters: int, outputs: int, bias: int = 0) -> None:
        """Let the device compute it.

        Args:
            images, filters, outputs, bias: addresses.
        """
        given = {"images": images, "filters": filters, "outputs": outputs, "bias": bias}
        pointers = {tensor: given[name] for name, tensor in self.tensors.items()}
        self.graph.execute(pointers, self.workspace.address, handle=self.handle)


class Cudnn:
    """Plans for one stream of the current device.

    Args:
        library: the front end.
        stream: the stream's handle.
        allocate: gives memory of the device.
    """

    def __init__(self, library: Any, stream: int, allocate: Allocate) -> None:
        self.library, self.allocate = library, allocate
        self.handle = library.create_handle()
        library.set_stream(handle=self.handle, stream=stream)
        self.plans: dict[Convolution, Plan | None] = {}

    def plan(self, asked: Convolution) -> Plan | None:
        """The plan for a convolution; None where cuDNN has none, which is said once."""
        if asked not in self.plans:
            self.plans[asked] = None
            try:
                self.plans[asked] = Plan(self, asked)
            except MemoryError:
                del self.plans[asked]
                raise
            except Exception as error:  # the front end's own, and those of its versions
                does = "finishes" if asked.finish != Finish() else "computes"
                _LOG.warning("a kernel of treadle %s %s: cuDNN: %s", does, asked, error)
        return self.plans[asked]


def cudnn_of(stream: int, allocate: Allocate) -> Cudnn | None:
    """cuDNN for a stream; None where it does not work, which is said."""
    try:
        return Cudnn(importlib.import_module("cudnn"), stream, allocate)
    except Exception as error:  # a library of another version, or none
        _LOG.warning("kernels of treadle compute convolutions: cuDNN: %s", error)
        return None


def layout(shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Dims and strides of an array whose second dim, the channels, is last in memory."""
    _, c, h, w = shape
    return list(shape), [h * w * c, 1, w * c, c]
