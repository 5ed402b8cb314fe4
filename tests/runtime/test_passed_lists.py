"""Programs whose arguments and results are lists are native; the caller has Python lists and
TensorArrays of the same elements as from the interpreter."""

import numpy as np
import pytest

import treadle as td
from treadle.runtime import interpreter

X = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def squares(n):
    found = []
    for i in td.range(n):
        found.append(i * i)
    return found


def prefixes(x):
    found = []
    for i in td.range(td.shape(x)[0] + 1):
        found.append(x[:i])
    return found, td.reduce_sum(x)


def pairs(x):
    found = []
    for i in td.range(3):
        found.append({"row": x[i], "number": i})
    return found


def kept(x):
    found = []
    for i in td.range(3):
        if x[i, 0] > 1.0:
            found.append(x[i] * 2.0)
    return found, found


def repeated(text):
    found = []
    for i in td.range(3):
        found.append(td.strings.join([text, td.as_string(i)]))
    return found


def complexes(x):
    found = []
    for i in td.range(2):
        found.append(td.complex(x[i], x[i + 1]))
    return found


def written(n):
    array = td.TensorArray(td.float32, size=0, dynamic_size=True)
    for i in td.range(n):
        array = array.write(i, td.cast(i, td.float32))
    return array


def with_holes():
    array = td.TensorArray(td.float32, size=4, element_shape=[None])
    for i in td.range(2):
        array = array.write(i * 2, td.ones([i + 1]))
    return array


PROGRAMS = {
    "numbers": (squares, td.constant(7)),
    "none": (squares, td.constant(0)),
    "parts of several sizes": (prefixes, X),
    "structures": (pairs, X),
    "one list twice": (kept, X),
    "strings": (repeated, td.constant("ab")),
    "complex rows": (complexes, X),
    "a TensorArray": (written, td.constant(4)),
    "elements that nobody wrote": (with_holes,),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("error")
def test_lists_are_results(name):
    function, *args = PROGRAMS[name]
    compiled = td.function(function)
    concrete = compiled.get_concrete_function(*args)
    assert concrete.executable.mode == "native"
    buffers = [td.convert_to_tensor(a)._buffer for a in args]
    expected = interpreter.run(concrete.graph, buffers)
    for found, wanted in zip(concrete.executable.run(buffers), expected, strict=True):
        if not hasattr(wanted, "items"):
            assert np.array_equal(found, wanted)
            continue
        assert found.spec is wanted.spec and len(found) == len(wanted)
        for a, b in zip(found.items(), wanted.items(), strict=True):
            assert (a is None) is (b is None)
            assert a is None or (a.dtype == b.dtype and np.array_equal(a, b))
    eager, given = function(*args), compiled(*args)
    td.nest.assert_same_structure(eager, given)
    if not isinstance(eager, td.TensorArray):
        for a, b in zip(td.nest.flatten(eager), td.nest.flatten(given), strict=True):
            assert np.array_equal(a, b)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [[], [2], [None]])
def test_lists_are_arguments(shape):
    element = np.ones([2 if d is None else d for d in shape], np.float32)

    @td.function
    def extended(array, i):
        return array.write(i, array.read(i) + 1.0), array.read(i) * 3.0

    array = td.TensorArray(td.float32, size=3, element_shape=shape, clear_after_read=False)
    array = array.write(0, element).write(1, 2 * element)
    changed, read = extended(array, td.constant(1))
    assert extended.get_concrete_function(array, td.constant(1)).executable.mode == "native"
    assert np.array_equal(read, 6 * element) and changed.element_shape == shape
    assert np.array_equal(changed.read(0), element) and np.array_equal(changed.read(1), 3 * element)
    assert np.array_equal(array.read(1), 2 * element)  # the caller's is as it was


@pytest.mark.filterwarnings("error")
def test_gradients_pass_through_lists_of_results():
    x = td.Variable(X)
    with td.GradientTape() as tape:
        rows = td.function(pairs)(x)
        total = td.add_n([td.reduce_sum(row["row"] ** 2) for row in rows])
    assert np.array_equal(tape.gradient(total, x), 2 * X)
