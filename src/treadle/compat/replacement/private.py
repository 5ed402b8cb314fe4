"""What TensorFlow's private modules have that its public ones do not, by module and name."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from typing import Any

import treadle as td
from treadle.compat.replacement import (
    composite_tensors,
    convolution_sizes,
    decorators,
    functions,
)
from treadle.compat.replacement.absent import absent
from treadle.compat.replacement.bounded_specs import BoundedTensorSpec
from treadle.compat.replacement.identities import IdentityDictionary, IdentitySet
from treadle.compat.replacement.local_devices import (
    list_local_devices,
    set_virtual_cpus_to_at_least,
)
from treadle.compat.salted_seeds import salted_seed
from treadle.core.dimension import Dimension
from treadle.core.tensor import Reference
from treadle.core.trace_types import TypeSpec
from treadle.distribute.values import PerReplica
from treadle.distribute.variables import DistributedVariable, MirroredVariable, SyncOnReadVariable
from treadle.keras.losses.base import LossFunctionWrapper
from treadle.keras.masks import mask_of, set_mask
from treadle.ops.state import Variable

_DOCUMENTATION = dict.fromkeys(
    (
        "do_not_generate_docs", "do_not_doc_inheritable", "for_subclass_implementers",
        "do_not_doc_in_subclasses", "doc_in_current_and_subclasses", "doc_private",
    ),
    decorators.same,
)  # fmt: skip
_SPECS = {
    "TypeSpec": TypeSpec,
    **{
        name: getattr(composite_tensors, name)
        for name in (
            "BatchableTypeSpec", "get_name", "lookup", "register",
            "register_type_spec_from_value_converter", "type_spec_from_value",
            "_NAME_TO_TYPE_SPEC", "_TYPE_SPEC_TO_NAME",
        )
    },
}  # fmt: skip
_TENSOR_SPECS = {
    "BoundedTensorSpec": BoundedTensorSpec,
    "DenseSpec": composite_tensors.DenseSpec,
}
_CONDITIONS = {
    "smart_cond": functions.smart_cond,
    "smart_constant_value": td.get_static_value,
}
_SIZES = {
    name: getattr(convolution_sizes, name)
    for name in (
        "conv_output_length", "conv_input_length", "deconv_output_length", "normalize_tuple",
        "normalize_data_format", "normalize_padding", "convert_data_format",
    )
}  # fmt: skip
_TESTS = dict.fromkeys(
    (
        "run_all_in_graph_and_eager_modes", "run_in_graph_and_eager_modes", "run_v2_only",
        "disable_xla", "enable_eager_op_as_function", "run_cuda_only",
        "run_functions_eagerly", "disable_tfrt", "run_all_without_tensor_float_32",
        "run_without_tensor_float_32",
    ),
    decorators.unchanged_test,
)  # fmt: skip
_TESTS_IN_GRAPHS = dict.fromkeys(
    ("run_deprecated_v1", "run_all_in_deprecated_graph_mode_only", "deprecated_graph_mode_only"),
    decorators.graph_test,
)

_AGGREGATING = absent(
    "tensorflow.python.distribute.ps_values.AggregatingVariable",
    "Strategies with servers of parameters are not provided: their variables are not here",
)

_OWN: dict[str, dict[str, Any]] = {
    "client.device_lib": {"list_local_devices": list_local_devices},
    "data.ops.iterator_ops": {"OwnedIterator": td.data.Iterator},
    "distribute.ps_values": {"AggregatingVariable": _AGGREGATING},
    "distribute.strategy_combinations": {
        "set_virtual_cpus_to_at_least": set_virtual_cpus_to_at_least,
    },
    "distribute.values": {
        "AggregatingVariable": _AGGREGATING,
        "DistributedValues": td.distribute.DistributedValues,
        "DistributedVariable": DistributedVariable,
        "MirroredVariable": MirroredVariable,
        "PerReplica": PerReplica,
        "SyncOnReadVariable": SyncOnReadVariable,
    },
    "eager.context": {
        "context": functions.Context,
        "eager_mode": functions.eager_mode,
        "graph_mode": functions.graph_mode,
        "executing_eagerly": td.executing_eagerly,
        "in_eager_mode": td.executing_eagerly,
        "num_gpus": lambda: len(td.config.list_physical_devices("GPU")),
    },
    "framework.composite_tensor": {"CompositeTensor": composite_tensors.CompositeTensor},
    "framework.ops": {
        "EagerTensor": functions.EagerTensor,
        "convert_to_tensor": td.convert_to_tensor,
        "is_dense_tensor_like": td.is_tensor,
        "numpy_text": functions.numpy_text,
    },
    "framework.smart_cond": _CONDITIONS,
    "framework.tensor": _TENSOR_SPECS,
    "framework.tensor_shape": {"as_shape": td.TensorShape, "as_dimension": Dimension},
    "framework.tensor_spec": _TENSOR_SPECS,
    "framework.tensor_util": {
        "constant_value": td.get_static_value,
        "constant_value_as_shape": functions.constant_value_as_shape,
        "is_tf_type": td.is_tensor,
        "try_evaluate_constant": td.get_static_value,
    },
    "framework.test_util": {
        "TensorFlowTestCase": td.test.TestCase,
        "TestCase": td.test.TestCase,
        "InstallStackTraceHandler": decorators.nothing,
        "IsMklEnabled": lambda: False,
        "is_gpu_available": lambda *args, **kwargs: bool(td.config.list_physical_devices("GPU")),
        "run_v1_only": decorators.skipped_test,
        **_TESTS,
        **_TESTS_IN_GRAPHS,
    },
    "framework.type_spec": _SPECS,
    "framework.type_spec_registry": _SPECS,
    "keras.backend": {"get_keras_mask": mask_of, "set_keras_mask": set_mask},
    "keras.losses": {"LossFunctionWrapper": LossFunctionWrapper},
    "keras.losses.losses": {"LossFunctionWrapper": LossFunctionWrapper},
    "keras.utils.conv_utils": _SIZES,
    "layers.utils": _CONDITIONS | _SIZES,
    "ops.array_ops": {
        "prevent_gradient": functions.prevent_gradient,
        "shape_internal": functions.shape_internal,
    },
    "ops.control_flow_case": {"_case_helper": functions.case_helper},
    "ops.control_flow_util": {
        "ENABLE_CONTROL_FLOW_V2": True,
        "EnableControlFlowV2": lambda graph: True,
        "GraphOrParentsInXlaContext": functions.no_xla_context,
    },
    "ops.control_flow_ops": {"with_dependencies": functions.with_dependencies},
    "ops.distributions.util": {"gen_new_seed": salted_seed},
    "ops.linalg.linear_operator": {"make_composite_tensor": lambda cls, module_name="": cls},
    "ops.linalg.linear_operator_addition": {"add_operators": functions.add_operators},
    "ops.parallel_for.control_flow_ops": {"pfor": functions.pfor},
    "ops.random_ops": {
        "parameterized_truncated_normal": functions.parameterized_truncated_normal,
    },
    "ops.resource_variable_ops": {
        "VariableSpec": composite_tensors.VariableSpec,
        "ResourceVariable": Variable,
        "BaseResourceVariable": Variable,
        "is_resource_variable": functions.is_resource_variable,
    },
    "ops.tensor_getitem_override": {
        "_slice_helper": functions.slice_helper,
        "_slice_helper_var": functions.slice_helper_var,
    },
    "tf2": {"enabled": lambda: True},
    "trackable.base": {
        "Trackable": td.Module,
        "no_automatic_dependency_tracking": decorators.same,
        "no_automatic_dependency_tracking_scope": decorators.nothing,
    },
    "trackable.data_structures": {
        "ListWrapper": list,
        "NoDependency": decorators.same,
        "sticky_attribute_assignment": lambda trackable, name, value: value,
        "wrap_or_unwrap": decorators.same,
    },
    "training.moving_averages": {"assign_moving_average": functions.assign_moving_average},
    "types.core": {"Tensor": functions.TensorType, "TensorLike": functions.TensorType},
    "util.all_util": {
        "remove_undocumented": lambda *args, **kwargs: None,
        "make_all": lambda *args, **kwargs: [],
    },
    "util.deprecation": {
        "deprecated": decorators.unchanged,
        "deprecated_args": decorators.unchanged,
        "deprecated_arg_values": decorators.unchanged,
        "deprecated_endpoints": decorators.unchanged,
        "deprecated_alias": decorators.deprecated_alias,
        "deprecated_argument_lookup": decorators.deprecated_argument_lookup,
        "silence": decorators.nothing,
    },
    "util.function_utils": {"fn_args": decorators.fn_args},
    "util.object_identity": {
        "Reference": Reference,
        "ObjectIdentityDictionary": IdentityDictionary,
        "ObjectIdentitySet": IdentitySet,
    },
    "util.tf_contextlib": {"contextmanager": contextlib.contextmanager},
    "util.tf_decorator": {
        "make_decorator": decorators.make_decorator,
        "unwrap": lambda function: ([], inspect.unwrap(function)),
    },
    "util.tf_export": dict.fromkeys(
        ("tf_export", "keras_export", "api_export"), decorators.unchanged
    ),
    "util.tf_inspect": {
        "getfullargspec": decorators.full_arg_spec,
        "getargspec": decorators.arg_spec,
        "getcallargs": decorators.call_args,
        "_inspect": inspect,
    },
    "util.variable_utils": {
        "convert_variables_to_tensors": functions.convert_variables_to_tensors,
        "replace_variables_with_atoms": functions.replace_variables_with_atoms,
    },
    "tools.docs.doc_controls": _DOCUMENTATION,
}
# Modules whose names are those of another module, before all others.
_SAME = {
    "data.util.nest": "treadle.compat.replacement.data_structures",
    "eager.monitoring": "treadle.compat.replacement.monitoring",
    "keras.distribution.distribution_lib": "treadle.keras.distribution",
    "keras.engine.functional": "treadle.keras.models.model",
    "keras.models.functional": "treadle.keras.models.model",
    "platform.gfile": "treadle.compat.v1.gfile",
    "util.nest": "treadle.compat.replacement.structures",
    "util.tf_inspect": "inspect",
}
# The converter's insides: libraries derive classes from them that their users may never make.
_NO_CONVERTER = (
    "It is a part of TensorFlow's AutoGraph, and treadle's converter has no such part: "
    "td.autograph has its public functions"
)


_NO_MESSAGE = "treadle has no protocol buffer for it: see docs/graphdef.md for those that it reads"


def _initializer(inside: str, name: str) -> Any:
    """An initializer by the name of its class: ``RandomNormal`` is `random_normal_initializer`."""
    if inside not in ("ops.init_ops", "ops.init_ops_v2"):
        return None
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    place: Any = td if inside.endswith("v2") else importlib.import_module("treadle.compat.v1")
    return getattr(place, f"{words}_initializer", None)


# Names of private modules that mean what was public in TensorFlow 1, and where treadle has it.
_OLDER = {
    "framework.ops": ("treadle.compat.v1", "name_scope"),
    "training.evaluation": (
        "treadle.compat.v1.train.evaluations",
        "_StopAfterNEvalsHook _evaluate_once _get_or_create_eval_step",
    ),
}


def named(inside: str, name: str) -> Any:
    """What the tables have for a name of the private module or package `inside`, or None."""
    place, names = _OLDER.get(inside, ("", ""))
    if name in names.split():
        return getattr(importlib.import_module(place), name.removeprefix("_"))
    return _OWN.get(inside, {}).get(name)


def found(inside: str, name: str) -> Any:
    """What the private module `inside` has as `name`; None where this is not known here."""
    own = named(inside, name)
    if own is None:
        own = _initializer(inside, name)
    if own is None and inside in _SAME:
        own = getattr(importlib.import_module(_SAME[inside]), name, None)
    if own is None and inside.startswith("autograph.") and inside != "autograph.impl.api":
        own = absent(f"tensorflow.python.{inside}.{name}", _NO_CONVERTER)
    return own


def message(name: str) -> Any:
    """The class of a protocol buffer of ``tensorflow.core``."""
    own = getattr(importlib.import_module("treadle.compat.v1"), name, None)
    own = getattr(td.train, name, None) if own is None else own  # messages of examples
    return absent(f"tensorflow.core.{name}", _NO_MESSAGE) if own is None else own
