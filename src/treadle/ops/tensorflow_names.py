"""TensorFlow's names for ops: the types of its operations, and what it calls them in a graph."""

from __future__ import annotations

# Types that are not the op's own name in capitals, and behind them the name that operations get
# where it is not that of the type.
_TYPES = {
    "add": "AddV2 add", "assign_variable": "AssignVariableOp",
    "byte_matmul": "BatchMatMulV3 MatMul", "concat": "ConcatV2 concat",
    "cond": "If cond", "conv2d": "Conv2D", "conv2d_backprop_filter": "Conv2DBackpropFilter",
    "conv2d_backprop_input": "Conv2DBackpropInput", "determinant": "MatrixDeterminant",
    "divide": "RealDiv truediv", "divide_no_nan": "DivNoNan div_no_nan",
    "dynamic_slice": "Slice", "eigh": "SelfAdjointEigV2", "expand_masked": "Where",
    "floordiv": "FloorDiv floordiv", "gather": "GatherV2", "index": "StridedSlice strided_slice",
    "inverse": "MatrixInverse", "iterator_get_next": "IteratorGetNext",
    "list_concat": "TensorListConcatV2", "list_get": "TensorListGetItem",
    "list_length": "TensorListLength", "list_new": "TensorListReserve",
    "list_push": "TensorListPushBack", "list_set": "TensorListSetItem",
    "list_stack": "TensorListStack", "list_unstack": "TensorListFromTensor",
    "log_determinant": "LogMatrixDeterminant", "matmul": "MatMul", "mod": "FloorMod mod",
    "multiply": "Mul mul", "negative": "Neg", "nonzero": "Where", "numpy_function": "PyFunc",
    "one_hot": "OneHot one_hot", "pow": "Pow pow", "print": "PrintV2",
    "py_function": "EagerPyFunc", "random_normal": "RandomStandardNormal random_normal",
    "random_poisson": "RandomPoissonV2", "random_truncated_normal": "TruncatedNormal",
    "random_uniform": "RandomUniform random_uniform",
    "random_uniform_int": "RandomUniformInt random_uniform", "range": "Range range",
    "range_dynamic": "Range range", "read_variable": "ReadVariableOp", "reduce_all": "All",
    "reduce_any": "Any", "reduce_max": "Max", "reduce_mean": "Mean", "reduce_min": "Min",
    "reduce_prod": "Prod", "reduce_sum": "Sum", "reverse": "ReverseV2", "solve": "MatrixSolve",
    "stack": "Pack stack", "strided_slice": "StridedSlice strided_slice", "subtract": "Sub sub",
    "tensor_scatter_nd_add": "TensorScatterAdd", "tensor_scatter_nd_max": "TensorScatterMax",
    "tensor_scatter_nd_min": "TensorScatterMin",
    "tensor_scatter_nd_update": "TensorScatterUpdate", "top_k": "TopKV2",
    "transpose": "Transpose transpose", "triangular_solve": "MatrixTriangularSolve",
    "where": "SelectV2", "while": "While while",
}  # fmt: skip


def operation_type(op: str) -> str:
    """The type of the operations of an op, as ``MatMul``."""
    return _type_and_name(op)[0]


def operation_name(op: str) -> str:
    """What an operation is called that has no name of its own: ``MatMul``, ``add``."""
    return _type_and_name(op)[-1]


def _type_and_name(op: str) -> list[str]:
    given = _TYPES.get(op)
    return given.split() if given else ["".join(part.capitalize() for part in op.split("_"))]
