"""``td.io``: files, and strings of bytes decoded and encoded."""

from treadle.core.refusals import explain_errors
from treadle.image.files import decode_and_crop_jpeg, decode_image
from treadle.names import missing_in
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
from treadle.ops.strings.files import matching_files, read_file, write_file

__all__ = [
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "is_jpeg",
    "matching_files",
    "read_file",
    "write_file",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
