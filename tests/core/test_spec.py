import copy
import pickle

import numpy as np
import pytest

from treadle.core import dtypes
from treadle.core.shapes import ANY
from treadle.core.spec import ListSpec, ResourceSpec, TensorSpec, array_spec, is_static, spec_text


def test_equal_specs_are_one_object():
    spec = TensorSpec([2, 3], "float32")
    assert spec is TensorSpec((2, 3), np.float32)
    assert spec is array_spec(np.zeros((2, 3), np.float32))
    assert spec is not TensorSpec([2, 3], "float64")
    assert spec is not TensorSpec([2, 3], "float32", name="x")
    assert TensorSpec([None], "int32") is TensorSpec([None], "int32")
    assert ResourceSpec([2], "float32") is not TensorSpec([2], "float32")


def test_specs_survive_copying():
    spec = TensorSpec([None, 3], dtypes.int64, name="n")
    assert pickle.loads(pickle.dumps(spec)) is spec
    assert copy.deepcopy(spec) is spec


def test_unknown_dims_get_symbols_of_their_own():
    spec = TensorSpec([None, None, 4]).with_fresh_symbols()
    a, b, fixed = spec.dims
    assert ANY not in spec.dims and a != b and fixed == 4
    assert spec.shape.as_list() == [None, None, 4]
    assert len(spec.symbols()) == 2 and not is_static(spec)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec([2, 3]), "f32[2, 3]"),
        (TensorSpec([], "bool"), "bool[]"),
        (ListSpec([4], "int32"), "list i32[4]"),
        (ResourceSpec([4], "bfloat16"), "ref bf16[4]"),
    ],
)
def test_text(spec, text):
    assert spec_text(spec) == text


def test_compatibility():
    assert TensorSpec([None, 3]).is_compatible_with(TensorSpec([5, 3]))
    assert not TensorSpec([None, 3]).is_compatible_with(TensorSpec([5, 3], "int32"))
    assert (
        repr(TensorSpec([None], "int32", "x"))
        == "TensorSpec(shape=(None,), dtype=td.int32, name='x')"
    )
