"""The names of public modules: where those are that are imported when first used, and what is said
where there is no such name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from treadle.core.refusals import explaining

# Where a name may be that is not where it was looked for, the most likely places first.
_PLACES = (
    "treadle", "treadle.math", "treadle.math.special", "treadle.linalg", "treadle.nn",
    "treadle.random", "treadle.nn.experimental",
    "treadle.random.experimental", "treadle.bitwise", "treadle.strings", "treadle.image",
    "treadle.audio", "treadle.lookup", "treadle.lookup.experimental", "treadle.quantization",
    "treadle.io", "treadle.io.gfile", "treadle.debugging", "treadle.data", "treadle.nest",
    "treadle.autograph",
    "treadle.types.experimental", "treadle.config", "treadle.config.experimental", "treadle.test",
    "treadle.distribute", "treadle.distribute.experimental",
    "treadle.experimental", "treadle.experimental.dlpack", "treadle.keras",
    "treadle.keras.layers",
    "treadle.keras.losses", "treadle.keras.metrics", "treadle.keras.optimizers",
    "treadle.keras.optimizers.schedules", "treadle.keras.activations",
    "treadle.keras.initializers", "treadle.keras.callbacks", "treadle.keras.regularizers",
    "treadle.keras.utils", "treadle.keras.ops", "treadle.train", "treadle.summary",
    "treadle.summary.experimental", "treadle.profiler.experimental", "treadle.saved_model",
)  # fmt: skip

# Of these the modules that are small: they are imported for the text of an error.
_SMALL = frozenset(
    f"treadle.{name}"
    for name in (
        "math", "linalg", "nn", "random", "nn.experimental", "random.experimental", "bitwise",
        "debugging", "nest", "types.experimental", "config", "config.experimental", "experimental",
        "experimental.dlpack",
    )
)  # fmt: skip

_NO_RAGGED = "Use td.RaggedTensor, with its row_splits, row_lengths() and bounding_shape()"
_NO_QUANTIZED = (
    "Quantized numbers are not provided: use bfloat16 or float16, or td.quantization for floats "
    "that are rounded as they would be"
)

# TensorFlow's names that are not provided, and what to use instead.
_INSTEAD = {
    **dict.fromkeys(
        ("ragged", "RaggedTensor", "RaggedTensorSpec"),
        "Ragged tensors are not provided in graphs of TensorFlow 1: use dense or sparse ones, or "
        "td.RaggedTensor in td.function",
    ),
    **dict.fromkeys(
        (
            "StructuredTensor", "ragged_fill_empty_rows", "ragged_fill_empty_rows_grad",
        ),
        _NO_RAGGED,
    ),
    **dict.fromkeys(
        (
            "dequantize", "quantize", "quantized_concat", "QUANTIZED_DTYPES", "qint8", "qint16",
            "qint32", "quint8", "quint16",
        ),
        _NO_QUANTIZED,
    ),
    **dict.fromkeys(
        ("resource", "variant"),
        "Variables, arrays of tensors and datasets are objects of Python, not tensors of a dtype",
    ),
    **dict.fromkeys(
        ("quantize_and_dequantize", "quantize_and_dequantize_v4"),
        "Use td.quantization.quantize_and_dequantize_v2",
    ),
    "RegisterGradient": "Use td.custom_gradient",
    "Operation": "A tensor's node is tensor.op: td.inspect.stages shows the graph",
    **dict.fromkeys(
        ("mlir", "xla"),
        "Programs are compiled by treadle itself: td.inspect.stages and `treadle inspect` show how",
    ),
    "sysconfig": "Use `treadle env`, and np.show_config() for NumPy",
    "nondifferentiable_batch_function": "Use td.data.Dataset.batch, or td.vectorized_map",
    **dict.fromkeys(
        (
            "dispatch_for_api", "dispatch_for_unary_elementwise_apis",
            "dispatch_for_binary_elementwise_apis", "dispatch_for_binary_elementwise_assert_apis",
            "unregister_dispatch_for",
        ),
        "Functions are not replaced for classes of the user: give the class methods and operators",
    ),
    "ExtensionTypeBatchEncoder": "Objects are taken apart along the first axes of their fields",
    **dict.fromkeys(
        (
            "float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
            "float8_e5m2", "float8_e5m2fnuz", "int2", "int4", "uint2", "uint4",
        ),
        "Numbers of fewer bits are not provided: use float16, bfloat16 or int8",
    ),
    **dict.fromkeys(
        ("async_scope", "async_clear_error", "function_executor_type"),
        "Calls return when they are done",
    ),
    "no_gradient": "Use td.stop_gradient, or td.custom_gradient",
    "unicode_script": "Scripts of characters are not provided: use the unicodedata module before "
    "tensors are made",
    **dict.fromkeys(
        ("experimental_connect_to_cluster", "experimental_connect_to_host", "ClusterDeviceFilters"),
        "Operations run in this process: td.distribute.MultiWorkerMirroredStrategy has several "
        "processes, which `mpiexec -n 2 python program.py` starts",
    ),
    **dict.fromkeys(
        ("Server", "PreemptionCheckpointHandler", "PreemptionWatcher", "TerminationConfig"),
        "Workers are processes that MPI starts: use td.distribute.MultiWorkerMirroredStrategy, and "
        "td.keras.callbacks.BackupAndRestore or td.train.CheckpointManager for interruptions",
    ),
    **dict.fromkeys(
        (
            "GCEClusterResolver", "KubernetesClusterResolver", "KubernetesExecutableLocation",
            "SlurmClusterResolver", "TPUClusterResolver",
        ),
        "MPI knows the workers: start them with mpiexec, or srun under Slurm",
    ),
    "coordinator": "Workers compute in sync: use td.distribute.MultiWorkerMirroredStrategy",
    "tpu": "There are devices of the host and GPUs only",
    "load_op_library": "Use td.numpy_function for code of others, or td.custom_gradient",
    "load_library": "Use td.numpy_function for code of others, or td.custom_gradient",
    **dict.fromkeys(
        ("fixed_size_partitioner", "variable_axis_size_partitioner",
         "min_max_variable_partitioner"),
        "Variables are not divided into parts: leave the partitioner out",
    ),
    "learned_unigram_candidate_sampler": "Shares of classes are not learned from calls: use "
    "td.random.fixed_unigram_candidate_sampler with their numbers",
    "conv": "Use td.nn.convolution",
    "conv2d_backprop_input_v2": "Use td.nn.conv2d_transpose, or a td.GradientTape",
    "conv2d_backprop_filter_v2": "Use a td.GradientTape",
    "RNNCellDeviceWrapper": "Use td.keras.layers for recurrent networks",
    "RNNCellDropoutWrapper": "Use td.keras.layers for recurrent networks",
    "RNNCellResidualWrapper": "Use td.keras.layers for recurrent networks",
    "generate_bounding_box_proposals": "Use td.image.non_max_suppression on boxes made of anchors "
    "and deltas",
    "decode_jxl": "JPEG XL files are not read: convert them to PNG or JPEG",
    "Saver": "Use td.train.Checkpoint, which reads files of a Saver by the names of variables",
    **dict.fromkeys(
        ("client", "server"),
        "A profile is made by the process itself: td.profiler.experimental.start and stop",
    ),
    **dict.fromkeys(
        ("JaxLayer", "FlaxLayer", "TorchModuleWrapper"),
        "Code of other libraries is no layer: put td.numpy_function into a Layer, or write its "
        "layers with keras.layers",
    ),
    "OrbaxCheckpoint": "Use keras.callbacks.ModelCheckpoint, or td.train.CheckpointManager",
    **dict.fromkeys(
        (
            "AWQConfig", "AWQDTypePolicy", "GPTQConfig", "GPTQDTypePolicy",
        ),
        "Use model.quantize('int8') or model.quantize('int4'), which keep tables of weights in "
        "fewer bits",
    ),
    "SymbolicScope": "It belongs to the JAX backend of Keras: use td.function",
    **dict.fromkeys(
        ("CuDNNLSTM", "CuDNNGRU"), "Keras has it no longer: use LSTM or GRU",
    ),
    "multi_gpu_model": "Make the model in the scope of a td.distribute.MirroredStrategy",
    "np_utils": "Use keras.utils.to_categorical and keras.utils.normalize",
    "DenseFeatures": "Use the preprocessing layers of keras.layers, and keras.layers.Concatenate",
    **dict.fromkeys(
        ("advanced_activations", "recurrent", "convolutional", "embeddings"),
        "The layers are in keras.layers",
    ),
    **dict.fromkeys(
        ("to_variant", "from_variant", "get_model_proto"),
        "Datasets are no tensors: give them to functions as they are, and keep their elements with "
        "Dataset.save",
    ),
    "data.experimental.service": "Elements are made by the process that uses them: use "
    "Dataset.shard for workers, and num_parallel_calls for threads",
    "distributed_save": "Use Dataset.shard and Dataset.save in each worker",
    "make_saveable_from_iterator": "Use td.train.Checkpoint(iterator=iter(dataset))",
    **dict.fromkeys(
        ("ClusterDef", "JobDef", "ServerDef"),
        "Give td.train.ClusterSpec a dict of the tasks' addresses by the names of jobs",
    ),
    "debugging.experimental": "Use td.summary, td.profiler and td.debugging.enable_check_numerics",
    "dtypes.experimental": "Numbers of fewer bits are not provided: use float16, bfloat16 or int8",
    "saved_model.experimental": "A model is saved whole: see td.saved_model.save",
    **dict.fromkeys(
        [f"train.experimental.{n}" for n in (
            "MaxShardSizePolicy", "ShardByTaskPolicy", "ShardableTensor", "ShardingCallback")],
        "A checkpoint is one file of values: see td.train.Checkpoint",
    ),
    **dict.fromkeys(
        [f"train.experimental.{n}" for n in (
            "DynamicLossScale", "FixedLossScale", "LossScale", "MixedPrecisionLossScaleOptimizer",
            "disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite")],
        "Use td.keras.mixed_precision, whose LossScaleOptimizer scales losses",
    ),
    "distribute.experimental.partitioners": "Variables are not split: each replica has all of them",
    "distribute.experimental.rpc": "Workers are processes that MPI starts: see "
    "td.distribute.MultiWorkerMirroredStrategy",
    "lite": "Models are not converted: docs/shared_objects.md tells how programs are made that run "
    "without Python",
    "tensorrt": "Programs are compiled by treadle itself, for GPUs too",
    "dtensor": "Tensors are not split over devices: use td.distribute",
    "sobol_sample": "Use scipy.stats.qmc.Sobol before tensors are made, or td.random.uniform",
}


def explain_missing(hints: Mapping[str, str]) -> None:
    """Say what to use instead of names, each behind the module in which it is looked for."""
    _INSTEAD.update(hints)


def missing_name(module: str, name: str, more: str = "") -> AttributeError:
    """The error for ``module.name``, with where the name is, or what is near it.

    Args:
        more: what else is known of this name.
    """
    here = _shown(module)
    if name.startswith("__") and name.endswith("__"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    hint = (
        _INSTEAD.get(f"{here.removeprefix('td.')}.{name}")
        or more
        or _INSTEAD.get(name)
        or _elsewhere(module, name)
        or _near(module, name)
    )
    if not hint:
        hint = "If it is TensorFlow's, it is not supported yet: docs/api.md lists the names"
    return AttributeError(f"{here} has no {name!r}. {hint}")


def missing_in(module: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a public module that has all its names."""
    return provided(module, {})


