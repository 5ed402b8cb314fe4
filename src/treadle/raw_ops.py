"""``td.raw_ops``: TensorFlow's kernels by name, of which there are none here.

Programs ask whether it has a name before they use it; then the answer is that it has not.
"""

from treadle.names import missing_name

__all__: list[str] = []


def __getattr__(name: str) -> object:
    raise missing_name(__name__, name, "Use the public functions, such as td.add for AddV2")
