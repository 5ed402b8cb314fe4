"""The messages of TensorFlow's graphs, saved models and summaries, as classes of protobuf.

Their descriptors are made when the first class is asked for, from the table below: names, numbers
and types of the fields that stayed the same through TensorFlow 1 and 2. Other fields of a file are
kept and written again. The classes belong to a pool of their own, so TensorFlow may be imported in
the same process. protobuf is an extra: ``pip install 'treadle[graphdef]'``.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from treadle.core.origin import at, user_origin
from treadle.ops.strings.tensors import NUMBERS

# message -> its fields, as ``name:number type``; ``*`` is behind repeated ones, and ``a>b`` a map.
# An inner message is named ``Outer.Inner``. A message has one of its fields with ``?``: `_ONE_OF`.
_MESSAGES = {
    "TensorShapeProto.Dim": "size:1 int64, name:2 string",
    "TensorShapeProto": "dim:2 TensorShapeProto.Dim*, unknown_rank:3 bool",
    "TensorProto": (
        "dtype:1 DataType, tensor_shape:2 TensorShapeProto, version_number:3 int32, "
        "tensor_content:4 bytes, half_val:13 int32*, float_val:5 float*, double_val:6 double*, "
        "int_val:7 int32*, string_val:8 bytes*, scomplex_val:9 float*, int64_val:10 int64*, "
        "bool_val:11 bool*, dcomplex_val:12 double*, uint32_val:16 uint32*, uint64_val:17 uint64*"
    ),
    "AttrValue.ListValue": (
        "s:2 bytes*, i:3 int64*, f:4 float*, b:5 bool*, type:6 DataType*, "
        "shape:7 TensorShapeProto*, tensor:8 TensorProto*, func:9 NameAttrList*"
    ),
    "AttrValue": (
        "s:2 bytes, i:3 int64, f:4 float, b:5 bool, type:6 DataType, shape:7 TensorShapeProto, "
        "tensor:8 TensorProto, list:1 AttrValue.ListValue, func:10 NameAttrList, "
        "placeholder:9 string"
    ),
    "NameAttrList": "name:1 string, attr:2 string>AttrValue",
    "NodeDef": "name:1 string, op:2 string, input:3 string*, device:4 string, "
               "attr:5 string>AttrValue",
    "VersionDef": "producer:1 int32, min_consumer:2 int32, bad_consumers:3 int32*",
    "OpDef.ArgDef": (
        "name:1 string, description:2 string, type:3 DataType, type_attr:4 string, "
        "number_attr:5 string, type_list_attr:6 string, is_ref:16 bool"
    ),
    "OpDef.AttrDef": (
        "name:1 string, type:2 string, default_value:3 AttrValue, description:4 string, "
        "has_minimum:5 bool, minimum:6 int64, allowed_values:7 AttrValue"
    ),
    "OpDef": (
        "name:1 string, input_arg:2 OpDef.ArgDef*, output_arg:3 OpDef.ArgDef*, "
        "control_output:20 string*, attr:4 OpDef.AttrDef*, summary:5 string, description:6 string, "
        "is_commutative:18 bool, is_aggregate:16 bool, is_stateful:17 bool, "
        "allows_uninitialized_input:19 bool"
    ),
    "FunctionDef": (
        "signature:1 OpDef, attr:5 string>AttrValue, node_def:3 NodeDef*, ret:4 string>string, "
        "control_ret:6 string>string"
    ),
    "GradientDef": "function_name:1 string, gradient_func:2 string",
    "RegisteredGradient": "gradient_func:1 string, registered_op_type:2 string",
    "FunctionDefLibrary": (
        "function:1 FunctionDef*, gradient:2 GradientDef*, "
        "registered_gradients:3 RegisteredGradient*"
    ),
    "GraphDef": (
        "node:1 NodeDef*, versions:4 VersionDef, version:3 int32, library:2 FunctionDefLibrary"
    ),
    "SaverDef": (
        "filename_tensor_name:1 string, save_tensor_name:2 string, restore_op_name:3 string, "
        "max_to_keep:4 int32, sharded:5 bool, keep_checkpoint_every_n_hours:6 float, "
        "version:7 int32"
    ),
    "CollectionDef.NodeList": "value:1 string*",
    "CollectionDef.BytesList": "value:1 bytes*",
    "CollectionDef.Int64List": "value:1 int64*",
    "CollectionDef.FloatList": "value:1 float*",
    "CollectionDef": (
        "node_list:1 CollectionDef.NodeList, bytes_list:2 CollectionDef.BytesList, "
        "int64_list:3 CollectionDef.Int64List, float_list:4 CollectionDef.FloatList"
    ),
    "VariableDef": "variable_name:1 string, initializer_name:2 string, trainable:7 bool",
    "TensorInfo": "name:1 string, dtype:2 DataType, tensor_shape:3 TensorShapeProto",
    "SignatureDef": (
        "inputs:1 string>TensorInfo, outputs:2 string>TensorInfo, method_name:3 string"
    ),
    "AssetFileDef": "tensor_info:1 TensorInfo, filename:2 string",
    "MetaGraphDef.MetaInfoDef": (
        "meta_graph_version:1 string, tags:4 string*, tensorflow_version:5 string, "
        "tensorflow_git_version:6 string, stripped_default_attrs:7 bool, "
        "function_aliases:8 string>string"
    ),
    "MetaGraphDef": (
        "meta_info_def:1 MetaGraphDef.MetaInfoDef, graph_def:2 GraphDef, saver_def:3 SaverDef, "
        "collection_def:4 string>CollectionDef, signature_def:5 string>SignatureDef, "
        "asset_file_def:6 AssetFileDef*, object_graph_def:7 SavedObjectGraph"
    ),
    # What structures consist of: arguments and results of functions.
    "NoneValue": "",
    "TensorSpecProto": "name:1 string, shape:2 TensorShapeProto, dtype:3 DataType",
    "TypeSpecProto": (
        "type_spec_class:1 int32, type_state:2 StructuredValue, type_spec_class_name:3 string, "
        "num_flat_components:4 int32"
    ),
    "PairValue": "key:1 string, value:2 StructuredValue",
    "ListValue": "values:1 StructuredValue*",
    "DictValue": "fields:1 string>StructuredValue",
    "NamedTupleValue": "name:1 string, values:2 PairValue*",
    "StructuredValue": (
        "none_value:1 NoneValue, float64_value:11 double, int64_value:12 sint64, "
        "string_value:13 string, bool_value:14 bool, tensor_shape_value:31 TensorShapeProto, "
        "tensor_dtype_value:32 DataType, tensor_spec_value:33 TensorSpecProto, "
        "type_spec_value:34 TypeSpecProto, bounded_tensor_spec_value:35 TensorSpecProto, "
        "list_value:51 ListValue, tuple_value:52 ListValue, dict_value:53 DictValue, "
        "named_tuple_value:54 NamedTupleValue, tensor_value:55 TensorProto, "
        "numpy_value:56 TensorProto"
    ),
    # The objects of a saved model. Which kind an object is says the message that it has.
    "FunctionSpec": (
        "fullargspec:1 StructuredValue, is_method:2 bool, input_signature:5 StructuredValue, "
        "jit_compile:6 int32"
    ),
    "ObjectReference": "node_id:1 int32, local_name:2 string",
    "SavedUserObject": "identifier:1 string, version:2 VersionDef, metadata:3 string",
    "SavedAsset": "asset_file_def_index:1 int32",
    "SavedFunction": "concrete_functions:1 string*, function_spec:2 FunctionSpec",
    "SavedVariable": (
        "dtype:1 DataType, shape:2 TensorShapeProto, trainable:3 bool, synchronization:4 int32, "
        "aggregation:5 int32, name:6 string, device:7 string"
    ),
    "SavedBareConcreteFunction": (
        "concrete_function_name:1 string, argument_keywords:2 string*, "
        "allowed_positional_arguments:3 int64, function_spec:4 FunctionSpec"
    ),
    "SavedConstant": "operation:1 string",
    "SavedResource": "device:1 string",
    "CapturedTensor": "name:1 string, concrete_function:2 string",
    "SavedObject": (
        "children:1 ObjectReference*, user_object:4 SavedUserObject, asset:5 SavedAsset, "
        "function:6 SavedFunction, variable:7 SavedVariable, "
        "bare_concrete_function:8 SavedBareConcreteFunction, constant:9 SavedConstant, "
        "resource:10 SavedResource, captured_tensor:12 CapturedTensor, registered_name:13 string"
    ),
    "SavedConcreteFunction": (
        "bound_inputs:2 int32*, canonicalized_input_signature:3 StructuredValue, "
        "output_signature:4 StructuredValue"
    ),
    "SavedObjectGraph": (
        "nodes:1 SavedObject*, concrete_functions:2 string>SavedConcreteFunction"
    ),
    "SavedModel": "saved_model_schema_version:1 int64, meta_graphs:2 MetaGraphDef*",
    # Examples, whose classes are in treadle.io.messages: what protobuf's functions know of them.
    "BytesList": "value:1 bytes*",
    "FloatList": "value:1 float*",
    "Int64List": "value:1 int64*",
    "Feature": "bytes_list:1 BytesList, float_list:2 FloatList, int64_list:3 Int64List",
    "Features": "feature:1 string>Feature",
    "FeatureList": "feature:1 Feature*",
    "FeatureLists": "feature_list:1 string>FeatureList",
    "Example": "features:1 Features",
    "SequenceExample": "context:1 Features, feature_lists:2 FeatureLists",
    # The events that TensorBoard reads. A program may put tensors into them, so their TensorProto
    # is the one of graphs.
    "SummaryDescription": "type_hint:1 string",
    "SummaryMetadata.PluginData": "plugin_name:1 string, content:2 bytes",
    "SummaryMetadata": (
        "plugin_data:1 SummaryMetadata.PluginData, display_name:2 string, "
        "summary_description:3 string, data_class:4 DataClass"
    ),
    "HistogramProto": (
        "min:1 double, max:2 double, num:3 double, sum:4 double, sum_squares:5 double, "
        "bucket_limit:6 double*, bucket:7 double*"
    ),
    "Summary.Image": (
        "height:1 int32, width:2 int32, colorspace:3 int32, encoded_image_string:4 bytes"
    ),
    "Summary.Audio": (
        "sample_rate:1 float, num_channels:2 int64, length_frames:3 int64, "
        "encoded_audio_string:4 bytes, content_type:5 string"
    ),
    "Summary.Value": (
        "node_name:7 string, tag:1 string, metadata:9 SummaryMetadata, simple_value:2 float?, "
        "obsolete_old_style_histogram:3 bytes?, image:4 Summary.Image?, histo:5 HistogramProto?, "
        "audio:6 Summary.Audio?, tensor:8 TensorProto?"
    ),
    "Summary": "value:1 Summary.Value*",
    "LogMessage": "level:1 LogMessage.Level, message:2 string",
    "SessionLog": "status:1 SessionLog.SessionStatus, checkpoint_path:2 string, msg:3 string",
    "TaggedRunMetadata": "tag:1 string, run_metadata:2 bytes",
    "SourceMetadata": "writer:1 string",
    "Event": (
        "wall_time:1 double, step:2 int64, file_version:3 string?, graph_def:4 bytes?, "
        "summary:5 Summary?, log_message:6 LogMessage?, session_log:7 SessionLog?, "
        "tagged_run_metadata:8 TaggedRunMetadata?, meta_graph_def:9 bytes?, "
        "source_metadata:10 SourceMetadata"
    ),
}  # fmt: skip
# What a message calls its alternatives: all fields where none has ``?``.
_ONE_OF = {
    "AttrValue": "value", "CollectionDef": "kind", "StructuredValue": "kind", "Feature": "kind",
    "Summary.Value": "value", "Event": "what",
}  # fmt: skip
# Enumerations beside `DataType`: words, by how much their numbers grow, and what is before each.
_ENUMERATIONS = {
    "DataClass": ("UNKNOWN SCALAR TENSOR BLOB_SEQUENCE", 1, "DATA_CLASS_"),
    "LogMessage.Level": ("UNKNOWN DEBUGGING INFO WARN ERROR FATAL", 10, ""),
    "SessionLog.SessionStatus": ("STATUS_UNSPECIFIED START STOP CHECKPOINT", 1, ""),
}
_PACKAGE = "tensorflow"
# How the names of some dtypes in the enumeration differ from treadle's, and some that it has not.
_DTYPE_NAMES = {
    "float32": "FLOAT", "float64": "DOUBLE", "complex64": "COMPLEX64", "complex128": "COMPLEX128",
    "float16": "HALF",
}  # fmt: skip
_FURTHER = {"QINT8": 11, "QUINT8": 12, "QINT32": 13, "RESOURCE": 20, "VARIANT": 21}


def message(name: str) -> Any:
    """The class of a message, as ``GraphDef`` or ``MetaGraphDef.MetaInfoDef``.

    Raises:
        ImportError: the package protobuf is not installed.
    """
    return _classes()[name]


@cache
def _classes() -> dict[str, Any]:
    try:
        modules = ("descriptor_pb2", "descriptor_pool", "message_factory")
        found = (importlib.import_module(f"google.protobuf.{name}") for name in modules)
        descriptor_pb2, descriptor_pool, message_factory = found
    except ImportError as error:
        raise ImportError(
            "graphs are written and read with the package protobuf, which cannot be imported "
            f"({error}): pip install 'treadle[graphdef]'{at(user_origin())}"
        ) from None
    file = _File(descriptor_pb2)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.made.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


class _File:
    """The descriptor of a file with all messages of the table."""

    def __init__(self, descriptor_pb2: Any) -> None:
        self._field = descriptor_pb2.FieldDescriptorProto
        self.made = descriptor_pb2.FileDescriptorProto(
            name="treadle/compat/graph.proto", package=_PACKAGE, syntax="proto3"
        )
        dtypes = self.made.enum_type.add(name="DataType")
        numbers = {_DTYPE_NAMES.get(d.name, d.name.upper()): n for d, n in NUMBERS.items()}
        numbers = {"INVALID": 0} | numbers | _FURTHER
        references = {f"{name}_REF": number + 100 for name, number in numbers.items() if number}
        for name, number in (numbers | references).items():
            dtypes.value.add(name=f"DT_{name}", number=number)
        places: dict[str, Any] = {}
        for name in _MESSAGES:
            places[name.partition(".")[0]] = None
        for name in places:
            places[name] = self.made.message_type.add(name=name)
        for name, (words, step, prefix) in _ENUMERATIONS.items():
            outer, _, inner = name.partition(".")
            place = places[outer] if inner else self.made
            made = place.enum_type.add(name=inner or outer)
            for number, word in enumerate(words.split()):
                made.value.add(name=prefix + word, number=number * step)
        for name, fields in _MESSAGES.items():
            outer, _, inner = name.partition(".")
            place = places[outer].nested_type.add(name=inner) if inner else places[outer]
            self._fill(place, name, fields)

    def _fill(self, place: Any, name: str, fields: str) -> None:
        if name in _ONE_OF:
            place.oneof_decl.add(name=_ONE_OF[name])
        has_marks = "?" in fields
        for part in fields.split(", ") if fields else ():
            about, _, kind = part.partition(" ")
            label, _, number = about.partition(":")
            field = place.field.add(name=label, number=int(number))
            if name in _ONE_OF and kind.endswith("?") == has_marks:
                field.oneof_index = 0
            kind = kind.rstrip("?")
            if ">" in kind:
                self._map(place, name, field, *kind.split(">"))
                continue
            repeated = kind.endswith("*")
            field.label = self._field.LABEL_REPEATED if repeated else self._field.LABEL_OPTIONAL
            self._type(field, kind.rstrip("*"))

    def _map(self, place: Any, name: str, field: Any, key: str, value: str) -> None:
        """A map is a repeated message of its own."""
        entry = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
        made = place.nested_type.add(name=entry)
        made.options.map_entry = True
        for number, (label, kind) in enumerate((("key", key), ("value", value)), 1):
            inner = made.field.add(name=label, number=number, label=self._field.LABEL_OPTIONAL)
            self._type(inner, kind)
        field.label = self._field.LABEL_REPEATED
        self._type(field, f"{name}.{entry}")

    def _type(self, field: Any, kind: str) -> None:
        plain = getattr(self._field, f"TYPE_{kind.upper()}", None)
        if plain is not None:
            field.type = plain
        else:
            is_enum = kind == "DataType" or kind in _ENUMERATIONS
            field.type = self._field.TYPE_ENUM if is_enum else self._field.TYPE_MESSAGE
            field.type_name = f".{_PACKAGE}.{kind}"
