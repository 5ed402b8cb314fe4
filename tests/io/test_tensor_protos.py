"""Arrays as messages TensorProto."""

from typing import Any

import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize(
    ("values", "settings", "number", "expected"),
    [
        (3, {}, 3, 3), ([[1.5, 2.0]], {}, 1, [[1.5, 2.0]]), (["a", b"c"], {}, 7, [b"a", b"c"]),
        (1, {"shape": [2, 2]}, 3, [[1, 1], [1, 1]]), ([True], {}, 10, [True]),
        (np.arange(6), {"shape": [2, 3]}, 9, [[0, 1, 2], [3, 4, 5]]),
        (2.0, {"dtype": td.float16}, 19, 2.0),
        ([1, 2], {"shape": [2, 2], "allow_broadcast": True}, 3, [[1, 2], [1, 2]]),
    ],
)  # fmt: skip
def test_values_come_back(
    values: Any, settings: dict[str, Any], number: int, expected: Any
) -> None:
    found = td.make_tensor_proto(values, **settings)
    assert found.dtype == number
    assert td.make_ndarray(found).tolist() == expected


def test_a_shape_that_is_verified() -> None:
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        td.make_tensor_proto([1, 2], shape=[2, 1], verify_shape=True)
