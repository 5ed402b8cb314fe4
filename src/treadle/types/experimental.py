"""How objects of users' classes count as arguments of functions (``td.types.experimental``)."""

from __future__ import annotations

from treadle.core.tensor import Tensor as TensorLike
from treadle.core.trace_types import SupportsTracingProtocol, TraceType, TracingContext
from treadle.names import missing_in
from treadle.tracing.concrete import ConcreteFunction
from treadle.tracing.function import Function as GenericFunction
from treadle.tracing.function import Function as PolymorphicFunction
from treadle.tracing.function_type import FunctionType

__all__ = [
    "ConcreteFunction",
    "FunctionType",
    "GenericFunction",
    "PolymorphicFunction",
    "SupportsTracingProtocol",
    "TensorLike",
    "TraceType",
    "TracingContext",
]

__getattr__ = missing_in(__name__)
