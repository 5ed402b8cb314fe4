"""Templates of compat.v1: names of scopes, variables and operations are TensorFlow's."""

from __future__ import annotations

import treadle.compat.v1 as v1


def times_w(x):
    return x * v1.get_variable("w", shape=[], initializer=v1.ones_initializer())


def test_names_in_graphs():
    """The values are those of TensorFlow 2.21."""
    with v1.Graph().as_default():
        first = v1.make_template("s", times_w)
        second = v1.make_template("s", times_w, create_scope_now_=True)
        results = [first(1.0), first(2.0), second(1.0), second(2.0)]
        assert [r.name for r in results] == ["s/mul:0", "s_1/mul:0", "s_2/mul:0", "s_3/mul:0"]
        assert [first.name, second.name, first.variable_scope_name] == ["s", "s", "s_1/"]
        assert [v.name for v in first.variables] == ["s_1/w:0"]
        assert [v.name for v in second.variables] == ["s/w:0"]
        fixed = v1.make_template("u", times_w, unique_name_="fixed")
        assert fixed(1.0).name == "fixed/mul:0"
        with v1.variable_scope("outer"):
            inner = v1.make_template("g", times_w)
            assert inner(1.0).name == "outer/g/mul:0"
        with v1.variable_scope("outer2"):
            assert inner(1.0).name == "outer2/g/mul:0"
        assert [v.name for v in inner.variables] == ["outer/g/w:0"]


def test_variables_of_a_template():
    def both(x):
        kept = v1.get_variable("kept", shape=[], trainable=False)
        local = v1.get_variable("local", shape=[], collections=[v1.GraphKeys.LOCAL_VARIABLES])
        return times_w(x) + kept + local

    with v1.Graph().as_default():
        template = v1.make_template(
            "t", both, custom_getter_=lambda getter, *a, **k: getter(*a, **k)
        )
        template(1.0)
        assert [v.name for v in template.trainable_variables] == ["t/local:0", "t/w:0"]
        assert [v.name for v in template.non_trainable_variables] == ["t/kept:0"]
        assert [v.name for v in template.local_variables] == ["t/local:0"]
        assert [v.name for v in template.variables] == ["t/kept:0", "t/w:0", "t/local:0"]
