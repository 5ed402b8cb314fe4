"""Functions of TensorFlow's private modules that have no public counterpart in treadle."""

from __future__ import annotations

import abc
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import treadle as td
from treadle.core import nest
from treadle.core.context import placed
from treadle.core.origin import at, user_origin
from treadle.ops.indexing import variable_parts
from treadle.ops.printing import value_text
from treadle.ops.state import Variable


def convert_variables_to_tensors(values: Any) -> Any:
    """A structure with the values of variables in their places."""

    def converted(leaf: Any) -> Any:
        if isinstance(leaf, Variable):
            return td.convert_to_tensor(leaf)
        own = getattr(leaf, "_convert_variables_to_tensors", None)
        return leaf if own is None else own()

    return nest.map_structure(converted, values, expand_composites=False)


def is_resource_variable(value: Any) -> bool:
    """Whether a value is a variable: those of TensorFlow 1's graphs are such in TensorFlow 2, too.
    Nobody has one before their module is imported."""
    graphs = sys.modules.get("treadle.compat.v1.variables")
    return isinstance(value, Variable) or (
        graphs is not None and isinstance(value, graphs.Variable)
    )


def slice_helper(tensor: Any, slice_spec: Any, var: Any = None) -> Any:
    """A part of a tensor. It is the part of a variable, if one is given, to which values may be
    assigned; `tensor` is its value then, or what a derived class says that its value is."""
    part = td.convert_to_tensor(tensor)[slice_spec]
    if isinstance(var, Variable):
        variable_parts.remember(part, var, slice_spec)
    return part


def slice_helper_var(var: Any, slice_spec: Any) -> Any:
    """A part of what an object with the method `value`, mostly a variable, says that it is."""
    return slice_helper(var.value(), slice_spec, var)


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """The tensor, when the dependencies are done."""
    older: Any = td.compat.v1
    with older.control_dependencies(dependencies):
        return older.identity(output_tensor, name=name)


def replace_variables_with_atoms(values: Any) -> Any:
    """A structure with 0 in the places of variables."""
    return td.nest.map_structure(lambda x: 0 if isinstance(x, Variable) else x, values)


def smart_cond(
    pred: Any, true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`td.cond`, of which only one branch is traced where the condition is known."""
    known = td.get_static_value(pred) if td.is_tensor(pred) else pred
    chosen = (true_fn if known else false_fn) if known is not None else None
    return td.cond(pred, true_fn, false_fn) if chosen is None else chosen()


def constant_value_as_shape(tensor: Any) -> Any:
    """The shape that a tensor of sizes says, with None for sizes that are not known."""
    known = td.get_static_value(tensor, True) if td.is_tensor(tensor) else tensor
    if known is None:
        length = tensor.shape[0]
        return td.TensorShape(None if length is None else [None] * length)
    sizes = [None if size is None else int(size) for size in known]
    return td.TensorShape([None if size == -1 else size for size in sizes])


def numpy_text(tensor: Any, is_repr: bool = False) -> str:
    """The array that a tensor holds, as it is printed."""
    return value_text(tensor.numpy(), is_repr)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """The value; its gradient is an error."""

    @td.custom_gradient
    def value(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            raise LookupError(f"Gradient explicitly disabled. Reason: {message}{at(user_origin())}")

        return td.identity(x), grad

    return value(input)


def pfor(
    loop_fn: Callable[[Any], Any], iters: Any, fallback_to_while_loop: bool = True,
    parallel_iterations: int | None = None, warn: bool = False,
) -> Any:  # fmt: skip
    """What a function gives for 0, 1, … stacked."""
    return td.vectorized_map(loop_fn, td.range(iters), fallback_to_while_loop)


def no_xla_context(graph: Any) -> bool:
    """Whether a graph is compiled by XLA. None is: there are other compilers here."""
    return False


def case_helper(
    cond_fn: Any, pred_fn_pairs: Any, default: Any, exclusive: bool, name: Any,
    allow_python_preds: bool = False, **cond_kwargs: Any,
) -> Any:  # fmt: skip
    """`td.case` whose branches are chosen by another function than `td.cond`."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    chosen = default if default is not None else pairs.pop()[1]
    for pred, branch in reversed(pairs):
        chosen = functools.partial(cond_fn, pred, true_fn=branch, false_fn=chosen, **cond_kwargs)
    return chosen()


def add_operators(
    operators: Any, operator_name: Any = None, addition_tiers: Any = None, name: Any = None
) -> Any:
    """The sum of linear operators, as one operator."""
    if len(operators) == 1:
        return list(operators)
    total = functools.reduce(lambda a, b: a + b, (each.to_dense() for each in operators))
    known = [
        all(getattr(each, claim) for each in operators) or None
        for claim in ("is_self_adjoint", "is_positive_definite")
    ]
    return [
        td.linalg.LinearOperatorFullMatrix(
            total, is_self_adjoint=known[0], is_positive_definite=known[1],
            name=operator_name or "sum",
        )
    ]  # fmt: skip


class _EagerTensorType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, td.Tensor) and not td.is_symbolic_tensor(value)


