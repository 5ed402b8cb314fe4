"""``td.dtypes``: the element types of tensors, and conversions between them."""

from typing import TYPE_CHECKING

from treadle.core.dtypes import (
    ALL,
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from treadle.names import provided
from treadle.ops.elementwise.complex_numbers import (
    complex,
)
from treadle.ops.variable_casts import cast

if TYPE_CHECKING:
    from treadle.ops.elementwise.clipping import (
        saturate_cast,
    )

__all__ = [
    "ALL",
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "saturate_cast",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

__getattr__ = provided(__name__, {
    "treadle.ops.elementwise.clipping": "saturate_cast",
})  # fmt: skip
