"""Signatures of saved models: which functions they are, what they take and give."""

import numpy as np
import pytest

import treadle as td


class Model(td.Module):
    def __init__(self):
        super().__init__()
        self.v = td.Variable(2.0)

    @td.function(input_signature=[td.TensorSpec([None], name="inputs")])
    def serve(self, inputs):
        return inputs * self.v

    @td.function
    def two(self, x, y):
        return x * self.v, y


def loaded_with(model, folder, signatures=None):
    td.saved_model.save(model, folder, signatures=signatures)
    return td.saved_model.load(folder)


def test_the_only_function_with_an_input_signature_is_the_default(tmp_path):
    loaded = loaded_with(Model(), tmp_path)
    assert list(loaded.signatures) == ["serving_default"] and len(loaded.signatures) == 1
    serve = loaded.signatures["serving_default"]
    for result in (
        serve(td.constant([1.0])), serve(inputs=td.constant([1.0])), serve(inputs=[1.0])
    ):  # fmt: skip
        assert list(result) == ["output_0"] and result["output_0"] == [2.0]
    spec = td.TensorSpec([None], name="inputs")
    assert serve.structured_input_signature == ((), {"inputs": spec})
    assert serve.structured_outputs == {"output_0": td.TensorSpec([None])}
    with pytest.raises(KeyError):
        loaded.signatures["other"]


def test_given_signatures(tmp_path):
    model = Model()
    two = model.two.get_concrete_function(td.TensorSpec([]), td.TensorSpec([1], td.int32))
    loaded = loaded_with(model, tmp_path, {"two": two, "one": model.serve})
    result = loaded.signatures["two"](x=td.constant(3.0), y=td.constant([4]))
    assert result["output_0"] == 6.0 and result["output_1"] == [4]
    assert loaded.signatures["one"](td.constant([1.0]))["output_0"] == [2.0]
    assert set(loaded.signatures) == {"one", "two"}


def test_wrong_arguments(tmp_path):
    model = Model()
    two = model.two.get_concrete_function(td.TensorSpec([]), td.TensorSpec([]))
    loaded = loaded_with(model, tmp_path, {"two": two, "one": model.serve})
    one, two = loaded.signatures["one"], loaded.signatures["two"]
    with pytest.raises(TypeError, match="inputs"):
        one()
    with pytest.raises(TypeError, match="other"):
        one(other=td.constant([1.0]))
    with pytest.raises(td.errors.InvalidArgumentError, match="i32"):
        one(inputs=td.constant([1]))
    with pytest.raises(TypeError, match="by name"):
        two(td.constant(1.0), td.constant(2.0))


def test_signatures_have_gradients(tmp_path):
    loaded = loaded_with(Model(), tmp_path)
    with td.GradientTape() as tape:
        y = loaded.signatures["serving_default"](inputs=td.constant([3.0]))["output_0"]
    assert tape.gradient(y, loaded.v) == 3.0


@pytest.mark.parametrize(
    "given", [lambda x: x, td.function(lambda x: x), [Model().serve], {"a": 3}, "serve"]
)
def test_what_is_no_signature(given, tmp_path):
    with pytest.raises(ValueError, match="Expected a function for which to generate"):
        td.saved_model.save(Model(), tmp_path, signatures=given)


def test_results_that_are_no_dict_of_tensors(tmp_path):
    nested = td.function(lambda x: {"a": (x, x)}, input_signature=[td.TensorSpec([])])
    with pytest.raises(ValueError, match="a single tensor, a sequence of tensors, or a dict"):
        td.saved_model.save(Model(), tmp_path, signatures=nested)


def test_names_are_strings(tmp_path):
    model = Model()
    with pytest.raises(TypeError, match="string"):
        td.saved_model.save(model, tmp_path, signatures={1: model.serve})


def test_python_arguments_of_a_concrete_function_are_fixed(tmp_path):
    model = Model()
    power = td.function(lambda x, n: x**n)
    loaded = loaded_with(model, tmp_path, power.get_concrete_function(td.TensorSpec([None]), 3))
    result = loaded.signatures["serving_default"](x=np.float32([2.0]))
    assert result["output_0"] == [8.0]


def test_names_of_tensors_are_those_of_parameters(tmp_path):
    names = ("A-b", "Abc", "1x", "class")
    module = td.Module()
    module.f = td.function(
        lambda a, b, c, d: a + 10 * b + 100 * c + 1000 * d,
        input_signature=[td.TensorSpec([], td.int32, name) for name in names],
    )
    td.saved_model.save(module, tmp_path)
    served = td.saved_model.load(tmp_path).signatures["serving_default"]
    given = dict(zip(("A_b", "Abc", "arg_1x", "arg_class"), map(td.constant, range(4))))
    assert int(served(**given)["output_0"]) == 3210
    with pytest.raises(TypeError):
        served(td.constant(0), **dict(list(given.items())[1:]))
    module.f = td.function(
        lambda a, b: a - b,
        input_signature=[td.TensorSpec([], td.int32, name) for name in ("a-b", "a/b")],
    )
    with pytest.raises(ValueError, match="named alike"):
        td.saved_model.save(module, tmp_path)


def test_signatures_are_no_attribute(tmp_path):
    module = td.Module()
    module.f = td.function(lambda x: x, input_signature=[td.TensorSpec([])])
    td.saved_model.save(module, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    loaded.signatures = {"other": loaded.signatures["serving_default"]}
    with pytest.raises(ValueError, match="signatures"):
        td.saved_model.save(loaded, tmp_path)
