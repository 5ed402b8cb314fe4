"""Models in ONNX, written with the package onnx (``pip install 'treadle[onnx]'``)."""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.onnx.exporting import export

__all__ = ["export"]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