def provided(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a public module that imports some of its names when they are first
    used: importing treadle takes the time of what most programs need.

    Args:
        places: for a module the names that are in it, separated by blanks; ``a=b`` is b there, and
            a name that `module` itself provides is that of a module in it.
    """
    found: dict[str, tuple[str, str]] = {}
    for place, names in places.items():
        for entry in names.split():
            name, _, there = entry.partition("=")
            found[name] = place, there or name

    def __getattr__(name: str) -> Any:
        if name not in found:
            raise missing_name(module, name)
        place, there = found[name]
        if place == module:
            return importlib.import_module(f"{module}.{there}")
        value = explaining(getattr(importlib.import_module(place), there), module)
        setattr(sys.modules[module], name, value)
        return value

    names_of_module = vars(sys.modules[module])
    names_of_module["__dir__"] = lambda: sorted({*names_of_module, *found})
    return __getattr__


def _shown(module: str) -> str:
    return "td" + module.removeprefix("treadle")


def _loaded() -> Iterator[tuple[str, ModuleType]]:
    """The places that are imported; large ones that are not imported yet stay so."""
    for place in _PLACES:
        module = sys.modules.get(place)
        if module is None and place in _SMALL:
            module = importlib.import_module(place)
        if module is not None:
            yield place, module


def _elsewhere(module: str, name: str) -> str:
    found = [p for p, m in _loaded() if p != module and name in _public(m)]
    if found:
        return f"Use {' or '.join(f'{_shown(p)}.{name}' for p in found[:2])}"
    if module == "treadle.linalg" and _stages(name):
        return f"Use np.linalg.{name}, which takes tensors, in functions too"
    if module == "treadle" and name in _public(
        sys.modules["treadle"].compat.__getattr__("v1")  # not as a program reaches it
    ):
        return (
            f"It is TensorFlow 1's: import treadle.compat.v1 as tf, which has tf.{name} and "
            "records the graph of a session; `treadle upgrade` rewrites programs"
        )
    return ""


def _stages(name: str) -> bool:
    """Whether NumPy's function of that name works on tensors of a graph."""
    from treadle.numpy_staging.functions import FUNCTIONS

    return getattr(np.linalg, name, None) in FUNCTIONS


def _near(module: str, name: str) -> str:
    import difflib

    names = _public(sys.modules[module]) if module in sys.modules else set()
    near = difflib.get_close_matches(name, sorted(names), 3, 0.75)
    return f"Near it {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else ""


def _public(module: ModuleType) -> set[str]:
    listed = getattr(module, "__all__", None)
    return set(listed) if listed is not None else {n for n in vars(module) if n[:1] != "_"}
