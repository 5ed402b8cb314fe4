"""Copies and pickles of functions, which are those of Python functions as far as they can be."""

import copy
import pickle

import pytest

import treadle as td


@td.function
def doubled(x):
    return x * 2.0


class Model:
    def __init__(self, scale):
        self.scale = scale
        self.step = td.function(self.scaled)

    def scaled(self, x):
        return x * self.scale

    @td.function
    def decorated(self, x):
        return x * self.scale


def test_a_function_of_a_module_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert copy.copy(doubled) is doubled


def tripled(x):
    return x * 3.0


def test_a_function_made_of_one_of_a_module_is_pickled_with_its_options():
    f = td.function(tripled, input_signature=[td.TensorSpec([None])], reduce_retracing=True)
    g = pickle.loads(pickle.dumps(f))
    assert g is not f and g.python_function is tripled and g.input_signature == f.input_signature
    assert g(td.ones([2])).numpy().tolist() == [3, 3] and copy.copy(f) is f


def test_a_local_function_cannot_be_pickled():
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(td.function(lambda x: x))


def test_deep_copies_have_traces_of_their_own():
    x = td.constant(1.0)
    model = Model(2.0)
    assert model.step(x).numpy() == model.decorated(x).numpy() == 2
    other = copy.deepcopy(model)
    other.scale = 3.0
    assert other.step(x).numpy() == other.decorated(x).numpy() == 3
    assert model.step(x).numpy() == model.decorated(x).numpy() == 2
    f = td.function(lambda x: x + 1.0, input_signature=[td.TensorSpec([None])], max_traces=3)
    g = copy.deepcopy(f)
    assert g(td.ones([2])).numpy().tolist() == [2, 2]
    assert f.experimental_get_tracing_count() == 0 and g.max_traces == 3
    assert g.input_signature == f.input_signature
