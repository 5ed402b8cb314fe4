"""Functions in classes, in any order with other decorators."""

import abc
import functools
import inspect

import numpy as np
import pytest

import treadle as td

X = td.constant([1.0, 2.0])


def times_ten(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 10.0

    return wrapper


class Model:
    k = 5.0

    def __init__(self, scale=2.0):
        self.scale = scale

    @staticmethod
    @td.function
    def static_inside(x):
        return x + 1.0

    @td.function
    @staticmethod
    def static_outside(x):
        return x + 1.0

    @classmethod
    @td.function
    def class_inside(cls, x):
        return x + cls.k

    @td.function(reduce_retracing=True)
    @classmethod
    def class_outside(cls, x):
        return x + cls.k

    @property
    @td.function
    def property_inside(self):
        return td.constant(2.0) * self.scale

    @td.function
    @property
    def property_outside(self):
        return td.constant(2.0) * self.scale

    @td.function
    @functools.cached_property
    def cached_outside(self):
        return td.constant(2.0) * self.scale

    @functools.cached_property
    @td.function
    def cached_inside(self):
        return td.constant(2.0) * self.scale

    @td.function(input_signature=[td.TensorSpec([None])])
    def signed(self, x):
        return x * self.scale if td.reduce_sum(x) > 0 else -x

    @td.function
    def __call__(self, x, *, flip=False):
        return -x if flip else x * self.scale

    @td.function
    @times_ten
    def wrapped_inside(self, x):
        return x if td.reduce_sum(x) > 0 else -x

    @times_ten
    @td.function
    def wrapped_outside(self, x):
        return x if td.reduce_sum(x) > 0 else -x

    partial = functools.partialmethod(td.function(lambda self, x, k: x * k * self.scale), k=3.0)


@pytest.mark.parametrize("name", ["static_inside", "static_outside"])
def test_static_methods(name):
    for owner in (Model, Model()):
        assert getattr(owner, name)(X).numpy().tolist() == [2, 3]


@pytest.mark.parametrize("name", ["class_inside", "class_outside"])
def test_class_methods(name):
    class Sub(Model):
        k = 7.0

    for owner, expected in ((Model, 6), (Model(), 6), (Sub, 8), (Sub(), 8)):
        assert getattr(owner, name)(X).numpy()[0] == expected


@pytest.mark.parametrize(
    "name", ["property_inside", "property_outside", "cached_inside", "cached_outside"]
)
def test_properties(name):
    for scale in (2.0, 3.0):
        assert getattr(Model(scale), name).numpy() == 2 * scale


def test_properties_keep_their_setters_and_docs():
    class Box:
        def get(self):
            """The value."""
            return self.held * 2.0

        def put(self, value):
            self.held = value

        value = td.function(property(get, put))

    box = Box()
    box.value = X
    assert box.value.numpy().tolist() == [2, 4] and Box.value.__doc__ == "The value."


@pytest.mark.parametrize("name", ["wrapped_inside", "wrapped_outside"])
def test_wrappers(name):
    assert getattr(Model(), name)(X).numpy().tolist() == [10, 20]
    assert getattr(Model(), name)(-X).numpy().tolist() == [10, 20]


def test_special_methods_and_partial_methods():
    model = Model()
    assert model(X).numpy().tolist() == [2, 4] and model(X, flip=True).numpy().tolist() == [-1, -2]
    assert model.partial(X).numpy().tolist() == [6, 12]


def test_an_input_signature_leaves_self_out():
    a, b = Model(2.0), Model(3.0)
    for n in (1, 2, 5):
        assert a.signed(td.ones([n])).numpy().tolist() == [2.0] * n
        assert Model.signed(b, np.ones(n, np.float32)).numpy().tolist() == [3.0] * n
    assert a.signed.experimental_get_tracing_count() == 1
    assert a.signed.get_concrete_function().inputs[0].shape.as_list() == [None]
    with pytest.raises(TypeError, match="not of its class"):
        Model.signed.get_concrete_function()
    with pytest.raises(TypeError, match="does not fit"):

        class Wrong:
            @td.function(input_signature=[td.TensorSpec([]), td.TensorSpec([])])
            def f(self, x, y, z):
                return x


def test_methods_of_temporary_objects():
    for _ in range(3):
        assert Model(4.0)(X).numpy().tolist() == Model(4.0).signed(X).numpy().tolist() == [4, 8]


def test_bound_methods_can_be_wrapped_again():
    f = td.function(Model(3.0).__call__)  # keeps its object alive
    assert f(X).numpy().tolist() == [3, 6]
    assert td.function(Model.static_inside)(X).numpy().tolist() == [2, 3]


def test_attributes_of_bound_methods():
    model = Model()
    model(X)
    assert model.__call__.experimental_get_tracing_count() == 1
    assert len(model.__call__.concrete_functions) == 1
    assert "trace 1" in str(td.explain_retraces(model.__call__))
    assert model.signed.input_signature == (td.TensorSpec([None]),)
    assert model.signed == model.signed != Model().signed
    assert model.signed.__self__ is model and model.signed.__name__ == "signed"


def test_abstract_methods():
    class Base(abc.ABC):
        @td.function
        @abc.abstractmethod
        def f(self, x): ...

        @abc.abstractmethod
        @td.function
        def g(self, x): ...

    with pytest.raises(TypeError, match="abstract"):
        Base()


def test_inheritance_and_super():
    class Sub(Model):
        @td.function
        def __call__(self, x, *, flip=False):
            return super().__call__(x, flip=flip) + 100.0

    assert Sub(2.0)(X).numpy().tolist() == [102, 104]
    assert Sub(2.0)(X, flip=True).numpy().tolist() == [99, 98]


def test_objects_without_weak_references():
    class Slots:
        __slots__ = ("scale",)

        def __init__(self, scale):
            self.scale = scale

        @td.function
        def f(self, x):
            return x * self.scale

    a, b = Slots(2.0), Slots(3.0)
    for _ in range(3):
        assert a.f(X).numpy()[0] == 2 and b.f(X).numpy()[0] == 3


def test_functions_tell_the_signature_of_python():
    """Libraries ask what to call a function with: `inspect` answers as for the function itself."""

    @td.function
    def scaled(x, factor=2.0, *, name=None):
        return x * factor

    class Model:
        @td.function
        def step(self, x, training=False):
            return x

    assert str(inspect.signature(scaled)) == "(x, factor=2.0, *, name=None)"
    assert inspect.getfullargspec(scaled).args == ["x", "factor"]
    model = Model()
    assert str(inspect.signature(model.step)) == "(x, training=False)"
    assert inspect.getfullargspec(Model.step).args == ["self", "x", "training"]
    assert inspect.getfullargspec(model.step).args == ["self", "x", "training"]  # Python's own way
    assert inspect.signature(type(scaled)) is not None  # the class keeps its own
    given = td.function(lambda a, b: a, input_signature=[td.TensorSpec([]), td.TensorSpec([])])
    assert inspect.getfullargspec(given).args == ["a", "b"]
