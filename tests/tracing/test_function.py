"""@function: when it traces, what it returns, what it refuses."""

import functools
import gc
import threading
import weakref
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import treadle as td

Point = namedtuple("Point", ["x", "y"])


class Counter:
    """Counts traces: call it inside the traced function."""

    def __init__(self):
        self.traces = 0

    def __call__(self):
        self.traces += 1


@pytest.fixture
def count():
    return Counter()


def test_the_documented_sequence_of_traces(capsys):
    @td.function
    def f(x):
        print("The function is running in Python")
        td.print(x)

    def call(value):
        f(value)
        captured = capsys.readouterr()
        return captured.out == "The function is running in Python\n", captured.err

    calls = [
        (td.constant(1), True, "1"), (td.constant(2), False, "2"),
        (np.array(2, np.int32), False, "2"), (td.constant(0.1), True, "0.1"),
        (td.constant(0.2), False, "0.2"), (1, True, "1"), (2, True, "2"), (1, False, "1"),
        (0.1, True, "0.1"), (0.2, True, "0.2"), (0.1, False, "0.1"),
    ]  # fmt: skip
    for _ in range(2):
        for value, traces, printed in calls:
            assert call(value) == (traces, printed + "\n")
        calls = [(v, False, p) for v, _, p in calls]


@pytest.mark.parametrize(
    ("first", "second", "traces"),
    [
        (td.constant([1.0]), td.constant([2.0]), 1),
        (td.constant([1.0]), np.array([2.0], np.float32), 1),
        (td.constant(1.0), np.float32(2.0), 1),
        (td.constant([1.0]), td.constant([1.0, 2.0]), 2),
        (td.constant([1.0]), td.constant([1]), 2),
        (1, 1.0, 2),
        (True, 1, 2),
        (0.0, -0.0, 2),
        (float("nan"), float("nan"), 1),
        ("a", "a", 1),
        ("a", "b", 2),
        (None, None, 1),
        ([1, 2], [1, 2], 1),
        ([1, 2], (1, 2), 2),
        ({"a": td.constant(1), "b": 2}, {"b": 2, "a": td.constant(5)}, 1),
        ({"a": 1}, {"b": 1}, 2),
        (Point(1, 2), Point(1, 2), 1),
        (Point(1, 2), (1, 2), 2),
        ([], (), 2),
        (b"x", "x", 2),
        (td.float32, td.float64, 2),
        (slice(1, 2), slice(1, 2), 1),
    ],
)
def test_what_counts_as_the_same_signature(first, second, traces, count):
    @td.function
    def f(x):
        count()
        return td.constant(0)

    for _ in range(3):  # the general path, then plans
        f(first)
        f(second)
    assert count.traces == traces == f.experimental_get_tracing_count()


def test_objects_count_by_identity(count):
    class Thing:
        scale = 2.0

    @td.function
    def f(thing, x):
        count()
        return x * thing.scale

    a, b = Thing(), Thing()
    b.scale = 3.0
    for _ in range(2):
        assert f(a, td.constant(1.0)).numpy() == 2 and f(b, td.constant(1.0)).numpy() == 3
    assert count.traces == 2


def test_keywords_and_defaults_share_a_trace(count):
    @td.function
    def f(x, scale=2.0, *, shift=1.0):
        count()
        return x * scale + shift

    x = td.constant(3.0)
    for _ in range(3):
        results = [f(x), f(x, 2.0), f(x, scale=2.0), f(scale=2.0, x=x), f(x, shift=1.0)]
        assert [r.numpy() for r in results] == [7.0] * 5
    assert count.traces == 1


def test_keywords_in_any_order():
    @td.function
    def f(x, y, *, z):
        return x - 10 * y + 100 * z

    x, y, z = td.constant(1), td.constant(2), td.constant(3)
    for _ in range(3):
        results = [f(x, y, z=z), f(z=z, y=y, x=x), f(x, z=z, y=y), f(y=y, z=z, x=x)]
        assert [r.numpy() for r in results] == [281] * 4


def test_star_arguments():
    @td.function
    def f(*xs, **named):
        return td.add_n(list(xs)) + named["b"]

    assert f(td.constant(1), td.constant(2), b=td.constant(3)).numpy() == 6


