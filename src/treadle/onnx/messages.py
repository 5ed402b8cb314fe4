"""From blocks of nodes to ONNX's messages, with the package onnx.

It is an extra (``pip install 'treadle[onnx]'``), loaded when the first model is exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.shapes import symbol_name
from treadle.core.spec import ListSpec, Spec
from treadle.ops.onnx.call import OPSET, Block, OnnxNode
from treadle.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


def _package() -> Any:
    """The package onnx.

    Raises:
        ImportError: it is not installed; the text has the command that brings it.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            f"models are exported with the package onnx, which cannot be imported ({error}): "
            f"pip install 'treadle[onnx]'{at(user_origin())}"
        ) from None
    return onnx


def model_of(block: Block, name: str, dims: dict[str, str]) -> Any:
    """A ModelProto of a block of nodes.

    Args:
        dims: what open dims are called, by their symbols.
    """
    onnx = _package()
    messages = _Messages(onnx, dims)
    graph = messages.graph(block, name)
    read = block.read()
    constants = {k: v for k, v in block.constants.values.items() if k in read}
    graph.initializer.extend(messages.tensor(v, k) for k, v in constants.items())
    opset = onnx.helper.make_opsetid("", OPSET)
    made = onnx.helper.make_model(
        graph, opset_imports=[opset], producer_name="treadle", producer_version=__version__
    )
    made.ir_version = onnx.helper.find_min_ir_version_for([opset])
    return made


class _Messages:
    def __init__(self, onnx: Any, dims: dict[str, str]) -> None:
        self._onnx, self._dims = onnx, dims

    def graph(self, block: Block, name: str) -> Any:
        helper = self._onnx.helper
        nodes = [self._node(n) for n in block.nodes]
        inputs, outputs = (
            [helper.make_value_info(n, self._type(spec)) for n, spec in values]
            for values in (block.params, block.results)
        )
        return helper.make_graph(nodes, name, inputs, outputs)

    def tensor(self, array: Any, name: str) -> Any:
        return self._onnx.numpy_helper.from_array(array, name)

    def _number(self, dtype: DType) -> int:
        if dtype.np_dtype.hasobject:
            return int(self._onnx.TensorProto.STRING)
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(dtype.np_dtype))

    def _node(self, node: OnnxNode) -> Any:
        attrs = {key: self._attr(value, f"{node.name}/{key}") for key, value in node.attrs.items()}
        return self._onnx.helper.make_node(
            node.kind, node.inputs, node.outputs, name=node.name, doc_string=node.doc or None,
            **attrs,
        )  # fmt: skip

    def _attr(self, value: Any, name: str) -> Any:
        if isinstance(value, Block):
            return self.graph(value, name)
        if isinstance(value, DType):
            return self._number(value)
        return self.tensor(value, name) if isinstance(value, np.ndarray) else value

    def _type(self, spec: Spec) -> Any:
        helper, number = self._onnx.helper, self._number(spec.dtype)
        if isinstance(spec, ListSpec):
            return helper.make_sequence_type_proto(helper.make_tensor_type_proto(number, None))
        return helper.make_tensor_type_proto(number, self._shape(spec))

    def _shape(self, spec: Spec) -> Sequence[int | str | None]:
        names = self._dims
        return [d if isinstance(d, int) else names.get(symbol_name(d) or "") for d in spec.dims]