class EagerTensor(metaclass=_EagerTensorType):
    """To `isinstance` the class of tensors that have values."""


class TensorType(abc.ABC):  # noqa: B024 -- a name for `isinstance`, which classes derive from
    """What classes of libraries derive from whose objects are used as tensors. Tensors and
    variables are its instances."""

    __slots__ = ()


TensorType.register(td.Tensor)
TensorType.register(Variable)


def shape_internal(input: Any, name: str | None = None, optimize: bool = True,
                   out_type: Any = None) -> Any:  # fmt: skip
    """`td.shape`, of sparse tensors, too."""
    if isinstance(input, td.SparseTensor):
        return td.cast(input.dense_shape, out_type or td.int32)
    return td.shape(input, out_type or td.int32)


def parameterized_truncated_normal(
    shape: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0,
    dtype: Any = td.float32, seed: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Normally distributed numbers between limits, other ones with every call."""
    key = td.random.uniform([2], maxval=2**31 - 1, dtype=td.int32, seed=seed)
    mean, stddev, low, high = (
        td.convert_to_tensor(p, dtype) for p in (means, stddevs, minvals, maxvals)
    )
    return td.random.stateless_parameterized_truncated_normal(shape, key, mean, stddev, low, high)


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Move a variable towards a value: ``variable * decay + value * (1 - decay)``.

    Raises:
        NotImplementedError: `zero_debias`, for which TensorFlow makes variables of its own.
    """
    if zero_debias:
        raise NotImplementedError(
            "assign_moving_average: averages that begin with zeros are not corrected here; use "
            f"zero_debias=False, or td.compat.v1.train.ExponentialMovingAverage{at(user_origin())}"
        )
    share = td.cast(1.0 - decay, variable.dtype)
    return variable.assign_sub((variable - value) * share)


class Context:
    """What libraries ask of TensorFlow's context: the modes and scopes of this place."""

    executing_eagerly = staticmethod(td.executing_eagerly)

    @property
    def scope_name(self) -> str:
        """The name scope, with a slash behind it; empty outside of all."""
        found = td.get_current_name_scope()
        return f"{found}/" if found else ""

    @property
    def device_name(self) -> str | None:
        """The device that `td.device` names here."""
        device = placed()
        return None if device is None else device.name

    @property
    def device_spec(self) -> Any:
        """The parts of its name."""
        return td.DeviceSpec.from_string(self.device_name or "")


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """A block whose operations are written into the default graph of TensorFlow 1."""
    with td.compat.v1.get_default_graph().as_default():
        yield


@contextlib.contextmanager
def eager_mode() -> Iterator[None]:
    """A block whose operations run at once, also inside of ``with td.Graph().as_default()``."""
    here = td.compat.v1.values.thread
    before, here.graphs = here.graphs, ()
    try:
        yield
    finally:
        here.graphs = before