def test_structured_arguments_and_results():
    @dataclass
    class State:
        w: object
        b: object

    @td.function
    def f(state, pair):
        return {"state": State(state.w + 1, None), "pair": Point(*pair), "n": 5, "list": [state.b]}

    for _ in range(2):
        out = f(State(td.constant(1.0), td.constant(2.0)), (td.constant(3), td.constant(4)))
        assert isinstance(out["state"], State) and out["state"].b is None
        assert out["state"].w.numpy() == 2 and out["pair"] == Point(out["pair"].x, out["pair"].y)
        assert out["pair"].y.numpy() == 4 and out["n"].numpy() == 5 and len(out["list"]) == 1


def test_an_argument_returned_unchanged():
    @td.function
    def f(x, y):
        return y, x, x

    a, b = td.constant([1.0]), td.constant([2.0])
    for _ in range(2):
        out = f(a, b)
        assert [t.numpy()[0] for t in out] == [2, 1, 1]


def test_functions_call_functions(count):
    @td.function
    def inner(x):
        count()
        return x * 2

    @td.function
    def outer(x):
        return inner(x) + inner(x + 1)

    assert outer(td.constant(3)).numpy() == 14
    assert count.traces == 1


def test_captured_tensors_and_variables():
    w, v = td.constant([1.0, 2.0]), td.Variable([10.0, 20.0])

    @td.function
    def f(x):
        v.assign_add(x)
        return w * v

    for step in (1, 2, 3):
        np.testing.assert_array_equal(
            f(td.constant([1.0, 1.0])).numpy(), [10 + step, 2 * (20 + step)]
        )
    v.assign([0.0, 0.0])
    np.testing.assert_array_equal(f(td.constant([1.0, 1.0])).numpy(), [1, 2])
    concrete = f.get_concrete_function(td.TensorSpec([2]))
    assert concrete.variables == (v,) and len(concrete.captured_inputs) == 2


def test_a_result_keeps_its_value_when_the_variable_changes():
    v = td.Variable([1.0])

    @td.function
    def f():
        before = v.value()
        v.assign_add([1.0])
        return before, v.value()

    first, second = f(), f()
    held = v.value()
    f()
    assert [t.numpy()[0] for t in (*first, *second, held)] == [1, 2, 2, 3, 3]


def test_variables_as_arguments(count):
    @td.function
    def f(v, x):
        count()
        v.assign_add(x)
        return v + 1.0

    a, b = td.Variable(1.0), td.Variable(10.0)
    for step in (1, 2, 3):
        assert f(a, td.constant(1.0)).numpy() == 2 + step
        assert f(b, td.constant(1.0)).numpy() == 11 + step
    assert count.traces == 1


def test_the_same_variable_twice():
    v, w = td.Variable(1.0), td.Variable(5.0)

    @td.function
    def f(a, b):
        a.assign_add(1.0)
        return a + b

    for _ in range(2):
        assert f(v, v).numpy() == 2 * v.numpy()
        assert f(v, w).numpy() == v.numpy() + 5


def test_a_variable_that_is_argument_and_closure_at_once():
    a, b = td.Variable(1.0), td.Variable(10.0)

    @td.function
    def f(v):
        v.assign_add(1.0)
        return a + v

    for _ in range(3):
        before = a.numpy() + b.numpy()
        assert f(b).numpy() == before + 1
        before = a.numpy()
        assert f(a).numpy() == 2 * (before + 1)


def test_effects_keep_program_order(capsys):
    v = td.Variable(1)

    @td.function
    def f():
        td.print("before", v)
        v.assign(v * 2)
        td.print("between", v)
        v.assign_add(10)
        td.print("after", v)

    f()
    assert capsys.readouterr().err.split("\n")[:3] == ["before 1", "between 2", "after 12"]


# -- variables made inside --------------------------------------------------------------------


def test_variables_created_on_the_first_call_only():
    class Layer:
        def __init__(self):
            self.v = None

        @td.function
        def __call__(self, x):
            if self.v is None:
                self.v = td.Variable(td.ones([2]) * 3.0)
            return self.v * x

    layer = Layer()
    for _ in range(3):
        np.testing.assert_array_equal(layer(td.constant([1.0, 2.0])).numpy(), [3, 6])


def test_a_variable_on_every_call_is_refused():
    @td.function
    def f(x):
        v = td.Variable(1.0)
        return v + x

    for _ in range(2):
        with pytest.raises(ValueError, match=r"not its first[\s\S]*test_function.py"):
            f(td.constant(1.0))


