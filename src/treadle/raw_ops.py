"""``td.raw_ops``: TensorFlow's operations by their types, called by the names of what they take.

    td.raw_ops.MatMul(a=x, b=y, transpose_b=True)

They are the types without state that graphs of TensorFlow are read with
(`treadle.compat.tensorflow_ops`). Programs ask whether there is a name before they use it.
"""

from treadle.compat import operation_calls as _calls
from treadle.compat import operation_forms as _forms
from treadle.names import missing_name as _missing_name

__all__: list[str] = []


def __getattr__(name: str) -> object:
    if name not in _forms.types():
        raise _missing_name(__name__, name, "Use the public functions, such as td.add for AddV2")
    found = globals()[name] = _calls.function_of(name)
    return found


def __dir__() -> list[str]:
    return sorted(_forms.types())
