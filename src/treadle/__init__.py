"""treadle turns ordinary Python functions into compiled graphs.

    import treadle as td

    @td.function
    def f(x):
        return td.reduce_sum(x * x)

The names and their meaning are TensorFlow 2's.
"""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING

# NumPy comes before treadle's own modules. Python keeps its frames in pieces of 16 KiB, and frees a
# piece when the call returns that needed it. Imported from deep within treadle, NumPy would begin
# at the end of a piece, and Python map and unmap memory in hundreds of its calls.
import numpy  # noqa: F401

import treadle.autodiff.control_flow  # (gives cond and while their gradients)
import treadle.numpy_staging.protocols  # (gives Tensor and Variable NumPy's protocols)
import treadle.ops.operators  # noqa: F401  (completes Tensor and Variable)
from treadle import version
from treadle.autodiff.tape import (
    GradientTape,
    UnconnectedGradients,
)
from treadle.core import errors
from treadle.core.caches import clear_caches
from treadle.core.context import (
    executing_eagerly,
)
from treadle.core.dtypes import (
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
from treadle.core.refusals import explain_errors, explain_methods
from treadle.core.shapes import (
    TensorShape,
)
from treadle.core.spec import (
    TensorSpec,
)
from treadle.core.tensor import (
    Tensor,
)
from treadle.core.trace_types import (
    TypeSpec,
)
from treadle.devices import (
    DeviceSpec,
    device,
)
from treadle.graph import ir as _ir
from treadle.module import (
    Module,
)
from treadle.names import provided
from treadle.ops.control.control_flow import (
    cond,
    while_loop,
)
from treadle.ops.control.io import (
    Assert,
    print,
)
from treadle.ops.control.ordering import (
    control_dependencies,
    get_current_name_scope,
    group,
    init_scope,
    inside_function,
    name_scope,
    no_op,
)
from treadle.ops.control.ordering import (
    tuple_ as tuple,
)
from treadle.ops.conversion import (
    constant,
    convert_to_tensor,
    is_symbolic_tensor,
    is_tensor,
    register_tensor_conversion_function,
)
from treadle.ops.dims import (
    rank,
    shape,
    shape_n,
    size,
)
from treadle.ops.elementwise.arithmetic import (
    add,
    add_n,
    atan2,
    divide,
    floordiv,
    maximum,
    minimum,
    multiply,
    scalar_mul,
    squared_difference,
    subtract,
    truediv,
    truncatediv,
    truncatemod,
)
from treadle.ops.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from treadle.ops.elementwise.complex_numbers import (
    complex,
)
from treadle.ops.elementwise.logic import (
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
)
from treadle.ops.elementwise.powers import pow
from treadle.ops.elementwise.selection import (
    where,
)
from treadle.ops.elementwise.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    clip_by_value,
    cos,
    cosh,
    exp,
    floor,
    identity,
    identity_n,
    negative,
    round,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    stop_gradient,
    tan,
    tanh,
)
from treadle.ops.indexed_slices import IndexedSlices, IndexedSlicesSpec
from treadle.ops.indexing.extremes import (
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
)
from treadle.ops.indexing.gather import (
    gather,
)
from treadle.ops.indexing.masks import (
    boolean_mask,
)
from treadle.ops.indexing.scatter import (
    gather_nd,
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from treadle.ops.indexing.slices import (
    slice_ as slice,
)
from treadle.ops.indexing.slices import (
    strided_slice,
)
from treadle.ops.indexing.transposing import (
    transpose,
)
from treadle.ops.linalg.matrices import (
    matmul,
    tensordot,
)
from treadle.ops.reductions.reduction import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from treadle.ops.reductions.scan import (
    cumsum,
)
from treadle.ops.shaping.creation import (
    eye,
    fill,
    one_hot,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from treadle.ops.shaping.joining import (
    concat,
    parallel_stack,
    stack,
    unstack,
)
from treadle.ops.shaping.padding import (
    pad,
)
from treadle.ops.shaping.permuting import (
    reverse,
)
from treadle.ops.shaping.ranges import (
    linspace,
    meshgrid,
    range,
)
from treadle.ops.shaping.reshaping import (
    broadcast_to,
    ensure_shape,
    expand_dims,
    reshape,
    squeeze,
    tile,
)
from treadle.ops.shaping.splitting import split
from treadle.ops.state import Variable, VariableAggregation, VariableSynchronization
from treadle.ops.variable_casts import cast
from treadle.ops.variable_creation import variable_creator_scope
from treadle.tracing.decorator import (
    function,
)
from treadle.tracing.retraces import (
    RetraceError,
    explain_retraces,
    no_retrace,
)
from treadle.tracing.tracebacks import install_hook
from treadle.version import __version__

if TYPE_CHECKING:
    import logging

    from treadle import (
        audio,
        autodiff,
        autograph,
        bitwise,
        compat,
        config,
        data,
        debugging,
        distribute,
        dtypes,
        experimental,
        image,
        inspect,
        io,
        keras,
        linalg,
        lookup,
        math,
        nest,
        nn,
        onnx,
        passes,
        profiler,
        quantization,
        queue,
        ragged,
        random,
        raw_ops,
        saved_model,
        sets,
        shared_object,
        signal,
        sparse,
        strings,
        summary,
        sysconfig,
        test,
        train,
        types,
    )
    from treadle.autodiff.custom import (
        custom_gradient,
        grad_pass_through,
        recompute_grad,
    )
    from treadle.autodiff.graph_gradients import AggregationMethod, gradients, hessians
    from treadle.autodiff.python_functions import (
        py_function,
    )
    from treadle.bench import benchmark
    from treadle.graph.vectorized import vectorized_map
    from treadle.io.tensor_protos import make_ndarray, make_tensor_proto
    from treadle.jitted import grad, jit, value_and_grad
    from treadle.ops.asserts import assert_equal, assert_greater, assert_less, assert_rank
    from treadle.ops.collections.mapping import foldl, foldr, map_fn, scan
    from treadle.ops.collections.optionals import OptionalSpec
    from treadle.ops.collections.tensor_array import TensorArray, TensorArraySpec
    from treadle.ops.control.cases import case, switch_case
    from treadle.ops.control.critical_sections import CriticalSection
    from treadle.ops.control.time import (
        timestamp,
    )
    from treadle.ops.elementwise.bitcast import (
        bitcast,
    )
    from treadle.ops.elementwise.clipping import (
        saturate_cast,
    )
    from treadle.ops.image.blocks import (
        batch_to_space,
        required_space_to_batch_paddings,
        space_to_batch,
    )
    from treadle.ops.image.blocks import space_to_batch as space_to_batch_nd
    from treadle.ops.image.volume_patches import (
        extract_volume_patches,
    )
    from treadle.ops.indexing.common_shapes import (
        broadcast_dynamic_shape,
        broadcast_static_shape,
    )
    from treadle.ops.indexing.repeating import (
        repeat,
        roll,
    )
    from treadle.ops.linalg.eigenvalues import (
        eig,
        eigvals,
    )
    from treadle.ops.linalg.einsum import (
        einsum,
    )
    from treadle.ops.linalg.norms import (
        norm,
    )
    from treadle.ops.linalg.spectral_functions import (
        sqrtm as matrix_square_root,
    )
    from treadle.ops.python_functions import (
        numpy_function,
    )
    from treadle.ops.random.permutations import random_index_shuffle
    from treadle.ops.reductions.norms import (
        clip_by_global_norm,
        clip_by_norm,
    )
    from treadle.ops.shaping.static_values import get_static_value
    from treadle.ops.statistics.histograms import (
        histogram_fixed_width,
        histogram_fixed_width_bins,
    )
    from treadle.ops.statistics.partitions import (
        dynamic_partition,
        dynamic_stitch,
        unravel_index,
    )
    from treadle.ops.statistics.sequences import (
        reverse_sequence,
        sequence_mask,
    )
    from treadle.ops.statistics.sorting import (
        approx_top_k,
        argsort,
        searchsorted,
        sort,
    )
    from treadle.ops.statistics.uniques import (
        unique,
        unique_with_counts,
    )
    from treadle.ops.strings.fingerprints import fingerprint
    from treadle.ops.type_specs import (
        type_spec_from_value,
    )
    from treadle.ragged import RaggedTensor, RaggedTensorSpec
    from treadle.signal import fftnd, ifftnd, irfftnd, rfftnd
    from treadle.sparse import SparseTensor, SparseTensorSpec
    from treadle.sparse.label_sequences import edit_distance
    from treadle.strings import as_string

install_hook()

def get_logger() -> logging.Logger:
    """The logger ``treadle``, of Python's module `logging`."""
    import logging

    return logging.getLogger("treadle")


explain_errors(__name__)
__getattr__ = provided(__name__, {
    "treadle": """
        audio autodiff autograph bitwise compat config data debugging distribute dtypes experimental
        image inspect io keras linalg lookup math nest nn onnx passes profiler quantization queue
        ragged random raw_ops saved_model sets shared_object signal sparse strings summary sysconfig
        test train types
        """,
    "treadle.compat.v1.graph": "Graph",
    "treadle.autodiff.custom": "custom_gradient grad_pass_through recompute_grad",
    "treadle.autodiff.graph_gradients": "AggregationMethod gradients hessians",
    "treadle.autodiff.python_functions": "py_function",
    "treadle.bench": "benchmark",
    "treadle.graph.vectorized": "vectorized_map",
    "treadle.io.tensor_protos": "make_ndarray make_tensor_proto",
    "treadle.jitted": "grad jit value_and_grad",
    "treadle.keras": "initializers losses metrics optimizers",
    "treadle.keras.top_level_initializers": """
        constant_initializer ones_initializer random_normal_initializer random_uniform_initializer
        zeros_initializer
        """,
    "treadle.ops.asserts": "assert_equal assert_greater assert_less assert_rank",
    "treadle.ops.collections.mapping": "foldl foldr map_fn scan",
    "treadle.ops.collections.optionals": "OptionalSpec",
    "treadle.ops.collections.tensor_array": "TensorArray TensorArraySpec",
    "treadle.ops.control.cases": "case switch_case",
    "treadle.ops.control.critical_sections": "CriticalSection",
    "treadle.ops.control.time": "timestamp",
    "treadle.ops.elementwise.bitcast": "bitcast",
    "treadle.ops.elementwise.clipping": "saturate_cast",
    "treadle.ops.image.blocks": """
        batch_to_space required_space_to_batch_paddings space_to_batch
        space_to_batch_nd=space_to_batch
        """,
    "treadle.ops.image.volume_patches": "extract_volume_patches",
    "treadle.ops.indexing.common_shapes": "broadcast_dynamic_shape broadcast_static_shape",
    "treadle.ops.indexing.repeating": "repeat roll",
    "treadle.ops.linalg.eigenvalues": "eig eigvals",
    "treadle.ops.linalg.einsum": "einsum",
    "treadle.ops.linalg.norms": "norm",
    "treadle.ops.linalg.spectral_functions": "matrix_square_root=sqrtm",
    "treadle.ops.python_functions": "numpy_function",
    "treadle.ops.random.permutations": "random_index_shuffle",
    "treadle.ops.reductions.norms": "clip_by_global_norm clip_by_norm",
    "treadle.ops.shaping.static_values": "get_static_value",
    "treadle.ops.statistics.histograms": "histogram_fixed_width histogram_fixed_width_bins",
    "treadle.ops.statistics.partitions": "dynamic_partition dynamic_stitch unravel_index",
    "treadle.ops.statistics.sequences": "reverse_sequence sequence_mask",
    "treadle.ops.statistics.sorting": "approx_top_k argsort searchsorted sort",
    "treadle.ops.statistics.uniques": "unique unique_with_counts",
    "treadle.ops.strings.fingerprints": "fingerprint",
    "treadle.ops.type_specs": "type_spec_from_value",
    "treadle.ragged": "RaggedTensor RaggedTensorSpec",
    "treadle.signal": "fftnd ifftnd irfftnd rfftnd",
    "treadle.sparse": "SparseTensor SparseTensorSpec",
    "treadle.sparse.label_sequences": "edit_distance",
    "treadle.strings": "as_string",
})  # fmt: skip
explain_methods(Tensor, Variable)
# What makes messages of graphs needs the package tensorboard, so it is imported when it is asked.
_ir.Graph.message = lambda graph: _sys.modules[__name__].summary.graphs.graph_def(graph)
_ir.Graph.function_message = lambda graph: _sys.modules[__name__].summary.graphs.function_def(graph)
newaxis = None
guarantee_const = identity
realdiv = truediv

__all__ = [
    "AggregationMethod",
    "Assert",
    "CriticalSection",
    "DType",
    "DeviceSpec",
    "GradientTape",
    "Graph",
    "IndexedSlices",
    "IndexedSlicesSpec",
    "Module",
    "OptionalSpec",
    "RaggedTensor",
    "RaggedTensorSpec",
    "RetraceError",
    "SparseTensor",
    "SparseTensorSpec",
    "Tensor",
    "TensorArray",
    "TensorArraySpec",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "approx_top_k",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "audio",
    "autodiff",
    "autograph",
    "batch_to_space",
    "benchmark",
    "bfloat16",
    "bitcast",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "case",
    "cast",
    "clear_caches",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "compat",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "cond",
    "config",
    "constant",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "device",
    "distribute",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "eig",
    "eigvals",
    "edit_distance",
    "einsum",
    "ensure_shape",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "explain_retraces",
    "extract_volume_patches",
    "eye",
    "fftnd",
    "fill",
    "fingerprint",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_current_name_scope",
    "get_logger",
    "get_static_value",
    "grad",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "guarantee_const",
    "half",
    "hessians",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "ifftnd",
    "image",
    "init_scope",
    "inside_function",
    "inspect",
    "int16",
    "int32",
    "int64",
    "int8",
    "io",
    "irfftnd",
    "is_symbolic_tensor",
    "is_tensor",
    "jit",
    "keras",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lookup",
    "make_ndarray",
    "make_tensor_proto",
    "map_fn",
    "math",
    "matmul",
    "matrix_square_root",
    "maximum",
    "meshgrid",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "no_op",
    "no_retrace",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_like",
    "onnx",
    "pad",
    "parallel_stack",
    "passes",
    "pow",
    "print",
    "profiler",
    "quantization",
    "py_function",
    "queue",
    "ragged",
    "random",
    "random_index_shuffle",
    "range",
    "rank",
    "raw_ops",
    "realdiv",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "register_tensor_conversion_function",
    "repeat",
    "required_space_to_batch_paddings",
    "reshape",
    "reverse",
    "reverse_sequence",
    "rfftnd",
    "roll",
    "round",
    "saturate_cast",
    "saved_model",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "sets",
    "shape",
    "shape_n",
    "shared_object",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "space_to_batch",
    "space_to_batch_nd",
    "sparse",
    "split",
    "sqrt",
    "square",
    "squared_difference",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "strings",
    "subtract",
    "summary",
    "switch_case",
    "sysconfig",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "train",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "tuple",
    "type_spec_from_value",
    "types",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "value_and_grad",
    "variable_creator_scope",
    "vectorized_map",
    "version",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]