def test_a_variable_on_a_later_call_is_refused_and_the_function_still_works():
    made = []

    @td.function
    def f(x):
        if x.shape.rank == 1 and not made:
            made.append(td.Variable(1.0))
        return x + 1.0

    assert f(td.constant(1.0)).numpy() == 2
    with pytest.raises(ValueError, match="not its first"):
        f(td.constant([1.0]))
    assert f(td.constant(1.0)).numpy() == 2


def test_an_initial_value_is_computed_from_the_arguments_of_the_first_call():
    made = []

    @td.function
    def f(x, y):
        if not made:
            made.append(td.Variable(x * 2))
            made.append(td.Variable(made[0] * y))
        return made[0] * x * made[1]

    assert f(td.constant(1.0), np.float32(3)).numpy() == 12  # as in TensorFlow
    assert f(td.constant(3.0), np.float32(5)).numpy() == 36
    assert [v.numpy() for v in made] == [2, 6]


def test_an_initial_value_depends_on_no_argument_without_a_value():
    made = []

    @td.function
    def f(x):
        made.append(td.Variable(x * 2))
        return made[0]

    with pytest.raises(ValueError, match="initial value"):
        f.get_concrete_function(td.TensorSpec([], td.float32))


def test_an_initial_value_may_be_computed_in_a_branch_or_loop():
    made = []

    def variable(value):
        if not made:
            made.append(td.Variable(value))
        return made[0]

    @td.function
    def f(x):
        for _ in td.range(2):
            if x > 0.0:
                scale = td.ones([]) * 2.0
                x = x + variable(scale + td.zeros_like(x))
        return x

    assert float(f(td.constant(1.0))) == 5.0 and float(made[0]) == 2.0
    made.clear()

    @td.function
    def g(x):
        y = x
        for _ in td.range(2):
            y = y + variable(x * 2.0)
        return y

    assert float(g(td.constant(1.0))) == 5.0 and float(made[0]) == 2.0


def test_an_initial_value_does_not_come_from_what_a_loop_changes():
    made = []

    @td.function
    def f(x):
        for _ in td.range(2):
            if not made:
                made.append(td.Variable(x * 2))
            x = x + made[0]
        return x

    with pytest.raises(ValueError, match="a branch or loop changes"):
        f(td.constant(1.0))


# -- input signatures -------------------------------------------------------------------------


def test_input_signature_with_an_unknown_dim(count):
    @td.function(input_signature=[td.TensorSpec([None, 2]), td.TensorSpec([], td.int32)])
    def f(x, n):
        count()
        assert x.shape.as_list() == [None, 2]
        return td.reduce_sum(x, axis=0) * td.cast(n, td.float32)

    for rows in (0, 1, 2, 7):
        for _ in range(2):
            out = f(np.ones((rows, 2), np.float32), 3)
            np.testing.assert_array_equal(out.numpy(), [3.0 * rows] * 2)
    assert count.traces == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((td.constant([1, 2]),), ["argument 0", "i32[2]"]),
        ((td.constant([[1.0]]),), ["argument 0", "f32[1, 1]"]),
        ((td.constant([1.0]), 2), ["too many"]),
        ((), ["missing"]),
        (("text",), ["argument 0"]),
    ],
)
def test_arguments_outside_the_input_signature(args, words):
    @td.function(input_signature=[td.TensorSpec([None])])
    def f(x):
        return x * 2

    with pytest.raises(TypeError) as info:
        f(*args)
    for word in [*words, "test_function.py"]:
        assert word in str(info.value)
    np.testing.assert_array_equal(f([1, 2]).numpy(), [2, 4])


def test_bad_input_signatures():
    with pytest.raises(TypeError, match="input_signature"):
        td.function(lambda x: x, input_signature=td.TensorSpec([]))
    with pytest.raises(TypeError, match="does not fit"):
        td.function(lambda x: x, input_signature=[td.TensorSpec([])] * 2)
    with pytest.raises(TypeError, match="callable"):
        td.function(3)


# -- concrete functions -----------------------------------------------------------------------


