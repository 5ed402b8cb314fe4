"""How exactly devices multiply float32 numbers: a setting (`td.config.experimental`)."""

from __future__ import annotations


class _Precision:
    """Attributes:
    tensor_float: whether products may round their factors to TensorFloat-32, of 10 bits.
    """

    tensor_float = False


precision = _Precision()
