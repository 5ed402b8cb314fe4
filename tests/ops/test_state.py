"""Variable: values, sharing of buffers, errors."""

import abc
import copy

import numpy as np
import pytest

import treadle as td
from treadle.core.context import recording
from treadle.graph.builder import GraphBuilder
from treadle.ops.conversion import constant, convert_to_tensor
from treadle.ops.state import Variable
from treadle.runtime import interpreter


def test_assignments():
    v = Variable([1.0, 2.0], name="w")
    assert v.name == "w:0" and v.trainable and v.shape == [2]
    assert v.assign([3, 4]) is v
    v.assign_add([1.0, 1.0]).assign_sub(convert_to_tensor([2.0, 0.0]))
    np.testing.assert_array_equal(v.numpy(), [2, 5])


def test_assignments_that_read_nothing():
    """As in TensorFlow: they give None, but in a function what operations can be ordered by."""
    v = td.Variable(1.0)
    assert v.assign(2.0, read_value=False) is None
    assert v.assign_add(3.0, read_value=False) is None
    assert v.assign_sub(1.0, read_value=False) is None

    @td.function
    def change():
        with td.control_dependencies([v.assign_add(1.0, read_value=False)]):
            return v.read_value()

    assert float(v) == 4.0 and float(change()) == 5.0


def test_a_read_keeps_its_value():
    v = Variable([1.0, 2.0])
    before = v.value()
    array = v.numpy()
    v.make_writable()
    v._buffer[0] = 9.0  # as a compiled program writes
    assert before.numpy()[0] == 1.0 and array[0] == 1.0 and v.numpy()[0] == 9.0


def test_the_initial_array_is_not_aliased():
    array = np.array([1.0, 2.0], np.float32)
    v = Variable(array)
    array[0] = 7
    assert v.numpy()[0] == 1


def test_buffers_are_copied_only_when_shared():
    v = Variable([1.0])
    v.make_writable()
    buffer = v._buffer
    v.make_writable()
    assert v._buffer is buffer
    tensor = v.value()
    v.make_writable()
    assert v._buffer is not tensor._buffer


def test_the_cell_follows_the_buffer():
    v = Variable([1.0, 2.0])
    cell = v.cell()
    assert cell.place.shared == 1
    v.make_writable()
    assert cell.place.shared == 0 and cell.place.data == v._buffer.ctypes.data
    v.assign([3.0, 4.0])
    assert cell.place.shared == 1 and cell.place.data == v._buffer.ctypes.data
    assert cell.buffer is v._buffer


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([1.0, 2.0, 3.0], ValueError, ["(2,)", "(3,)", "w:0"]),
        (constant([1, 2]), TypeError, ["float32", "int32", "w:0"]),
    ],
)
def test_bad_assignments_change_nothing(value, error, words):
    v = Variable([1.0, 2.0], name="w")
    with pytest.raises(error) as info:
        v.assign(value)
    for word in [*words, "test_state.py"]:
        assert word in str(info.value)
    np.testing.assert_array_equal(v.numpy(), [1, 2])


def test_integers_are_not_trainable_by_default():
    assert not Variable(3).trainable
    assert not Variable(3.0, trainable=False).trainable


def test_initial_value_may_be_a_function():
    assert Variable(lambda: constant(2.0)).numpy() == 2.0
    with pytest.raises(ValueError, match="initial_value"):
        Variable()


def test_reads_and_writes_keep_their_order_in_a_graph():
    v = Variable(1.0)
    builder = GraphBuilder("f")
    with recording(builder):
        first = v.value()
        v.assign(convert_to_tensor(5.0))
        second = v.value()
    graph = builder.finish([first, second])
    assert interpreter.run(graph, [v]) == [1.0, 5.0]
    assert v.numpy() == 5.0


def test_a_variable_cannot_be_created_while_tracing_again():
    builder = GraphBuilder("f")
    with recording(builder), pytest.raises(ValueError, match=r"not its first.*\n.*test_state.py"):
        Variable(1.0)


def test_identity_and_copies():
    v = Variable([1.0])
    assert v.ref() == v.ref() and v.ref().deref() is v
    with pytest.raises(TypeError, match="unhashable"):
        hash(v)
    other = copy.deepcopy(v)
    other.assign([2.0])
    assert v.numpy()[0] == 1.0


def test_open_shapes_inside_functions():
    v = td.Variable(td.zeros([0]), shape=[None])

    @td.function
    def push(x):
        before = td.size(v)
        v.assign(td.concat([v, [x]], 0))
        return before, td.size(v), td.reduce_sum(v)

    for n in range(3):
        assert [float(t) for t in push(td.constant(1.0))] == [n, n + 1, n + 1]

    @td.function
    def grow(n):
        for _ in td.range(n):
            v.assign(td.concat([v, v], 0))
        return td.shape(v)

    assert grow(td.constant(2)).numpy().tolist() == [12] and v.shape.as_list() == [None]


class Halved(td.Variable):
    """What operations compute with is half of what is stored, as libraries limit parameters."""

    def value(self):
        return super().value() / 2.0


class Replaced(td.Variable):
    def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
        return td.constant(42.0)


