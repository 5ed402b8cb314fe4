"""A made-up front end of cuDNN: the calls that treadle makes, over memory of the processor.

Graphs are judged in the order in which they are built, and executed by NumPy. `NAMES` has what is
called; a test looks whether the real front end has it.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.runtime.gpu.products import ACTIVATIONS, strided
from treadle.core import dtypes

NAMES = {
    "cudnn": ["create_handle", "set_stream", "pygraph", "data_type", "numerical_note", "heur_mode"],
    "cudnn.data_type": ["FLOAT", "HALF", "BFLOAT16"],
    "cudnn.numerical_note": ["NONDETERMINISTIC", "TENSOR_CORE", "DOWN_CONVERT_INPUTS"],
    "cudnn.heur_mode": ["A", "FALLBACK"],
    "cudnn.pygraph": [
        "tensor", "conv_fprop", "conv_dgrad", "conv_wgrad", "validate", "build_operation_graph",
        "create_execution_plans", "deselect_numeric_notes", "check_support", "build_plans",
        "get_workspace_size", "execute", "bias", "relu", "gelu_approx_tanh",
    ],
    "cudnn.tensor": ["set_output", "set_dim", "set_stride", "set_data_type"],
}  # fmt: skip

data_type = SimpleNamespace(FLOAT=dtypes.float32, HALF=dtypes.float16, BFLOAT16=dtypes.bfloat16)
numerical_note = SimpleNamespace(**{n: n for n in NAMES["cudnn.numerical_note"]})
heur_mode = SimpleNamespace(A="A", FALLBACK="FALLBACK")
ORDER = [
    "validate", "build_operation_graph", "create_execution_plans", "deselect_numeric_notes",
    "check_support", "build_plans",
]  # fmt: skip
WORKSPACE = 1024
built: list["pygraph"] = []
refused: set[str] = set()  # operations that no engine has
streams: dict[int, int] = {}


class cudnnGraphNotSupportedError(RuntimeError):
    pass


def create_handle() -> int:
    streams[len(streams) + 1] = 0
    return len(streams)


def set_stream(*, handle: int, stream: int) -> None:
    streams[handle] = stream


class Tensor:
    def __init__(self, dim: list[int], stride: list[int], kind: Any) -> None:
        self.dim, self.stride, self.kind, self.is_output = dim, stride, kind, False

    def set_output(self, value: bool) -> "Tensor":
        self.is_output = value
        return self

    def set_dim(self, dim: list[int]) -> "Tensor":
        self.dim = dim
        return self

    def set_stride(self, stride: list[int]) -> "Tensor":
        self.stride = stride
        return self

    def set_data_type(self, kind: Any) -> "Tensor":
        self.kind = kind
        return self

    def array(self, address: int) -> Any:
        return strided(address, self.kind.np_dtype, tuple(self.dim), tuple(self.stride))


class pygraph:
    def __init__(
        self, *, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: int
    ) -> None:
        assert intermediate_data_type is compute_data_type is data_type.FLOAT
        self.kind, self.handle, self.done = io_data_type, handle, 0
        self.operation, self.given, self.window = "", (), {}
        self.result = Tensor([], [], None)
        self.left_out: list[str] = []
        self.follows: list[str] = []
        built.append(self)

    def tensor(self, *, dim: list[int], stride: list[int], data_type: Any, name: str) -> Tensor:
        assert len(dim) == len(stride) == 4 and data_type is self.kind
        return Tensor(dim, stride, data_type)

    def bias(self, *, input: Tensor, bias: Tensor) -> Tensor:
        assert bias.dim[0] == bias.dim[2] == bias.dim[3] == 1
        self.given = *self.given, bias
        return self._follows("bias", input)

    def relu(self, *, input: Tensor) -> Tensor:
        return self._follows("relu", input)

    def gelu_approx_tanh(self, *, input: Tensor) -> Tensor:
        return self._follows("gelu", input)

    def _follows(self, name: str, operand: Tensor) -> Tensor:
        assert operand is self.result and not operand.is_output and not self.done
        self.follows.append(name)
        self.result = Tensor([], [], None)
        return self.result

    def _operation(self, name: str, *given: Tensor, **window: Any) -> Tensor:
        assert not self.operation and set(window) == {
            "pre_padding", "post_padding", "stride", "dilation"
        }  # fmt: skip
        assert min(*window["pre_padding"], *window["post_padding"]) >= 0
        self.operation, self.given, self.window = name, given, window
        return self.result

    def conv_fprop(self, *, image: Tensor, weight: Tensor, **window: Any) -> Tensor:
        return self._operation("conv_fprop", image, weight, **window)

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, **window: Any) -> Tensor:
        return self._operation("conv_dgrad", loss, filter, **window)

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, **window: Any) -> Tensor:
        return self._operation("conv_wgrad", image, loss, **window)

    def _step(self, name: str) -> None:
        assert ORDER[self.done] == name, f"{name} comes after {ORDER[: self.done]}"
        self.done += 1

    def validate(self) -> None:
        self._step("validate")
        assert self.result.is_output and self.result.dim

    def build_operation_graph(self) -> None:
        self._step("build_operation_graph")

    def create_execution_plans(self, modes: list[str]) -> None:
        self._step("create_execution_plans")
        assert modes == ["A", "FALLBACK"]

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        self._step("deselect_numeric_notes")
        self.left_out = notes

    def check_support(self) -> None:
        self._step("check_support")
        if refused & {self.operation, *self.follows}:
            raise cudnnGraphNotSupportedError("no engine")

    def build_plans(self) -> None:
        self._step("build_plans")

    def get_workspace_size(self) -> int:
        assert self.done == len(ORDER)
        return WORKSPACE

    def execute(self, pointers: dict[Tensor, int], workspace: int, *, handle: int) -> None:
        assert set(pointers) == {*self.given, self.result} and handle == self.handle
        assert workspace % 256 == 0
        arrays = [t.array(pointers[t]) for t in self.given]
        found = _COMPUTE[self.operation](self, *arrays[:2])
        for name in self.follows:
            found = found + arrays[2] if name == "bias" else ACTIVATIONS[name](found)
        self.result.array(pointers[self.result])[...] = found

    # -- by NumPy --------------------------------------------------------------------------------

    def _windows(self, images: Any, filters: list[int], counts: list[int]) -> Any:
        """For each tap its place in the filters, and the elements of padded images it meets."""
        steps, gaps = self.window["stride"], self.window["dilation"]
        for r in range(filters[2]):
            for s in range(filters[3]):
                rows, columns = (
                    slice(at * gap, at * gap + step * (count - 1) + 1, step)
                    for at, gap, step, count in zip((r, s), gaps, steps, counts, strict=True)
                )
                yield r, s, images[:, :, rows, columns]

    def _padded(self, dims: Any) -> tuple[Any, Any]:
        """Zeros with room for images and their padding, and the part that is the images."""
        before, after = self.window["pre_padding"], self.window["post_padding"]
        n, c, h, w = dims
        made = np.zeros((n, c, h + before[0] + after[0], w + before[1] + after[1]))
        return made, made[:, :, before[0] : before[0] + h, before[1] : before[1] + w]

    def _fprop(self, images: Any, filters: Any) -> Any:
        n, o, p, q = self.result.dim
        groups = images.shape[1] // filters.shape[1]
        padded, inside = self._padded(images.shape)
        inside[...] = images
        made = np.zeros((n, groups, o // groups, p, q))
        taps = filters.astype(np.float64).reshape(groups, o // groups, *filters.shape[1:])
        for r, s, met in self._windows(padded, list(filters.shape), [p, q]):
            x = met.reshape(n, groups, -1, p, q)
            made += np.einsum("ngcpq,goc->ngopq", x, taps[..., r, s])
        return made.reshape(n, o, p, q)

    def _dgrad(self, outputs: Any, filters: Any) -> Any:
        n, o, p, q = outputs.shape
        groups = self.result.dim[1] // filters.shape[1]
        padded, inside = self._padded(self.result.dim)
        taps = filters.astype(np.float64).reshape(groups, o // groups, *filters.shape[1:])
        y = outputs.astype(np.float64).reshape(n, groups, o // groups, p, q)
        for r, s, met in self._windows(padded, list(filters.shape), [p, q]):
            met += np.einsum("ngopq,goc->ngcpq", y, taps[..., r, s]).reshape(met.shape)
        return inside

    def _wgrad(self, images: Any, outputs: Any) -> Any:
        n, o, p, q = outputs.shape
        groups = images.shape[1] // self.result.dim[1]
        padded, inside = self._padded(images.shape)
        inside[...] = images
        made = np.zeros(self.result.dim)
        y = outputs.astype(np.float64).reshape(n, groups, o // groups, p, q)
        for r, s, met in self._windows(padded, self.result.dim, [p, q]):
            x = met.reshape(n, groups, -1, p, q)
            made[..., r, s] = np.einsum("ngcpq,ngopq->goc", x, y).reshape(o, -1)
        return made


_COMPUTE: Any = {
    "conv_fprop": pygraph._fprop, "conv_dgrad": pygraph._dgrad, "conv_wgrad": pygraph._wgrad,
}  # fmt: skip
