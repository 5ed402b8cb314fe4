"""``td.audio``: files of sounds."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.ops.strings.sounds import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
