"""What TensorFlow's private modules have that its public ones do not, by module and name."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import treadle as td
from treadle.compat.replacement import composite_tensors, structures
from treadle.compat.replacement.identities import IdentityDictionary, IdentitySet
from treadle.core import nest
from treadle.core.dimension import Dimension
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Reference
from treadle.core.trace_types import TypeSpec
from treadle.ops.state import Variable

# -- decorators that only speak to people --------------------------------------------------------


def _unchanged(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator with arguments that leaves functions as they are."""
    return lambda decorated: decorated


def _same(decorated: Any) -> Any:
    return decorated


def _deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, **kwargs: Any) -> Any:
    return func_or_class


def _deprecated_argument_lookup(
    new_name: str, new_value: Any, old_name: str, old_value: Any
) -> Any:
    """The value of an argument that has two names, of which one may be given.

    Raises:
        ValueError: both are.
    """
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.{at(user_origin())}")
    return old_value


@contextlib.contextmanager
def _nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def _test_decorator(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator of tests, with arguments or without."""
    return function if callable(function) else _same


def _full_arg_spec(function: Any) -> Any:
    """`inspect.getfullargspec` of what is below wrappers. TensorFlow's functions say nothing of
    types, and libraries compare theirs with them: nor do treadle's here."""
    wrapped = inspect.unwrap(function)
    found = inspect.getfullargspec(wrapped)
    own = (getattr(wrapped, "__module__", None) or "").split(".")[0] == "treadle"
    return found._replace(annotations={}) if own else found


def _make_decorator(target: Any, decorator_func: Any, *args: Any, **kwargs: Any) -> Any:
    return functools.wraps(target)(decorator_func)


# -- tensors, variables, graphs ------------------------------------------------------------------


def _convert_variables_to_tensors(values: Any) -> Any:
    """A structure with the values of variables in their places."""

    def converted(leaf: Any) -> Any:
        if isinstance(leaf, Variable):
            return td.convert_to_tensor(leaf)
        own = getattr(leaf, "_convert_variables_to_tensors", None)
        return leaf if own is None else own()

    return nest.map_structure(converted, values, expand_composites=False)


def _replace_variables_with_atoms(values: Any) -> Any:
    return td.nest.map_structure(lambda x: 0 if isinstance(x, Variable) else x, values)


def _smart_cond(
    pred: Any, true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`td.cond`, of which only one branch is traced where the condition is known."""
    known = td.get_static_value(pred) if td.is_tensor(pred) else pred
    chosen = (true_fn if known else false_fn) if known is not None else None
    return td.cond(pred, true_fn, false_fn) if chosen is None else chosen()


def _constant_value(tensor: Any, partial: bool = False) -> Any:
    return td.get_static_value(tensor, partial)


def _constant_value_as_shape(tensor: Any) -> Any:
    """The shape that a tensor of sizes says, with None for sizes that are not known."""
    known = td.get_static_value(tensor, True) if td.is_tensor(tensor) else tensor
    if known is None:
        length = tensor.shape[0]
        return td.TensorShape(None if length is None else [None] * length)
    sizes = [None if size is None else int(size) for size in known]
    return td.TensorShape([None if size == -1 else size for size in sizes])


def _prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """The value; its gradient is an error."""

    @td.custom_gradient
    def value(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            raise LookupError(f"Gradient explicitly disabled. Reason: {message}{at(user_origin())}")

        return td.identity(x), grad

    return value(input)


def _pfor(
    loop_fn: Callable[[Any], Any], iters: Any, fallback_to_while_loop: bool = True,
    parallel_iterations: int | None = None, warn: bool = False,
) -> Any:  # fmt: skip
    """What a function gives for 0, 1, … stacked."""
    return td.vectorized_map(loop_fn, td.range(iters), fallback_to_while_loop)


def _no_xla_context(graph: Any) -> bool:
    """Whether a graph is compiled by XLA. None is: there are other compilers here."""
    return False


def _case_helper(
    cond_fn: Any, pred_fn_pairs: Any, default: Any, exclusive: bool, name: Any,
    allow_python_preds: bool = False, **cond_kwargs: Any,
) -> Any:  # fmt: skip
    """`td.case` whose branches are chosen by another function than `td.cond`."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    chosen = default if default is not None else pairs.pop()[1]
    for pred, branch in reversed(pairs):
        chosen = functools.partial(cond_fn, pred, true_fn=branch, false_fn=chosen, **cond_kwargs)
    return chosen()


def _add_operators(
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


class _EagerTensor(metaclass=_EagerTensorType):
    """To `isinstance` the class of tensors that have values."""


def _parameterized_truncated_normal(
    shape: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0,
    dtype: Any = td.float32, seed: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    key = td.random.uniform([2], maxval=2**31 - 1, dtype=td.int32, seed=seed)
    return td.random.stateless_parameterized_truncated_normal(
        shape, key, means, stddevs, minvals, maxvals
    )


# -- parts of AutoGraph ----------------------------------------------------------------------------


class _Missing:
    """In the place of a class or function of the converter's insides, from which libraries derive
    classes that their users may never use."""

    full_name = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{self.full_name} is a part of TensorFlow's AutoGraph, and treadle's converter "
            f"has no such part: td.autograph has its public functions{at(user_origin())}"
        )


def _missing(inside: str, name: str) -> Any:
    if not inside.startswith("autograph.") or inside == "autograph.impl.api":
        return None
    return type(name, (_Missing,), {"full_name": f"tensorflow.python.{inside}.{name}"})


_DOCUMENTATION = dict.fromkeys(
    (
        "do_not_generate_docs", "do_not_doc_inheritable", "for_subclass_implementers",
        "do_not_doc_in_subclasses", "doc_in_current_and_subclasses", "doc_private",
    ),
    _same,
)  # fmt: skip
_SPECS = {
    "TypeSpec": TypeSpec,
    **{
        name: getattr(composite_tensors, name)
        for name in (
            "BatchableTypeSpec", "register", "register_type_spec_from_value_converter",
            "type_spec_from_value", "_NAME_TO_TYPE_SPEC", "_TYPE_SPEC_TO_NAME",
        )
    },
}  # fmt: skip
_TESTS = dict.fromkeys(
    (
        "run_all_in_graph_and_eager_modes", "run_in_graph_and_eager_modes", "run_v1_only",
        "run_deprecated_v1", "run_v2_only", "run_all_in_deprecated_graph_mode_only",
        "deprecated_graph_mode_only", "disable_xla", "enable_eager_op_as_function", "run_cuda_only",
        "run_functions_eagerly", "disable_tfrt", "run_all_without_tensor_float_32",
        "run_without_tensor_float_32",
    ),
    _test_decorator,
)  # fmt: skip

_OWN: dict[str, dict[str, Any]] = {
    "data.ops.iterator_ops": {"OwnedIterator": td.data.Iterator},
    "eager.context": {
        "eager_mode": _nothing,
        "executing_eagerly": td.executing_eagerly,
    },
    "framework.composite_tensor": {"CompositeTensor": composite_tensors.CompositeTensor},
    "framework.ops": {"EagerTensor": _EagerTensor, "convert_to_tensor": td.convert_to_tensor},
    "framework.smart_cond": {"smart_cond": _smart_cond, "smart_constant_value": _constant_value},
    "framework.tensor_shape": {"as_shape": td.TensorShape, "as_dimension": Dimension},
    "framework.tensor_spec": {"DenseSpec": composite_tensors.DenseSpec},
    "framework.tensor_util": {
        "constant_value": _constant_value,
        "constant_value_as_shape": _constant_value_as_shape,
        "is_tf_type": td.is_tensor,
        "try_evaluate_constant": _constant_value,
    },
    "framework.test_util": {
        "TensorFlowTestCase": td.test.TestCase,
        "TestCase": td.test.TestCase,
        "InstallStackTraceHandler": _nothing,
        "IsMklEnabled": lambda: False,
        "is_gpu_available": lambda *args, **kwargs: bool(td.config.list_physical_devices("GPU")),
        **_TESTS,
    },
    "framework.type_spec": _SPECS,
    "framework.type_spec_registry": _SPECS,
    "ops.array_ops": {"prevent_gradient": _prevent_gradient},
    "ops.control_flow_case": {"_case_helper": _case_helper},
    "ops.control_flow_util": {
        "ENABLE_CONTROL_FLOW_V2": True,
        "EnableControlFlowV2": lambda graph: True,
        "GraphOrParentsInXlaContext": _no_xla_context,
    },
    "ops.linalg.linear_operator": {"make_composite_tensor": lambda cls, module_name="": cls},
    "ops.linalg.linear_operator_addition": {"add_operators": _add_operators},
    "ops.parallel_for.control_flow_ops": {"pfor": _pfor},
    "ops.random_ops": {"parameterized_truncated_normal": _parameterized_truncated_normal},
    "ops.resource_variable_ops": {
        "VariableSpec": composite_tensors.VariableSpec,
        "ResourceVariable": Variable,
        "BaseResourceVariable": Variable,
        "is_resource_variable": lambda value: isinstance(value, Variable),
    },
    "trackable.data_structures": {
        "sticky_attribute_assignment": lambda trackable, name, value: value,
    },
    "util.all_util": {
        "remove_undocumented": lambda *args, **kwargs: None,
        "make_all": lambda *args, **kwargs: [],
    },
    "util.deprecation": {
        "deprecated": _unchanged,
        "deprecated_args": _unchanged,
        "deprecated_arg_values": _unchanged,
        "deprecated_endpoints": _unchanged,
        "deprecated_alias": _deprecated_alias,
        "deprecated_argument_lookup": _deprecated_argument_lookup,
        "silence": _nothing,
    },
    "util.object_identity": {
        "Reference": Reference,
        "ObjectIdentityDictionary": IdentityDictionary,
        "ObjectIdentitySet": IdentitySet,
    },
    "util.tf_decorator": {
        "make_decorator": _make_decorator,
        "unwrap": lambda function: ([], inspect.unwrap(function)),
    },
    "util.tf_export": {"tf_export": _unchanged, "keras_export": _unchanged},
    "util.tf_inspect": {
        "getfullargspec": _full_arg_spec,
        "getargspec": _full_arg_spec,
        "_inspect": inspect,
    },
    "util.variable_utils": {
        "convert_variables_to_tensors": _convert_variables_to_tensors,
        "replace_variables_with_atoms": _replace_variables_with_atoms,
    },
    "tools.docs.doc_controls": _DOCUMENTATION,
}
# Modules whose names are looked up in one module before all others.
_SAME: dict[str, ModuleType] = {"util.nest": structures, "util.tf_inspect": inspect}


def found(inside: str, name: str) -> Any:
    """What the private module `inside` has as `name`; None where this is not known here."""
    own = _OWN.get(inside, {}).get(name)
    if own is None and inside in _SAME:
        own = getattr(_SAME[inside], name, None)
    return _missing(inside, name) if own is None else own