def test_concrete_functions():
    @td.function
    def f(x, scale, flip=False):
        return {"y": -x * scale if flip else x * scale}

    concrete = f.get_concrete_function(td.TensorSpec([2]), td.TensorSpec([]), flip=True)
    x, s = td.constant([1.0, 2.0]), td.constant(3.0)
    np.testing.assert_array_equal(concrete(x, s)["y"].numpy(), [-3, -6])
    np.testing.assert_array_equal(concrete(x=x, scale=s)["y"].numpy(), [-3, -6])
    assert concrete is f.get_concrete_function(x, s, True)
    args, kwargs = concrete.structured_input_signature
    named = td.TensorSpec([2], name="x"), td.TensorSpec([], name="scale")
    assert args == (*named, True) and kwargs == {}
    assert concrete.structured_outputs == {"y": td.TensorSpec([2])}
    assert "f(x: f32[2], scale: f32[], flip=True)" in repr(concrete)
    with pytest.raises(TypeError, match="expected the tensor arguments"):
        concrete(x)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"f32\[3\]"):
        concrete(td.constant([1.0, 2.0, 3.0]), s)


# -- methods ----------------------------------------------------------------------------------


def test_methods_trace_once_per_object_and_do_not_keep_it_alive(count):
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @td.function
        def f(self, x):
            count()
            return x * self.scale

    a, b = Model(2.0), Model(3.0)
    for _ in range(3):
        assert a.f(td.constant(1.0)).numpy() == 2 and b.f(td.constant(1.0)).numpy() == 3
    assert count.traces == 2 and a.f == a.f and a.f != b.f
    dead = weakref.ref(a)
    del a
    gc.collect()
    assert dead() is None


def test_bound_methods_partials_and_callables_can_be_wrapped(count):
    class Model:
        def f(self, x):
            count()
            return x + 1

        __call__ = f

    model = Model()
    wrapped = [
        td.function(model.f),
        td.function(model),
        td.function(functools.partial(Model.f, model)),
    ]
    for f in wrapped:
        assert [f(td.constant(v)).numpy() for v in (1, 2)] == [2, 3]
    assert count.traces == 3


def test_arguments_are_not_kept_alive():
    class Thing:
        pass

    @td.function
    def f(thing, x):
        return x + 1

    thing = Thing()
    f(thing, td.constant(1))
    f(thing, td.constant(1))
    dead = weakref.ref(thing)
    del thing
    gc.collect()
    assert dead() is None


# -- bad input --------------------------------------------------------------------------------


def test_results_that_are_no_tensors():
    @td.function
    def f(x):
        return object() if x.dtype is td.int32 else x

    with pytest.raises(TypeError, match="returned a object"):
        f(td.constant(1))
    assert f(td.constant(1.5)).numpy() == 1.5


def test_a_leaked_tensor_names_where_it_was_made():
    leaked = []

    @td.function
    def f(x):
        leaked.append(x * 2)
        return x

    f(td.constant(1.0))
    for use in (lambda: leaked[0] + 1, lambda: leaked[0].numpy(), lambda: float(leaked[0])):
        with pytest.raises(td.errors.InaccessibleTensorError, match=r"leaked.append\(x \* 2\)"):
            use()
    assert f(td.constant(1.0)).numpy() == 1.0


def test_wrong_dtypes_and_shapes_name_the_line():
    @td.function
    def f(x, y):
        return x + y  # the line

    for x, y, error in [
        (td.constant([1]), td.constant([1.0]), TypeError),
        (td.constant([1.0, 2.0]), td.constant([1.0, 2.0, 3.0]), ValueError),
    ]:
        with pytest.raises(error) as info:
            f(x, y)
        assert "return x + y  # the line" in str(info.value) and "test_function.py" in str(
            info.value
        )
    assert f(td.constant([1.0]), td.constant([2.0])).numpy() == [3.0]


def test_a_failed_trace_leaves_nothing_behind(count):
    fail = [True]

    @td.function
    def f(x):
        count()
        if fail[0]:
            raise KeyError("from the user")
        return x

    with pytest.raises(KeyError, match="from the user"):
        f(td.constant(1))
    assert td.executing_eagerly()
    fail[0] = False
    assert f(td.constant(1)).numpy() == 1 and count.traces == 2


def test_recursion_that_never_ends_is_refused():
    @td.function
    def f(x):
        return f(x + 1)

    with pytest.raises(RecursionError, match="calls itself"):
        f(td.constant(1))


def test_recursion_on_a_python_value():
    @td.function
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    assert power(td.constant(2), 5).numpy() == 32


# -- switches ---------------------------------------------------------------------------------


