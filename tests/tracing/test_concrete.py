"""Concrete functions: what they say of themselves, and the ways to call them."""

import dataclasses

import numpy as np
import pytest

import treadle as td

X = td.constant([[1.0, 2.0]])


@td.function
def g(a, b=2, *, k=True):
    return {"y": a * b if k else a}


def test_names_come_from_the_specs():
    concrete = g.get_concrete_function(td.TensorSpec([None, 2], name="inp"), b=td.TensorSpec([]))
    args, kwargs = concrete.structured_input_signature
    assert args == (td.TensorSpec([None, 2], name="inp"), td.TensorSpec([], name="b"))
    assert kwargs == {"k": True}
    assert [p.name for p in concrete.graph.arguments] == ["inp", "b"]
    assert "a: f32[" in repr(concrete) and "k=True" in repr(concrete)


@pytest.mark.parametrize(
    "call",
    [
        lambda c, s: c(X, s),
        lambda c, s: c(inp=X, b=s),
        lambda c, s: c(a=X, b=s),
        lambda c, s: c(X, b=s),
        lambda c, s: c(X, s, k=True),
        lambda c, s: c(X.numpy(), 3.0),
        lambda c, s: c([[1.0, 2.0]], s),
    ],
)
def test_ways_to_call(call):
    concrete = g.get_concrete_function(td.TensorSpec([None, 2], name="inp"), td.TensorSpec([]))
    assert call(concrete, td.constant(3.0))["y"].numpy().tolist() == [[3, 6]]


def test_python_values_may_be_left_out_and_must_be_those_of_the_trace():
    concrete = g.get_concrete_function(td.TensorSpec([]), 3)
    x = td.constant(2.0)
    for call in (lambda: concrete(x), lambda: concrete(x, 3), lambda: concrete(x, b=3)):
        assert call()["y"].numpy() == 6
    with pytest.raises(TypeError, match="Python value 3 and cannot take 4"):
        concrete(x, 4)
    with pytest.raises(TypeError, match=r"\(a: f32\[\]\), got 3 by position"):
        concrete(x, x, x)
    with pytest.raises(TypeError, match="by name"):
        concrete(x, wrong=1)


def test_objects_of_the_trace_may_be_left_out():
    class Config:
        scale = 3.0

    config = Config()
    f = td.function(lambda x, config: x * config.scale)
    concrete = f.get_concrete_function(td.TensorSpec([]), config)
    assert concrete(2.0).numpy() == concrete(2.0, config).numpy() == 6
    assert concrete.structured_input_signature[0][1] is config
    with pytest.raises(TypeError, match="cannot take"):
        concrete(2.0, Config())


def test_nested_signatures():
    @td.function(
        input_signature=[
            {"a": td.TensorSpec([None, 2]), "b": [td.TensorSpec([], td.int32)]},
            td.TensorSpec([], name="scale"),
        ]
    )
    def f(batch, s):
        return batch["a"] * s, batch["b"][0] + 1

    batch = {"a": X, "b": [3]}
    for call in (lambda: f(batch, 2.0), lambda: f(s=2.0, batch=batch)):
        doubled, count = call()
        assert doubled.numpy().tolist() == [[2, 4]] and count.numpy() == 4
    concrete = f.get_concrete_function()
    assert f.experimental_get_tracing_count() == 1
    names = [p.name for p in concrete.graph.arguments]
    assert names == ["batch_a", "batch_b_0", "scale"]
    assert concrete(batch, 2.0)[1].numpy() == concrete(X, 3, scale=2.0)[1].numpy() == 4
    with pytest.raises(TypeError, match="structure"):
        f({"a": X}, 2.0)


def test_star_arguments():
    @td.function
    def f(*args, **kwargs):
        return sum(args) + kwargs.get("z", 0)

    concrete = f.get_concrete_function(td.TensorSpec([]), td.TensorSpec([]), z=td.TensorSpec([]))
    assert concrete(1.0, 2.0, z=3.0).numpy() == 6
    assert f(td.constant(1.0), td.constant(2.0), z=td.constant(3.0)).numpy() == 6
    assert f.experimental_get_tracing_count() == 1


@dataclasses.dataclass
class Counted:
    value: object
    count: int = dataclasses.field(init=False, default=3)


