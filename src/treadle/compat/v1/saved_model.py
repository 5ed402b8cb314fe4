"""``td.compat.v1.saved_model``: graphs and the values of a session as saved models.

The files are those of `td.saved_model`: each signature is a function there, which
`td.saved_model.load` gives in a process without sessions. `loader.load` gives a session the graph
itself, which is kept beside the functions.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import treadle as td
from treadle.compat.graph_nodes import dtype_of, shape_of
from treadle.compat.v1.session import Program
from treadle.compat.v1.train.saver import Saver, import_meta_graph
from treadle.compat.v1.values import Tensor
from treadle.core.origin import at, user_origin
from treadle.names import missing_in
from treadle.saved_model import (
    ASSETS_DIRECTORY,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    GPU,
    SERVING,
    TPU,
    TRAINING,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
    Asset,
    LoadOptions,
    SaveOptions,
    contains_saved_model,
    save,
)
from treadle.saved_model import load as load_v2
from treadle.saved_model.files import INDEX, VARIABLES
from treadle.saved_model.tensorflow.loading import read_graph

# Collections of operations that TensorFlow runs once a graph is loaded.
_FIRST = ("saved_model_main_op", "legacy_init_op")
PREDICT_INPUTS, PREDICT_METHOD_NAME = "inputs", "tensorflow/serving/predict"
PREDICT_OUTPUTS = "outputs"
CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME = "inputs", "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "classes", "scores"
REGRESS_INPUTS, REGRESS_METHOD_NAME = "inputs", "tensorflow/serving/regress"
REGRESS_OUTPUTS = "outputs"


class TensorInfo(NamedTuple):
    """A tensor of a signature: its name in the graph, its dtype and shape."""

    name: str
    dtype: td.DType
    tensor_shape: td.TensorShape


class SignatureDef(NamedTuple):
    """What a graph is fed and what is fetched, by names of the program's choice."""

    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]
    method_name: str


class MetaGraphDef(NamedTuple):
    """What `loader.load` gives: the signatures of the graph by their names."""

    signature_def: dict[str, SignatureDef]