def test_run_functions_eagerly(count):
    @td.function
    def f(x):
        count()
        return x.numpy() + 1 if td.executing_eagerly() else x + 1

    assert f(td.constant(1)).numpy() == 2
    td.config.run_functions_eagerly(True)
    try:
        assert f(td.constant(1)) == 2 and count.traces == 2
    finally:
        td.config.run_functions_eagerly(False)
    f(td.constant(1))
    assert count.traces == 2


def test_one_trace_whatever_the_number_of_threads(count):
    @td.function
    def f(x):
        count()
        return x * 2 + 1

    barrier, failures = threading.Barrier(6), []

    def work(n):
        barrier.wait()
        for i in range(200):
            if f(td.constant([n, i])).numpy().tolist() != [2 * n + 1, 2 * i + 1]:
                failures.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and count.traces == 1


def test_ufuncs_of_numpy():
    x = td.constant([0.0, 1.0])
    np.testing.assert_allclose(td.function(np.exp)(x), np.exp(np.float32([0, 1])), rtol=1e-6)
    assert td.function(np.add)(x, np.ones(2, np.float32)).numpy().tolist() == [1, 2]


def test_the_function_may_be_wrapped_before_the_first_call():
    """As Sonnet does for methods of its modules."""

    def doubled(f):
        @functools.wraps(f)
        def g(*args, **kwargs):
            return 2 * f(*args, **kwargs)

        return g

    @td.function
    def f(x, y=1):
        return x + y

    f._decorate(doubled)
    assert int(f(td.constant(3), y=2)) == 10
    with pytest.raises(RuntimeError, match="decorated any more"):
        f._decorate(doubled)


def test_named_tuples_that_refuse_missing_fields():
    """Structures are rebuilt with their leaves only, never with placeholders."""

    class Graph(namedtuple("Graph", ["nodes", "edges"])):
        def __init__(self, *args, **kwargs):
            super().__init__()
            if self.nodes is None:
                raise ValueError("nodes cannot be None")

    given = Graph(td.constant([1.0, 2.0]), td.constant([3]))
    specs = Graph(td.TensorSpec([None]), td.TensorSpec([None], td.int32))
    for signature in (None, [specs]):
        double = td.function(lambda g: g._replace(nodes=g.nodes * 2), input_signature=signature)
        for _ in range(3):
            found = double(given)
            assert isinstance(found, Graph) and found.nodes.numpy().tolist() == [2.0, 4.0]


def _append(x):
    x.append(td.constant(0.0))


def _pop(x):
    return x.pop()


def _set_item(x):
    x[0] = x[0] + 1.0


def _move(x):
    x[1].append(x[0])


@pytest.mark.parametrize("change", [_append, _pop, _set_item, _move])
def test_changes_of_lists_among_the_arguments_are_refused(change):
    given = [td.constant(0.0), [td.constant(1.0)]]
    with pytest.raises(ValueError, match="should not modify its arguments"):
        td.function(change)(given)
    assert len(given) == 2 and len(given[1]) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.update(a=td.constant(2.0)), lambda x: x.clear(), lambda x: x.popitem(),
        lambda x: x.setdefault("b", td.constant(1.0)),
    ],
)  # fmt: skip
def test_changes_of_dicts_among_the_arguments_are_refused(change):
    with pytest.raises(ValueError, match=r"changes the dict that is given as `x\['inner'\]`"):
        td.function(lambda x: change(x["inner"]))({"inner": {"a": td.constant(1.0)}})


def test_lists_that_are_put_back_and_keyword_dicts_may_change():
    @td.function
    def f(x, **options):
        scale = options.pop("scale")
        last = x.pop()
        x.append(last)
        return last * scale

    assert float(f([td.constant(3.0)], scale=2.0)) == 6


def test_sizes_that_numbers_give_are_known_in_a_function_that_calls_another():
    scalar = td.TensorSpec([], td.int32)

    @td.function(input_signature=[td.TensorSpec([None, None]), scalar])
    def ones(x, count):
        return td.ones(td.stack([td.shape(x)[0], count]))

    @td.function
    def outer(x):
        made = ones(x, 5)
        assert made.shape.as_list() == [3, 5]
        return made

    assert outer(td.zeros([3, 2])).shape == [3, 5]
    assert td.function(lambda n: ones(td.zeros([3, 2]), n))(td.constant(4)).shape == [3, 4]
    with pytest.raises(td.errors.InvalidArgumentError, match="must be at least 0, not -2"):
        td.function(lambda: ones(td.zeros([3, 2]), -2))()
