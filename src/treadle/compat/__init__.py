"""``td.compat``: TensorFlow 1, and what programs for several versions of TensorFlow use."""

import opcode
import sys
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from treadle.compat import replacement
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.compat import v1, v2
    from treadle.compat.python_values import (
        as_bytes,
        as_str,
        as_str_any,
        as_text,
        bytes_or_text_types,
        complex_types,
        dimension_at_index,
        dimension_value,
        forward_compatibility_horizon,
        forward_compatible,
        integral_types,
        path_to_str,
        real_types,
    )
    from treadle.compat.replacement.finder import as_tensorflow

__getattr__ = provided(
    __name__,
    {
        "treadle.compat": "v1 v2",
        "treadle.compat.python_values": "as_bytes as_str as_str_any as_text bytes_or_text_types "
        "complex_types dimension_at_index dimension_value forward_compatibility_horizon "
        "forward_compatible integral_types path_to_str real_types",
        "treadle.compat.replacement.finder": "as_tensorflow",
    },
)


def _imports(frame: FrameType) -> bool:
    """Whether the instruction at which a frame stands is that of an import statement."""
    at = frame.f_code.co_code[frame.f_lasti]
    return opcode.opname[at] == "IMPORT_FROM" or "importlib" in frame.f_code.co_filename


class _Compat(ModuleType):
    """This module, which tells the two ways apart in which programs reach TensorFlow 1's names."""

    @property
    def v1(self) -> Any:
        """TensorFlow 1's names.

        ``import treadle.compat.v1 as tf`` is the first line of a program of TensorFlow 1, whose
        calls are written into graphs. A program that says ``tf.compat.v1.div`` is one of
        TensorFlow 2, whose calls give values, until it calls `disable_eager_execution` or enters a
        graph.
        """
        module = __getattr__("v1")
        means_graphs = _imports(sys._getframe(1)) and not replacement.is_active
        module.values.Mode.reached(by_import=means_graphs)
        return module

    @v1.setter
    def v1(self, module: Any) -> None:
        """The import system says that the module is there: `importlib` has it."""


sys.modules[__name__].__class__ = _Compat

__all__ = [
    "as_tensorflow",
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_at_index",
    "dimension_value",
    "forward_compatibility_horizon",
    "forward_compatible",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
    "v2",
]