def build_tensor_info(tensor: Any) -> TensorInfo:
    """A tensor as signatures have it."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"build_tensor_info needs a tensor of a graph, not {tensor!r}")
    return TensorInfo(tensor.name, tensor.dtype, tensor.shape)


def get_tensor_from_tensor_info(
    tensor_info: TensorInfo, graph: Any = None, import_scope: str | None = None
) -> Any:
    """The tensor of a graph, the default one when omitted."""
    graph = graph or td.compat.v1.get_default_graph()
    prefix = f"{import_scope}/" if import_scope else ""
    return graph.get_tensor_by_name(prefix + tensor_info.name)


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None, method_name: str | None = None,
    defaults: Any = None,
) -> SignatureDef:  # fmt: skip
    """A signature."""
    return SignatureDef(dict(inputs or {}), dict(outputs or {}), method_name or "")


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """The signature of tensors by their names.

    Raises:
        ValueError: there are none.
    """
    if not inputs or not outputs:
        raise ValueError("Prediction inputs and outputs cannot be None or empty.")
    infos = [{k: build_tensor_info(t) for k, t in found.items()} for found in (inputs, outputs)]
    return SignatureDef(infos[0], infos[1], PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """The signature of a classification."""
    outputs = {CLASSIFY_OUTPUT_CLASSES: classes, CLASSIFY_OUTPUT_SCORES: scores}
    found = {k: build_tensor_info(t) for k, t in outputs.items() if t is not None}
    inputs = {CLASSIFY_INPUTS: build_tensor_info(examples)}
    return SignatureDef(inputs, found, CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """The signature of a regression."""
    return SignatureDef(
        {REGRESS_INPUTS: build_tensor_info(examples)},
        {REGRESS_OUTPUTS: build_tensor_info(predictions)}, REGRESS_METHOD_NAME,
    )  # fmt: skip


def is_valid_signature(signature_def: Any) -> bool:
    """Whether there is something to feed, to fetch and a method."""
    return isinstance(signature_def, SignatureDef) and all(signature_def)


class Builder:
    """Writes the graph and the variables of a session as a saved model.

    Args:
        export_dir: the folder, in which no saved model may be.

    Raises:
        AssertionError: there is one.
    """

    def __init__(self, export_dir: Any) -> None:
        export_dir = os.fsdecode(export_dir)
        if contains_saved_model(export_dir):
            raise AssertionError(
                f"Export directory {export_dir} already exists, and isn't empty. Please choose a "
                "different export directory, or delete all the contents of the specified directory"
            )
        self._folder = export_dir
        self._saved: _SavedGraph | None = None
        self._tags: list[str] = []

    def add_meta_graph_and_variables(
        self, sess: Any, tags: Sequence[str],
        signature_def_map: Mapping[str, SignatureDef] | None = None, assets_collection: Any = None,
        legacy_init_op: Any = None, clear_devices: bool = False, main_op: Any = None,
        strip_default_attrs: bool = False, saver: Any = None,
    ) -> None:  # fmt: skip
        """Take the graph of a session, and the values that its variables have now.

        Args:
            tags: words by which it is loaded.
            signature_def_map: what is fed and fetched.
            main_op: an operation that runs once the graph is loaded.
            Further arguments are accepted for TensorFlow programs.

        Raises:
            ValueError: a signature names what the graph does not have.
            FailedPreconditionError: a variable has no value.
        """
        if self._saved is not None:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke "
                "`add_meta_graph()` instead."
            )
        init = main_op if main_op is not None else legacy_init_op
        self._tags = [tags] if isinstance(tags, str) else list(tags)
        self._saved = _SavedGraph(sess, dict(signature_def_map or {}), saver, init)

    def add_meta_graph(self, tags: Sequence[str], *args: Any, **kwargs: Any) -> None:
        """Have further words by which the same graph is loaded; other graphs are not supported."""
        if self._saved is None:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        self._tags += [tags] if isinstance(tags, str) else list(tags)

    def save(self, as_text: bool = False) -> str:
        """Write the files, and give the folder.

        Raises:
            AssertionError: nothing was added.
        """
        if self._saved is None:
            raise AssertionError("There is no graph: call add_meta_graph_and_variables() first")
        options = SaveOptions(extra_tags=[tag for tag in self._tags if tag != SERVING])
        save(self._saved, self._folder, signatures=self._saved.signatures, options=options)
        return str(self._folder)


class _SavedGraph:
    """A session as an object that is saved: its graph as bytes, the values of its variables, and a
    function for each signature."""

    def __init__(
        self, sess: Any, definitions: dict[str, SignatureDef], saver: Saver | None, init: Any
    ) -> None:
        saver = saver or Saver(allow_empty=True)
        names = saver._chosen()
        for variable in names.values():
            sess.check_read(variable.op)
        self.variables = {name: sess.storage_of(v) for name, v in names.items()}
        self.graph = td.constant(saver.export_meta_graph(graph=sess.graph).SerializeToString())
        described = {
            "signatures": {k: _plain(v) for k, v in definitions.items()},
            "init": None if init is None else init.name,
        }
        self.described = td.constant(json.dumps(described))
        self.signatures = {k: _function(sess, v) for k, v in definitions.items()}
        used = [v for c in self.signatures.values() for v in c.variables]
        known = {id(v) for v in self.variables.values()}
        self.others = [v for v in used if id(v) not in known]

    def _trackable_children(self) -> dict[str, Any]:
        return {
            "graph_of_session": self.graph, "signatures_of_session": self.described,
            "variables_of_session": self.variables, "other_variables": self.others,
        }  # fmt: skip


def _plain(definition: SignatureDef) -> dict[str, Any]:
    def infos(found: Mapping[str, TensorInfo]) -> dict[str, Any]:
        return {
            k: [t.name, t.dtype.name, None if t.tensor_shape.rank is None
                else t.tensor_shape.as_list()]
            for k, t in found.items()
        }  # fmt: skip

    inputs, outputs = infos(definition.inputs), infos(definition.outputs)
    return {"inputs": inputs, "outputs": outputs, "method": definition.method_name}


def _signature(plain: Mapping[str, Any]) -> SignatureDef:
    def infos(found: Mapping[str, Any]) -> dict[str, TensorInfo]:
        return {
            k: TensorInfo(name, td.as_dtype(dtype), td.TensorShape(shape))
            for k, (name, dtype, shape) in found.items()
        }

    return SignatureDef(infos(plain["inputs"]), infos(plain["outputs"]), plain["method"])


def _function(sess: Any, definition: SignatureDef) -> Any:
    """A signature as a function of the fed tensors that gives the fetched ones."""
    fed = {k: get_tensor_from_tensor_info(t, sess.graph) for k, t in definition.inputs.items()}
    fetched = {k: get_tensor_from_tensor_info(t, sess.graph) for k, t in definition.outputs.items()}
    program = Program(sess, list(fetched.values()), list(fed.values()))
    if len(program.stages) > 1 or program.fed:
        raise ValueError(
            "a signature with operations that call Python, or that read a pipeline, cannot be "
            f"saved{at(user_origin())}"
        )

    def run(**tensors: Any) -> dict[str, Any]:
        results = program.function.python_function(*(tensors[k] for k in fed))
        return dict(zip(fetched, results, strict=True))

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY) for k in fed]
    )
    specs = {k: td.TensorSpec(t.shape, t.dtype, k) for k, t in fed.items()}
    return td.function(autograph=False)(run).get_concrete_function(**specs)


def simple_save(
    session: Any, export_dir: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:  # fmt: skip
    """Write a session as a saved model with one signature, ``serving_default``.

    Args:
        inputs, outputs: what is fed and fetched, by names.

    Raises: as `Builder`.
    """
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder = Builder(export_dir)
    builder.add_meta_graph_and_variables(session, [SERVING], signatures, main_op=legacy_init_op)
    builder.save()


def load(
    sess: Any, tags: Any, export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> MetaGraphDef:
    """Add the graph of a saved model to that of a session, and give its variables their values.

    Args:
        import_scope: in front of all names.

    Returns:
        The signatures, as ``signature_def``.

    Raises:
        OSError: there is no saved model.
        ValueError: it has functions only, and no graph: `td.saved_model.load` reads it.
        UnimplementedError: a graph of TensorFlow has operations of types that are not known.
        RuntimeError: it does not have the tags.
        DataLossError: it is damaged.
    """
    asked = [tags] if isinstance(tags, str) else list(tags)
    export_dir = os.fsdecode(export_dir)
    if not os.path.exists(os.path.join(export_dir, INDEX)) and contains_saved_model(export_dir):
        return _load_of_tensorflow(sess, set(asked), Path(export_dir), import_scope)
    try:
        loaded = load_v2(export_dir, [tag for tag in asked if tag != SERVING])
    except td.errors.NotFoundError as error:
        raise RuntimeError(f"MetaGraphDef could not be found: {error.message}") from None
    if not hasattr(loaded, "graph_of_session"):
        raise _of_functions(export_dir)
    prefix = f"{import_scope}/" if import_scope else ""
    described = json.loads(loaded.signatures_of_session.numpy())
    with sess.graph.as_default():
        import_meta_graph(loaded.graph_of_session.numpy(), import_scope=import_scope)
        for name, variable in loaded.variables_of_session.items():
            owner = sess.graph.get_operation_by_name(prefix + name).owner
            sess.give_value(owner, variable.read_value())
        if described["init"] is not None:
            sess.run(sess.graph.get_operation_by_name(prefix + described["init"]))
    return MetaGraphDef({k: _signature(v) for k, v in described["signatures"].items()})


def _of_functions(folder: Any) -> ValueError:
    return ValueError(
        f"{folder} has functions and no graph of a session: use td.saved_model.load"
        f"{at(user_origin())}"
    )


def _load_of_tensorflow(
    sess: Any, tags: set[str], folder: Path, import_scope: str | None
) -> MetaGraphDef:
    """`load` of a model that TensorFlow wrote."""
    try:
        found = read_graph(folder, tags)
    except td.errors.NotFoundError as error:
        raise RuntimeError(f"MetaGraphDef could not be found: {error.message}") from None
    if found.HasField("object_graph_def"):
        raise _of_functions(folder)
    prefix = f"{import_scope}/" if import_scope else ""
    with sess.graph.as_default():
        saver = import_meta_graph(found, import_scope=import_scope)
        if saver is not None and (folder / f"{VARIABLES}.index").exists():
            saver.restore(sess, str(folder / VARIABLES))
        for key in _FIRST:
            for name in found.collection_def[key].node_list.value:
                sess.run(sess.graph.get_operation_by_name(prefix + name))
    definitions = found.signature_def.items()
    return MetaGraphDef({k: _of_message(v) for k, v in definitions if k[:2] != "__"})


def _of_message(definition: Any) -> SignatureDef:
    def infos(found: Any) -> dict[str, TensorInfo]:
        return {
            k: TensorInfo(t.name, dtype_of(t.dtype), td.TensorShape(shape_of(t.tensor_shape)))
            for k, t in found.items()
        }

    return SignatureDef(
        infos(definition.inputs), infos(definition.outputs), definition.method_name
    )


maybe_saved_model_directory = contains_saved_model
signature_constants = SimpleNamespace(
    DEFAULT_SERVING_SIGNATURE_DEF_KEY=DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    PREDICT_INPUTS=PREDICT_INPUTS, PREDICT_METHOD_NAME=PREDICT_METHOD_NAME,
    PREDICT_OUTPUTS=PREDICT_OUTPUTS, CLASSIFY_INPUTS=CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME=CLASSIFY_METHOD_NAME, CLASSIFY_OUTPUT_CLASSES=CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES=CLASSIFY_OUTPUT_SCORES, REGRESS_INPUTS=REGRESS_INPUTS,
    REGRESS_METHOD_NAME=REGRESS_METHOD_NAME, REGRESS_OUTPUTS=REGRESS_OUTPUTS,
)  # fmt: skip
tag_constants = SimpleNamespace(SERVING=SERVING, TRAINING=TRAINING, GPU=GPU, TPU=TPU)
constants = SimpleNamespace(
    ASSETS_DIRECTORY=ASSETS_DIRECTORY, VARIABLES_DIRECTORY=VARIABLES_DIRECTORY,
    VARIABLES_FILENAME=VARIABLES_FILENAME,
)  # fmt: skip
builder = SimpleNamespace(SavedModelBuilder=Builder)
loader = SimpleNamespace(load=load, maybe_saved_model_directory=maybe_saved_model_directory)
utils = SimpleNamespace(
    build_tensor_info=build_tensor_info, get_tensor_from_tensor_info=get_tensor_from_tensor_info
)
signature_def_utils = SimpleNamespace(
    build_signature_def=build_signature_def, predict_signature_def=predict_signature_def,
    classification_signature_def=classification_signature_def,
    regression_signature_def=regression_signature_def, is_valid_signature=is_valid_signature,
)  # fmt: skip

__all__ = [
    "Asset", "Builder", "LoadOptions", "MetaGraphDef", "SaveOptions", "SignatureDef", "TensorInfo",
    "build_signature_def", "build_tensor_info", "builder", "classification_signature_def",
    "constants", "contains_saved_model", "get_tensor_from_tensor_info", "is_valid_signature",
    "load", "load_v2", "loader", "maybe_saved_model_directory", "predict_signature_def",
    "regression_signature_def", "save", "signature_constants", "signature_def_utils",
    "simple_save", "tag_constants", "utils",
]  # fmt: skip

__getattr__ = missing_in(__name__)
