"""Names of TensorFlow's private modules that are exported nowhere, and that its tests use."""

from __future__ import annotations

import collections.abc
import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td
import treadle.compat.v1
from tests.strangers.tensorflow_own import test_util
from tests.strangers.tensorflow_own.names import by_mode
from treadle.compat.replacement.absent import absent
from treadle.core.dimension import Dimension

v1 = td.compat.v1


@contextlib.contextmanager
def _nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    with v1.Graph().as_default():
        yield


@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    with td.init_scope():
        yield


def max_error(grad1: Any, grad2: Any) -> float:
    """The greatest difference of Jacobians; NaN where one of them is."""
    error = 0.0
    for one, other in zip(grad1, grad2, strict=True):
        if np.size(one) or np.size(other):
            found = np.abs(np.asarray(one) - np.asarray(other)).max()
            error = float(np.maximum(error, found))
    return error


def while_loop(
    cond: Any, body: Any, loop_vars: Any, *args: Any, return_same_structure: bool = True,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """That of ``while_v2``, which gives the structure of its variables in both modes."""
    if v1.executing_eagerly():
        return td.while_loop(cond, body, loop_vars, *args, **kwargs)
    kwargs["return_same_structure"] = return_same_structure
    return v1.while_loop(cond, body, loop_vars, *args, **kwargs)


def gradients_function(f: Any, params: Any = None) -> Any:
    """A function that gives the gradients of another for its arguments."""

    def gradients(*args: Any, dy: Any = None) -> Any:
        with td.GradientTape() as tape:
            values = [td.convert_to_tensor(a) for a in args]
            tape.watch(values)
            result = f(*values)
        chosen = values if params is None else [values[i] for i in params]
        return tape.gradient(result, chosen, output_gradients=dy)

    return gradients


def for_loop(loop_fn: Any, dtypes: Any, iters: Any, parallel_iterations: Any = None) -> Any:
    """What a vectorized loop is compared with: one call after another."""
    found = [loop_fn(td.constant(i)) for i in range(int(iters))]
    return td.nest.map_structure(lambda *parts: td.stack(parts), *found)


def pfor(loop_fn: Any, iters: Any, fallback_to_while_loop: bool = True, **options: Any) -> Any:
    """`td.vectorized_map` over the numbers of a loop."""
    numbers = td.range(iters)
    return td.vectorized_map(loop_fn, numbers, fallback_to_while_loop, warn=False)


def add_variable(
    trackable: Any, name: str, shape: Any = None, dtype: Any = td.float32, initializer: Any = None,
    trainable: bool = True,
) -> Any:  # fmt: skip
    """A new variable that an object refers to by a name."""
    if initializer is None or callable(initializer):
        make = initializer or td.zeros_initializer()
        made = make() if isinstance(make, type) else make
        initializer = made([] if shape is None else shape, dtype)
    elif shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    if getattr(trackable, name, None) is not None:
        raise ValueError(f"A variable named {name!r} is already declared")
    variable = td.Variable(initializer, dtype=dtype, name=name, trainable=trainable)
    setattr(trackable, name, variable)
    return variable


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    with td.io.gfile.GFile(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    with td.io.gfile.GFile(filename, "w") as file:
        file.write(file_content)


def with_dependencies(dependencies: Any, output_tensor: Any, name: Any = None) -> Any:
    with by_mode(td.control_dependencies, v1.control_dependencies)(dependencies):
        return by_mode(td.identity, v1.identity)(output_tensor)


def size_internal(
    input: Any, name: Any = None, optimize: bool = True, out_type: Any = td.int32
) -> Any:
    return td.size(input, out_type)


def to_complex(x: Any) -> Any:
    """A tensor as complex numbers of its precision."""
    x = td.convert_to_tensor(x)
    double = x.dtype in (td.float64, td.complex128)
    return td.cast(x, td.complex128 if double else td.complex64)


def _unknown_shape(rank: int | None = None, **kwargs: Any) -> Any:
    rank = kwargs.get("ndims", rank)
    return td.TensorShape(None if rank is None else [None] * rank)


class BaseSaverBuilder:
    """Base classes of objects that say how they are saved: tests that use them fail."""

    SaveableObject = SaveSpec = object


class Context:
    executing_eagerly = staticmethod(v1.executing_eagerly)

    def num_gpus(self) -> int:
        return 0

    def ensure_initialized(self) -> None:
        pass

    def list_logical_devices(self, kind: Any = None) -> Any:
        return td.config.list_logical_devices(kind)

    def list_physical_devices(self, kind: Any = None) -> Any:
        return td.config.list_physical_devices(kind)


_CONTEXT = Context()


def _absent(*names: str) -> dict[str, Any]:
    """Private names that files import at their beginning: tests that use them fail."""
    return {name: absent(name, "private to TensorFlow") for name in names}


# What makes a variable in a graph is nothing where variables are made at once.
td.Variable.initializer = property(lambda self: None)  # type: ignore[attr-defined]

NAMES: dict[str, dict[str, Any]] = {
    "checkpoint.checkpoint": {
        "add_variable": add_variable,
        "gather_initializers": lambda root_trackable: None,
    },
    "checkpoint.sharding": _absent("sharding_policies"),
    "compiler.xla.experimental": _absent("xla_sharding"),
    "client.device_lib": {"list_local_devices": lambda *args: []},
    "client.session": {"InteractiveSession": v1.InteractiveSession},
    "eager.backprop": {"gradients_function": gradients_function},
    "eager.context": {
        "context": lambda: _CONTEXT,
        "graph_mode": graph_mode,
        "eager_mode": eager_mode,
        "executing_eagerly": v1.executing_eagerly,
        "num_gpus": lambda: 0,
        "ensure_initialized": lambda: None,
        "_reset_context": lambda: None,
        "device": by_mode(td.device, v1.device),
        "set_global_seed": td.random.set_seed,
    },
    "framework.config": {
        "disable_op_determinism": lambda: None,
    },
    "framework.dtypes": {
        "_np_bfloat16": td.bfloat16.as_numpy_dtype,
    },
    "framework.ops": {
        "convert_to_tensor": by_mode(td.convert_to_tensor, v1.convert_to_tensor),
        "convert_to_tensor_v2": td.convert_to_tensor,
        "name_scope": by_mode(td.name_scope, v1.name_scope),
        "name_scope_v1": v1.name_scope,
        "colocate_with": _nothing,
        "convert_n_to_tensor": lambda values, dtype=None, name=None: [
            td.convert_to_tensor(value, dtype) for value in values
        ],
        "is_tfrt_enabled": lambda: False,
        "set_dtype_conversion_mode": lambda mode: None,
        "device": by_mode(td.device, v1.device),
        "executing_eagerly_outside_functions": v1.executing_eagerly_outside_functions,
    },
    "framework.memory_checker": _absent("MemoryChecker"),
    "framework.type_utils": _absent("fulltypes_for_flat_tensors"),
    "framework.sparse_tensor": {"is_sparse": lambda x: isinstance(x, td.SparseTensor)},
    "framework.tensor_shape": {
        "as_shape": td.TensorShape,
        "unknown_shape": _unknown_shape,
        "as_dimension": Dimension,
    },
    "lib.io.file_io": {
        "FileIO": td.io.gfile.GFile,
        "read_file_to_string": read_file_to_string,
        "write_string_to_file": write_string_to_file,
    },
    "ops.array_ops": {"size_internal": size_internal},
    "training.saver": {"BaseSaverBuilder": BaseSaverBuilder},
    "tf2": {"enabled": lambda: True},
    "ops.control_flow_ops": {"with_dependencies": with_dependencies},
    "ops.control_flow_util": {"ENABLE_CONTROL_FLOW_V2": True},
    "ops.gradient_checker_v2": {"max_error": max_error},
    "ops.linalg.linear_operator_circulant": {"_to_complex": to_complex},
    "ops.math_ops": {"mod": td.math.floormod, "mul": td.multiply},
    "ops.nn_impl": _absent("_compute_sampled_logits"),
    "ops.nn_ops": {"softplus": td.nn.softplus},
    "ops.parallel_for.control_flow_ops": {"for_loop": for_loop, "pfor": pfor},
    "ops.ragged.ragged_array_ops": {"ragged_one_hot": td.one_hot},
    "ops.ragged.ragged_conversion_ops": {
        "from_tensor": td.RaggedTensor.from_tensor,
        "to_tensor": lambda rt_input, *args, **kwargs: rt_input.to_tensor(*args, **kwargs),
    },
    "ops.ragged.ragged_factory_ops": _absent(
        "_default_inner_shape_for_pylist", "_find_scalar_and_max_depth"
    ),
    "ops.ragged.ragged_math_ops": {
        "ragged_cumsum": td.cumsum,
        "segment_sum": td.math.unsorted_segment_sum,
        "segment_prod": td.math.unsorted_segment_prod,
        "segment_min": td.math.unsorted_segment_min,
        "segment_max": td.math.unsorted_segment_max,
        "segment_mean": td.math.unsorted_segment_mean,
        "segment_sqrt_n": td.math.unsorted_segment_sqrt_n,
    },
    "ops.ragged.ragged_tensor": _absent("RaggedTensorType") | {
        "is_ragged": lambda x: isinstance(x, td.RaggedTensor),
        "convert_to_tensor_or_ragged_tensor": lambda x, dtype=None, *a, **k: (
            x if isinstance(x, td.RaggedTensor) else td.convert_to_tensor(x, dtype)
        ),
    },
    "ops.while_v2": {"while_loop": while_loop},
    "ops.resource_variable_ops": {
        "ResourceVariable": by_mode(lambda *a, **k: td.Variable(*a, **k), v1.Variable),
    },
    "eager.test": {"TestCase": test_util.TestCase, "main": td.test.main},
    "platform.googletest": {"main": td.test.main, "TestCase": test_util.TestCase},
    "util.compat": {"collections_abc": collections.abc},
    "util.numpy_compat": {"np_where": np.where, "np_reshape": np.reshape},
    "platform.test": {
        "TestCase": test_util.TestCase,
        "Benchmark": object,
        "disable_with_predicate": test_util.disable_with_predicate,
        "is_built_with_xla": td.test.is_built_with_xla,
    },
}
