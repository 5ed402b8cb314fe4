"""``td.io``: files, and strings of bytes decoded and encoded."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.image.files import decode_and_crop_jpeg, decode_image
from treadle.io import gfile
from treadle.names import provided
from treadle.ops.image.codecs import (
    decode_bmp,
    decode_gif,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from treadle.ops.strings.encodings import (
    decode_base64,
    decode_compressed,
    decode_csv,
    decode_raw,
    encode_base64,
)
from treadle.ops.strings.files import (
    match_filenames_once,
    matching_files,
    read_file,
    write_file,
)

if TYPE_CHECKING:
    from treadle.compat.v1.train.writing import write_graph
    from treadle.io.protos import decode_proto, encode_proto
    from treadle.io.records import TFRecordOptions, TFRecordWriter
    from treadle.ops.strings.examples import (
        FixedLenFeature,
        FixedLenSequenceFeature,
        RaggedFeature,
        SparseFeature,
        VarLenFeature,
    )
    from treadle.ops.strings.json_examples import decode_json_example
    from treadle.ops.strings.tensors import parse_tensor, serialize_tensor
    from treadle.ragged.examples import (
        parse_example,
        parse_sequence_example,
        parse_single_example,
        parse_single_sequence_example,
    )
    from treadle.sparse.strings import (
        deserialize_many_sparse,
        serialize_many_sparse,
        serialize_sparse,
    )

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_proto",
    "decode_raw",
    "decode_webp",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "encode_proto",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "write_file",
    "write_graph",
]

explain_errors(__name__)
__getattr__ = provided(
    __name__,
    {
        "treadle.compat.v1.train.writing": "write_graph",
        "treadle.io.protos": "decode_proto encode_proto",
        "treadle.io.records": "TFRecordOptions TFRecordWriter",
        "treadle.ops.strings.examples": """
            FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature VarLenFeature
            """,
        "treadle.ops.strings.json_examples": "decode_json_example",
        "treadle.ops.strings.tensors": "parse_tensor serialize_tensor",
        "treadle.ragged.examples": """
            parse_example parse_sequence_example parse_single_example parse_single_sequence_example
            """,
        "treadle.sparse.strings": """
            deserialize_many_sparse serialize_many_sparse serialize_sparse
            """,
    },
)
