"""The names of TensorFlow's modules of the training stack and of their classes: here, or missing
for a reason; what is missing is refused by one line that says what to use."""

import json
from pathlib import Path

import pytest

import treadle as td
from tests.facts_tf.names import MODULES, module_of

NAMES = json.loads((Path(__file__).parent / "names.json").read_text())
_PROTO = (
    "ClearExtension DiscardUnknownFields Extensions FindInitializationErrors "
    "HasExtension UnknownFields"
)
_OF_TYPES = (
    "cast experimental_as_proto experimental_from_proto experimental_type_proto flatten "
    "from_tensors from_value is_compatible_with is_subtype_of most_specific_common_supertype "
    "most_specific_compatible_type placeholder_value to_tensors value_type"
)
_OF_GRAPHS = (
    "colocate_vars_with configure experimental_run group make_dataset_iterator "
    "make_input_fn_iterator update_config_proto"
)
_REFUSED = "distribute.ParameterServerStrategy distribute.TPUStrategy".split()
_REFUSED += [
    f"distribute.experimental.{name}"
    for name in ("ParameterServerStrategy", "TPUStrategy")
]
# What is missing, by the reason: the module or class, and its names.
MISSING = {
    "TensorFlow's data service and its graphs of pipelines": {
        "data.experimental": "distributed_save from_variant get_model_proto "
        "make_saveable_from_iterator service to_variant",
        "data.Dataset": "fingerprint",
    },
    "types of datasets are compared by ==": {
        "data.DatasetSpec": _OF_TYPES, "data.IteratorSpec": _OF_TYPES,
    },
    "a type of its own has no instances here": {"data.experimental.Optional": "element_spec"},
    "a function that gives the entries": {
        "data.experimental.DatasetInitializer": "initialize key_dtype value_dtype",
    },
    "protocol buffers of programs, variables that are initialized, and pictures that few have": {
        "io": "decode_jxl",
        "io.TFRecordOptions": "compression_type_map",
    },
    "clusters of TensorFlow's servers": {
        "config": "experimental_connect_to_cluster experimental_connect_to_host",
        "config.experimental": "ClusterDeviceFilters",
        "distribute": "Server coordinator",
        "distribute.cluster_resolver": "GCEClusterResolver KubernetesClusterResolver "
        "KubernetesExecutableLocation SlurmClusterResolver TPUClusterResolver",
        "distribute.experimental": "PreemptionCheckpointHandler PreemptionWatcher "
        "TerminationConfig coordinator partitioners rpc",
        "train": "ClusterDef JobDef ServerDef",
        "train.ClusterSpec": "as_cluster_def",
        "profiler.experimental": "client server",
    },
    "parts of TensorFlow's implementation": {
        "distribute.CrossDeviceOps": "batch_reduce batch_reduce_implementation broadcast "
        "broadcast_implementation reduce reduce_implementation",
        "distribute.DistributedDataset": "reduce",
        "distribute.InputOptions": "count index", "distribute.RunOptions": "count index",
        "distribute.Strategy": _OF_GRAPHS,
    },
    "what all protocol buffers have": {
        **dict.fromkeys(
            (f"train.{name}" for name in ("BytesList", "Example", "Feature", "FeatureList",
             "FloatList", "Int64List", "SequenceExample")),
            _PROTO,
        ),
        "train.Features": f"{_PROTO} FeatureEntry",
        "train.FeatureLists": f"{_PROTO} FeatureListEntry",
    },
}  # fmt: skip
# Classes whose instances have names that the classes have not here.
INSTANCES = {
    "data.Options": lambda: td.data.Options(),
    "data.ThreadingOptions": lambda: td.data.ThreadingOptions(),
    **{
        f"data.experimental.{name}": (lambda name=name: getattr(td.data.experimental, name)())
        for name in ("AutotuneOptions", "DistributeOptions", "OptimizationOptions",
                     "ServiceOptions", "ThreadingOptions")
    },
    "data.experimental.Reducer": lambda: td.data.experimental.Reducer(None, None, None),
    "distribute.InputContext": lambda: td.distribute.InputContext(),
    "distribute.InputOptions": lambda: td.distribute.InputOptions(),
    "distribute.ReplicaContext": lambda: td.distribute.get_replica_context(),
    "distribute.RunOptions": lambda: td.distribute.RunOptions(),
    "distribute.experimental.ValueContext": lambda: td.distribute.experimental.ValueContext(),
    "train.CheckpointOptions": lambda: td.train.CheckpointOptions(),
}  # fmt: skip


def missing_from(path):
    """The names that are missing from a module or class, those of its base classes included."""
    found = set()
    for places in MISSING.values():
        for place, names in places.items():
            kind = module_of(td, place) if "." in place else None
            own = module_of(td, path)
            derived = isinstance(kind, type) and isinstance(own, type) and issubclass(own, kind)
            if place == path or derived:
                found |= set(names.split())
    return found


PATHS = [path for path in NAMES if path != "tensorflow"]


@pytest.mark.parametrize("path", PATHS)
def test_names_of_tensorflow(path):
    module, _, last = path.rpartition(".")
    if path in _REFUSED or (path not in MODULES and last in missing_from(module)):
        return  # a class that is refused as a whole, with all of its names
    ours = INSTANCES[path]() if path in INSTANCES else module_of(td, path)
    missing = {name for name in NAMES[path] if not hasattr(ours, name)}
    known = missing_from(path)
    assert missing == {name for name in known if name in NAMES[path]}


@pytest.mark.parametrize("module", MODULES)
def test_missing_names_say_what_to_use(module):
    for name in missing_from(module):
        with pytest.raises(AttributeError, match=name) as refusal:
            getattr(module_of(td, module), name)
        assert "If it is TensorFlow's" not in str(refusal.value)


@pytest.mark.parametrize("path", _REFUSED)
def test_strategies_that_are_refused(path):
    with pytest.raises(NotImplementedError, match="td.distribute"):
        module_of(td, path)()