class ReadOtherwise(td.Variable):
    """In TensorFlow, operations do not go by `read_value`."""

    def read_value(self):
        return super().read_value() * 2.0


OPERATIONS = {
    "convert": td.convert_to_tensor,
    "add": lambda v: v + 1.0,
    "reflected": lambda v: 1.0 - v,
    "function": lambda v: td.add(1.0, v),
    "identity": td.identity,
    "matmul": lambda v: td.matmul(td.reshape(v, [1, 1]), [[2.0]])[0, 0],
    "negative": lambda v: -v,
    "cast": lambda v: td.cast(v, td.float64),
    "item": lambda v: v[...],
    "order": lambda v: td.cast(v > 4.0, td.float32),
}
# TensorFlow 2.21's results for variables of 3, of classes derived from ResourceVariable.
READ = {
    Halved: [1.5, 2.5, -0.5, 2.5, 1.5, 3.0, -1.5, 1.5, 1.5, 0.0],
    Replaced: [42.0, 43.0, -41.0, 43.0, 42.0, 84.0, -42.0, 42.0, 42.0, 1.0],
    ReadOtherwise: [3.0, 4.0, -2.0, 4.0, 3.0, 6.0, -3.0, 3.0, 3.0, 0.0],
}


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.__name__)
def test_operations_read_what_a_derived_class_says(kind):
    variable = kind(3.0)
    found = [float(operation(variable)) for operation in OPERATIONS.values()]
    assert dict(zip(OPERATIONS, found, strict=True)) == dict(
        zip(OPERATIONS, READ[kind], strict=True)
    )
    captured = td.function(lambda: td.square(variable))
    given = td.function(lambda v: td.square(v))
    assert float(captured()) == float(given(variable)) == READ[kind][0] ** 2
    assert float(variable.numpy()) == (6.0 if kind is ReadOtherwise else 3.0)


def test_gradients_through_what_a_derived_class_reads():
    variable = Halved(3.0)
    for run in (lambda call: call, td.function):
        with td.GradientTape() as tape:
            loss = run(lambda: td.square(variable))()
        assert float(tape.gradient(loss, variable)) == 1.5  # (v / 2)**2


def test_arguments_of_derived_classes_stay_such():
    class Scaled(td.Variable):
        def __init__(self, value, scale):
            super().__init__(value)
            self.scale = scale

    @td.function
    def call(v):
        assert isinstance(v, Scaled)
        v.assign_add(1.0)
        return v * v.scale

    first, second = Scaled(1.0, 2.0), Scaled(3.0, 10.0)
    assert [float(call(v)) for v in (first, second, first, second)] == [4.0, 40.0, 6.0, 50.0]
    assert float(first) == 3.0 and float(second) == 5.0


def test_functions_see_variables_of_derived_classes_themselves():
    """As in TensorFlow: programs look such arguments up in sets of their variables."""

    class Parameter(td.Variable):
        def __eq__(self, other):
            return self is other

        def __hash__(self):
            return id(self)

        def __tf_tracing_type__(self, context):
            raise AssertionError("functions see the variable itself, whatever type it names")

    known = [Parameter(1.0), Parameter(2.0), Parameter(3.0)]
    other = td.Variable(10.0)

    @td.function
    def total(parameters, other):
        assert not set(parameters) - set(known)
        return td.add_n([p * (1.0 + known.index(p)) for p in parameters]) + other

    for _ in range(2):
        assert float(total(known[:2], other)) == 15.0
        assert float(total([known[2], known[0]], td.Variable(20.0))) == 30.0
    known[0].assign(5.0)
    assert float(total(known[:2], other)) == 19.0


def test_derived_classes_have_properties_of_their_own():
    class Own(td.Variable):
        name = property(lambda self: "own")
        constraint = property(lambda self: None)

    variable = Own(2.0, name="other")
    assert variable.name == "own" and float(variable.assign_add(1.0)) == 3.0
    copy = td.function(lambda v: v.name)(variable)
    assert copy.numpy() == b"own"


def test_derived_classes_may_have_abstract_bases():
    class Interface(abc.ABC):
        @abc.abstractmethod
        def limits(self): ...

    class Limited(td.Variable, Interface):
        def limits(self):
            return 0.0, 1.0

    assert float(Limited(1.0)) == 1.0 and isinstance(Limited(1.0), Interface)
    with pytest.raises(TypeError, match="abstract"):
        type("Not", (td.Variable, Interface), {})(1.0)


def test_derived_classes_without_a_value():
    class Composed(td.Variable):
        """Of other variables: it has no value of its own, and says what it is."""

        def __init__(self, parts):
            with pytest.raises(NotImplementedError, match="initial_value"):
                super().__init__()
            self.parts = parts

        def value(self):
            return td.add_n(self.parts)

    parts = [td.Variable(1.0), td.Variable(2.0)]
    composed = Composed(parts)
    assert float(2.0 * composed) == 6.0 and float(td.constant(1.0) + composed) == 4.0
    with td.GradientTape() as tape:
        loss = composed * composed
    assert [float(g) for g in tape.gradient(loss, parts)] == [6.0, 6.0]
    with pytest.raises(ValueError, match="initial_value"):
        td.Variable()