class Attribute:
    def __init__(self, name):
        self.name = name


class LikeAttrs:
    """What attrs makes of a class, as far as nests are concerned."""

    __attrs_attrs__ = (Attribute("value"), Attribute("count"))

    def __init__(self, value, count=3):
        self.value, self.count = value, count

    def __setattr__(self, name, value):
        if "count" in self.__dict__:
            raise AttributeError("frozen")
        object.__setattr__(self, name, value)


@pytest.mark.parametrize("kind", [Counted, LikeAttrs])
def test_dataclasses_and_attrs_as_arguments_and_results(kind):
    f = td.function(lambda s: kind(s.value * float(s.count)))
    for _ in range(3):
        result = f(kind(X))
        assert type(result) is kind and result.value.numpy().tolist() == [[3, 6]]
    assert f.experimental_get_tracing_count() == 1
    assert [p.name for p in f.concrete_functions[0].graph.arguments] == ["s_value"]
    np.testing.assert_array_equal(f.concrete_functions[0](kind(X)).value, [[3, 6]])


def test_captures():
    v, t = td.Variable(2.0), td.constant(3.0)
    concrete = td.function(lambda x: x * v + t).get_concrete_function(td.TensorSpec([]))
    assert [c is e for c, e in zip(concrete.captured_inputs, [v, t], strict=True)] == [True, True]
    assert len(concrete.inputs) == 3 and concrete.variables == (v,)
    assert concrete(1.0).numpy() == 5


def test_function_type_and_inference_fn() -> None:
    v = td.Variable(2.0)

    @td.function
    def f(x, flag=True, *, k=2.0):
        return {"a": x * v, "b": [x]} if flag else x

    concrete = f.get_concrete_function(td.TensorSpec([None]))
    kind = concrete.function_type
    assert isinstance(kind, td.types.experimental.FunctionType)
    assert list(kind.parameters) == ["x", "flag", "k"]
    assert str(kind).startswith("(x: TensorSpec(") and "flag: Literal[True], *, k" in str(kind)
    assert repr(kind).startswith("Input Parameters:\n  x (POSITIONAL_OR_KEYWORD): TensorSpec(")
    assert "Captures:\n  " in repr(kind) and list(kind.captures) == [id(v)]
    flat = concrete.inference_fn(td.constant([1.0, 3.0]), v)
    assert [x.numpy().tolist() for x in flat] == [[2.0, 6.0], [1.0, 3.0]]
    assert concrete.inference_fn.function_type.output["a"].shape.as_list() == [None]
    with pytest.raises(TypeError, match="2 values"):
        concrete.inference_fn(td.constant([1.0]))


def test_signatures_are_printed_as_tensorflow_prints_them() -> None:
    concrete = td.function(lambda x, k=None, n=7: x).get_concrete_function(td.constant(5), [1, 2])
    line = concrete.pretty_printed_signature(verbose=False)
    assert line.startswith("(x: TensorSpec(shape=(), dtype=tf.int32") and "n: Literal[7]" in line
    assert line.endswith("-> TensorSpec(shape=(), dtype=tf.int32, name=None)")
    text = concrete.pretty_printed_signature()
    assert text.startswith("Input Parameters:\n  x (POSITIONAL_OR_KEYWORD): TensorSpec(")
    assert "  n (POSITIONAL_OR_KEYWORD): Literal[7]\nOutput Type:\n  TensorSpec(" in text
    assert text.endswith("Captures:\n  None") and str(concrete) == f"ConcreteFunction {text}"
    parameter = concrete.function_type.parameters["x"]
    assert parameter.type_constraint == td.TensorSpec([], td.int32)


def test_the_graph_of_a_trace_has_inputs_outputs_and_variables() -> None:
    v, w = td.Variable(2.0), td.Variable(1.0, trainable=False)
    graph = td.function(lambda x: x * v + w).get_concrete_function(td.TensorSpec([3])).graph
    assert [x.op.type for x in graph.inputs] == ["Placeholder"] * 3
    assert [x.shape.as_list() for x in graph.outputs] == [[3]]
    assert graph.outputs[0].op.type == "AddV2"
    assert graph.variables == (v, w) and graph.trainable_variables == (v,)
