"""td.Module: variables and submodules through attributes."""

import numpy as np
import pytest

import treadle as td


class Dense(td.Module):
    def __init__(self, size, name=None):
        super().__init__(name)
        self.w = td.Variable(td.ones([size, size]), name="w")
        self.b = td.Variable(td.zeros([size]), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


class Net(td.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(2), Dense(2, name="second")]
        self.extra = {"z": td.Variable(1.0), "a": (td.Variable(2, trainable=False),)}
        self.again = self.layers[0]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def test_variables_in_order_and_once():
    net = Net()
    first, second = net.layers
    expected = [net.extra["a"][0], net.extra["z"], first.b, first.w, second.b, second.w]
    assert [id(v) for v in net.variables] == [id(v) for v in expected]
    assert [id(v) for v in net.trainable_variables] == [id(v) for v in expected[1:]]
    assert [id(v) for v in net.non_trainable_variables] == [id(expected[0])]
    assert net.submodules == (first, second)


def test_names():
    assert Net().name == "net" and Dense(1, name="second").name == "second"
    with pytest.raises(ValueError, match="identifier"):
        Dense(1, name="not a name")
    with Net().name_scope as scope:
        assert scope == "net/"


def test_a_module_without_init_and_with_cycles():
    class Bare(td.Module):
        def __init__(self):
            self.v = td.Variable(1.0)
            self.me = [self]

    bare = Bare()
    assert bare.name == "bare" and len(bare.variables) == 1 and bare.submodules == ()


def test_in_a_function():
    net = Net()
    f = td.function(net, autograph=False)
    x = np.ones((1, 2), "f")
    np.testing.assert_allclose(f(x), net(x))
    net.layers[0].b.assign([1.0, 1.0])
    np.testing.assert_allclose(f(x), net(x))
    with td.GradientTape() as tape:
        loss = td.reduce_sum(f(x))
    grads = tape.gradient(loss, net.layers[1].trainable_variables)
    np.testing.assert_allclose(grads[0], [1, 1])


def test_libraries_can_ask_whether_the_constructor_has_run():
    """Sonnet does."""

    class Forgetful(td.Module):
        def __init__(self):
            self.had_a_scope = hasattr(self, "_scope_name")
            super().__init__("m")

    module = Forgetful()
    assert not module.had_a_scope
    assert module._scope_name == "m/"
    with pytest.raises(AttributeError), Forgetful.__new__(Forgetful).name_scope:
        pass


def test_each_list_of_variables_is_its_own():
    """A class may say what it has variables for; the other lists do not ask it."""

    class Careful(td.Module):
        @property
        def variables(self):
            raise ValueError("not yet")

    module = Careful()
    module.v = td.Variable(1.0)
    assert module.trainable_variables == (module.v,) and module.non_trainable_variables == ()


def test_variables_of_the_users_classes_are_made_by_no_creator():
    class Noted(td.Variable):
        pass

    with td.variable_creator_scope(lambda create, **kwargs: Noted(kwargs["initial_value"])):
        made, own = td.Variable(1.0), Noted(2.0)
    assert type(made) is Noted and type(own) is Noted and float(own) == 2.0
