"""Functions for signatures with unknown ranks: one to the user, a trace for each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

ANY = td.TensorSpec(None, td.float32)


def made() -> Any:
    return td.function(lambda x, y=2.0: (td.reduce_sum(x), x * y), input_signature=[ANY])


def test_one_entry_for_all_ranks() -> None:
    f = made()
    for shape in ([], [3], [4], [2, 2], [3]):
        total, double = f(td.ones(shape))
        assert float(total) == np.prod(shape) and double.shape == shape
    assert f.experimental_get_tracing_count() == 1 and len(f.concrete_functions) == 3
    assert f.pretty_printed_concrete_signatures().count("Input Parameters:") == 1
    listed = f.pretty_printed_concrete_signatures(verbose=False)
    assert listed.startswith("(x: TensorSpec(shape=<unknown>, dtype=tf.float32")
    assert "\n" not in listed
    assert listed.endswith("TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)]")
    assert repr(f).endswith("(1 traces)>")


def test_the_concrete_function_serves_every_rank() -> None:
    f = made()
    g = f.get_concrete_function()
    assert g.structured_input_signature[0][0] == td.TensorSpec(None, td.float32, "x")
    assert g.inputs == [ANY]
    assert "known once the function was called" in g.pretty_printed_signature()
    assert "->" not in g.pretty_printed_signature(verbose=False)
    with pytest.raises(ValueError, match="known once it was called"):
        g.structured_outputs
    for args, kwargs in (((td.ones([2]),), {}), ((), {"x": [[1.0, 1.0]]}), ((1.0,), {})):
        assert float(g(*args, **kwargs)[0]) == np.size(args[0] if args else kwargs["x"])
    assert g.structured_outputs == (td.TensorSpec([]), ANY)
    assert sorted(c.inputs[0].rank for c in g.traces) == [0, 1, 2]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(AttributeError, match="there is a trace for each rank"):
        g.graph


def test_a_concrete_function_without_an_input_signature() -> None:
    f = td.function(lambda x, n: x * n)
    g = f.get_concrete_function(td.TensorSpec(None), 3)
    assert float(g(td.constant(2.0))) == 6.0
    assert g(td.ones([2, 1]), 3).shape == [2, 1]
    for bad in ((td.constant(1),), (td.ones([1]), 4), (), (1.0, 3, 5)):
        with pytest.raises(TypeError):
            g(*bad)


def test_calls_of_one_rank_share_the_plan() -> None:
    f = made()
    for size in range(2, 40):
        f(td.ones([size]))
    (concrete,) = f.concrete_functions
    assert concrete.executable.mode == "native"


def test_tensors_of_several_ranks_in_a_structure() -> None:
    f = td.function(
        lambda d: {k: v + 1.0 for k, v in d.items()}, input_signature=[{"a": ANY, "b": ANY}]
    )
    for a, b in (([], [2]), ([2], []), ([2], [3]), ([2, 2], [1])):
        found = f({"a": td.zeros(a), "b": td.zeros(b)})
        assert found["a"].shape == a and found["b"].shape == b
    assert len(f.concrete_functions) == 4
    with pytest.raises(TypeError, match="does not fit"):
        f({"a": td.constant(1), "b": td.zeros([])})


def test_a_shape_invariant_of_unknown_rank() -> None:
    def f(x: Any) -> Any:
        def more(y: Any) -> bool:
            return td.size(y) < 10

        def twice(y: Any) -> Any:
            return td.concat([y, y], 0)

        return td.while_loop(more, twice, [x], shape_invariants=[td.TensorShape(None)])[0]

    assert td.function(f)(td.ones([3])).shape == [12]
    assert td.function(f)(td.ones([1, 2])).shape == [8, 2]
    deeper = td.function(
        lambda x: td.while_loop(
            lambda y: td.rank(y) < 4,
            lambda y: (y[None],),
            [x],
            shape_invariants=[td.TensorShape(None)],
        )[0]
    )
    assert deeper(td.ones([3])).shape == [1, 1, 1, 3]
