"""Functions of which a trace takes the one for its device (TensorFlow's ``api_implements``)."""

import numpy as np

import treadle as td


def choosing(general, own, device="CPU", name="doubled"):
    """As libraries choose: TensorFlow's optimizer of graphs exchanges the functions."""

    @td.function(autograph=False)
    def chosen(x):
        attributes = {"api_implements": name}
        for_any = td.function(general, autograph=False, experimental_attributes=attributes)
        attributes = attributes | {"api_preferred_device": device}
        for_one = td.function(own, autograph=False, experimental_attributes=attributes)
        result = for_any(x=x)
        concrete = for_one.get_concrete_function(x=x)
        concrete.add_to_graph()
        concrete.add_gradient_functions_to_graph()
        return result

    return chosen


def test_the_one_for_the_device_is_taken():
    x = td.constant([1.0, 2.0])

    def general(x):
        y = td.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x), (0, -x))[1]
        return y, td.constant(1)

    def own(x):
        return 2 * x, td.constant(2)

    chosen = choosing(general, own)
    value, which = chosen(x)
    np.testing.assert_array_equal(value, [2.0, 4.0])
    assert int(which) == 2
    graph = str(chosen.get_concrete_function(x).graph.results)
    assert "while" not in graph
    assert int(choosing(general, own, "GPU")(x)[1]) == 1  # not for this device
    assert int(choosing(general, lambda x: (x[:1], td.constant(2)))(x)[1]) == 1  # another shape


def test_a_size_that_only_the_run_tells():
    def own(x):
        i, total = td.while_loop(
            lambda x, _: td.size(x) > 0,
            lambda x, y: (x[:-1], y + td.pad(x, [[td.size(y) - td.size(x), 0]])),
            [x, td.zeros_like(x)],
            shape_invariants=[td.TensorShape([None]), x.shape],
        )
        return total, td.constant(2)

    chosen = choosing(lambda x: (td.cumsum(x), td.constant(1)), own)
    total, which = chosen(td.constant([1, 2, 3]))
    np.testing.assert_array_equal(total, [1, 3, 6])
    assert int(which) == 2


def test_a_result_that_is_an_argument_stays():
    chosen = choosing(lambda x: x, lambda x: x + 1)
    np.testing.assert_array_equal(chosen(td.constant([1.0])), [1.0])
