"""Functions of saved models: their traces, arguments, results, control flow and gradients."""

import collections
import logging
from typing import Any

import numpy as np
import pytest

import treadle as td

MARKS = td.constant(["?", "."])
Point = collections.namedtuple("Point", "x y")


class Model(td.Module):
    def __init__(self):
        super().__init__()
        self.scale = td.Variable(3.0, name="scale")
        self.words = td.Variable(["-a", "-b"])
        self.offset = td.constant([1.0, 2.0])
        self.end = td.constant("!")
        self.generator = td.random.Generator.from_seed(3)

    @td.function
    def __call__(self, x, flag=True, *, k=2.0):
        return self.scale * x * k if flag else x

    @td.function(input_signature=[td.TensorSpec([None], name="y")])
    def nested(self, y):
        return {"a": y, "b": (y + 1.0, [y * self.offset[0], None])}

    @td.function
    def by_structure(self, point, others):
        return Point(point.x + others[0]["k"], others[1] * point.y)

    @td.function(input_signature=[td.TensorSpec([None, 3])])
    def loop(self, x):
        total = td.zeros([3])
        for row in x:
            if td.reduce_sum(row) > 0.0:
                total = total + row * self.scale
            else:
                total = total - row
        return total

    @td.function(input_signature=[td.TensorSpec([], td.int32)])
    def collatz(self, n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    @td.function(input_signature=[td.TensorSpec([None], td.string)])
    def strings(self, x):
        return td.strings.join([x, self.words[0], self.end, MARKS[0]])

    @td.function(input_signature=[td.TensorSpec([2])])
    def own_gradient(self, x):
        @td.custom_gradient
        def exponential(x):
            y = td.exp(x)
            return y, lambda dy: dy * y * self.scale

        return exponential(x) * self.scale

    @td.function(input_signature=[])
    def drawn(self):
        return self.generator.normal([4])

    @td.function(input_signature=[])
    def drawn_globally(self):
        return td.random.normal([4])

    @td.function(input_signature=[td.TensorSpec([None, 4])])
    def large_constant(self, x):
        return x + np.arange(20, dtype=np.float32).reshape(5, 4)

    @td.function(input_signature=[td.TensorSpec(None)])
    def any_rank(self, x):
        return x + self.scale

    @td.function(input_signature=[td.TensorSpec([None])])
    def counted(self, x):
        self.scale.assign_add(1.0)
        ta = td.TensorArray(td.float32, size=0, dynamic_size=True)
        for i in td.range(td.size(x)):
            ta = ta.write(i, x[i] * self.scale)
        return ta.stack()


def saved_and_loaded(folder):
    model = Model()
    model(td.constant(1.0))
    model(td.constant(1.0), False)
    model(td.constant([1.0, 2.0]), k=3.0)
    model.by_structure(Point(td.constant(1.0), 2), [{"k": td.constant(2.0)}, td.constant([1.0])])
    td.saved_model.save(model, folder)
    return model, td.saved_model.load(folder)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A model and what is loaded of it; their variables stay as they are."""
    return saved_and_loaded(tmp_path_factory.mktemp("model"))


@pytest.fixture
def own_pair(tmp_path):
    """The same for tests that change variables."""
    return saved_and_loaded(tmp_path / "model")


def test_traces_are_found_by_tensors_and_python_values(pair):
    _, loaded = pair
    x = td.constant(2.0)
    assert loaded(x) == 12.0
    assert loaded(x, False) == loaded(x, flag=False) == 2.0
    assert loaded(2.0) == 12.0  # a number for a tensor
    np.testing.assert_array_equal(loaded([1.0, 2.0], k=3.0), [9.0, 18.0])
    for _ in range(4):  # later calls take the fast path
        assert loaded(x) == 12.0
    assert len(vars(loaded)["__call__"].concrete_functions) >= 3


def test_what_no_trace_serves_is_refused_with_those_that_there_are(pair):
    _, loaded = pair
    with pytest.raises(ValueError, match="Could not find matching concrete function") as caught:
        loaded(td.constant([1.0, 2.0, 3.0]))
    assert "__call__(x: f32[2], flag=True, k=3.0)" in str(caught.value)
    with pytest.raises(ValueError, match="3 option"):
        loaded(td.constant(1.0), k=5.0)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        loaded(1.0, color="red")


def test_structures_of_arguments_and_results(pair):
    model, loaded = pair
    result = loaded.nested([1.0, 2.0, 3.0])
    td.nest.assert_same_structure(result, model.nested([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(result["b"][0], [2.0, 3.0, 4.0])
    assert result["b"][1][1] is None
    point = Point(td.constant(5.0), 2)
    found = loaded.by_structure(loaded_point := point, [{"k": 1.0}, td.constant([3.0])])
    assert type(found).__name__ == "Point" and found._fields == ("x", "y")
    assert found.x == 6.0 and found.y == [6.0]
    assert loaded_point is point


def test_shapes_stay_open(pair):
    model, loaded = pair
    for count in (0, 1, 5):
        x = np.random.RandomState(count).randn(count, 3).astype(np.float32)
        np.testing.assert_array_equal(loaded.loop(x), model.loop(x))
    np.testing.assert_array_equal(loaded.large_constant(np.zeros([1, 4])), model.large_constant(
        np.zeros([1, 4])))  # fmt: skip


def test_loops_lists_and_changes_of_variables(own_pair):
    model, loaded = own_pair
    assert loaded.collatz(27) == model.collatz(27) == 111
    np.testing.assert_array_equal(loaded.counted([1.0, 2.0]), [4.0, 8.0])
    np.testing.assert_array_equal(loaded.counted([1.0]), [5.0])
    assert loaded.scale == 5.0 and model.scale == 3.0


def test_strings(pair):
    assert pair[1].strings(["x", "y"]).numpy().tolist() == [b"x-a!?", b"y-a!?"]


def test_random_numbers_go_on(pair):
    model, loaded = pair
    for _ in range(2):
        np.testing.assert_array_equal(loaded.drawn(), model.drawn())
    td.random.set_seed(5)
    first = model.drawn_globally()
    td.random.set_seed(5)
    np.testing.assert_array_equal(loaded.drawn_globally(), first)


def test_unknown_ranks(pair):
    _, loaded = pair
    for rank in range(6):
        shape = [*range(2, 2 + rank)]
        np.testing.assert_array_equal(loaded.any_rank(td.zeros(shape)), np.full(shape, 3.0))
    with pytest.raises(ValueError, match="any_rank"):
        loaded.any_rank(td.zeros([1] * 7))  # for which no trace was made


def test_unknown_ranks_of_two_arguments(tmp_path):
    root = td.Module()
    root.rows = td.function(
        lambda x, y: {"all": x + y, "rows": td.matmul(x, y)},
        input_signature=[td.TensorSpec(None), td.TensorSpec(None)],
    )
    td.saved_model.save(root, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    x, y = td.ones([2, 2]), td.ones([3, 2, 2])
    for result in (loaded.rows(x, y), loaded.signatures["serving_default"](x=x, y=y)):
        np.testing.assert_array_equal(result["rows"], np.full([3, 2, 2], 2.0))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        loaded.rows(x, 1.0)  # no product of matrices


def test_variables_that_the_first_trace_makes(tmp_path):
    class Lazy(td.Module):
        w = None

        @td.function(input_signature=[td.TensorSpec([None, 2])])
        def __call__(self, x):
            if self.w is None:
                self.w = td.Variable(td.ones([2, 3]))
            return x @ self.w

    td.saved_model.save(Lazy(), tmp_path)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded([[1.0, 2.0]]), [[3.0, 3.0, 3.0]])
    assert loaded.w.shape == [2, 3]


def gradients(model, call, x):
    x = td.convert_to_tensor(x)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = call(model, x)
    return tape.gradient(y, [x, model.scale])


@pytest.mark.parametrize(
    ("call", "x"),
    [
        (lambda m, x: m(x), 2.0),
        (lambda m, x: m.loop(x), [[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]),
        (lambda m, x: m.own_gradient(x), [0.5, 1.5]),
        (lambda m, x: m.nested(x)["b"][1][0] * m.scale, [1.0, 2.0]),
    ],
    ids=["call", "loop", "custom gradient", "nested"],
)
def test_gradients(pair, call, x):
    model, loaded = pair
    for mine, theirs in zip(
        gradients(loaded, call, x), gradients(model, call, x), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_second_gradients_and_calls_in_functions(pair):
    model, loaded = pair

    def second(m):
        @td.function
        def run(x):
            with td.GradientTape() as outer:
                outer.watch(x)
                with td.GradientTape() as inner:
                    inner.watch(x)
                    y = td.reduce_sum(m.loop(x) ** 3)
                found = inner.gradient(y, x)
            return outer.gradient(found, x)

        return run(td.constant([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]]))

    np.testing.assert_allclose(second(loaded), second(model), rtol=1e-5)


def test_training_goes_on(own_pair):
    _, loaded = own_pair
    optimizer = td.keras.optimizers.SGD(0.1)

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = (loaded(x) - y) ** 2
        variables = loaded.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    losses = [float(step(td.constant(0.5), td.constant(1.0))) for _ in range(20)]
    assert losses[-1] < 1e-3 < losses[0]
    assert loaded.trainable_variables == (loaded.scale,)


def test_symbols_of_saved_graphs_are_not_those_of_others(tmp_path):
    model = Model()
    td.saved_model.save(model, tmp_path)
    first, second = td.saved_model.load(tmp_path), td.saved_model.load(tmp_path)

    @td.function(input_signature=[td.TensorSpec([None, 3]), td.TensorSpec([None, 3])])
    def both(x, y):
        return first.loop(x) + second.loop(y) + td.cast(td.shape(x)[0], td.float32)

    x, y = np.ones([2, 3], np.float32), np.ones([5, 3], np.float32)
    np.testing.assert_array_equal(both(x, y), model.loop(x) + model.loop(y) + 2.0)


def test_a_function_alone(tmp_path):
    v = td.Variable(2.0)

    @td.function
    def f(x):
        return x * v

    f(td.constant(1.0))
    td.saved_model.save(f, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    assert loaded(td.constant(4.0)) == 8.0
    loaded.variables[0].assign(3.0)
    assert loaded(td.constant(4.0)) == 12.0


def test_concrete_functions_and_functions_in_containers(tmp_path):
    root = td.train.Checkpoint()
    root.v = td.Variable(2.0)
    root.f = td.function(lambda x: x * root.v)
    root.f(td.constant(1.0))
    root.concrete = root.f.get_concrete_function(td.TensorSpec([2], name="vector"))
    root.listed = [root.f, {"again": root.f}]
    td.saved_model.save(root, tmp_path)
    loaded = td.saved_model.load(tmp_path)
    np.testing.assert_array_equal(loaded.concrete(td.constant([1.0, 2.0])), [2.0, 4.0])
    np.testing.assert_array_equal(loaded.concrete(vector=td.constant([1.0, 2.0])), [2.0, 4.0])
    assert loaded.listed[0] is loaded.f is loaded.listed[1]["again"]
    spec = td.TensorSpec([2], name="vector")
    assert loaded.concrete.structured_input_signature == ((spec,), {})


def test_what_has_no_text_is_left_out_with_a_warning(tmp_path, caplog):
    class Other:
        pass

    class Holder(td.Module):
        @td.function
        def f(self, x, other=None):
            return x

        @td.function(input_signature=[td.TensorSpec([])])
        def python(self, x):
            return td.py_function(lambda a: a + 1.0, [x], td.float32)

    holder, other = Holder(), Other()
    holder.f(td.constant(1.0), other)
    holder.f(td.constant(1.0))
    with caplog.at_level(logging.WARNING, "treadle"):
        td.saved_model.save(holder, tmp_path)
    assert "Other" in caplog.text and "test_functions.py" in caplog.text
    loaded = td.saved_model.load(tmp_path)
    assert loaded.f(td.constant(2.0)) == 2.0
    with pytest.raises(ValueError, match="py_function"):
        loaded.python(td.constant(2.0))


def test_a_function_that_was_never_called(tmp_path):
    root = td.Module()
    root.f = td.function(lambda x: x)
    td.saved_model.save(root, tmp_path)
    with pytest.raises(ValueError, match="never called"):
        td.saved_model.load(tmp_path).f(td.constant(1.0))


def test_an_untracked_variable_is_named(tmp_path):
    v, root = td.Variable(1.0, name="lost"), td.Module()
    root.f = td.function(lambda: v + 1.0, input_signature=[])
    with pytest.raises(AssertionError, match="untracked(.|\n)*lost"):
        td.saved_model.save(root, tmp_path)
    assert not td.saved_model.contains_saved_model(tmp_path)


def test_clear_caches_and_eager_mode(own_pair):
    _, loaded = own_pair
    td.clear_caches()
    assert loaded(td.constant(2.0)) == 12.0
    td.config.run_functions_eagerly(True)
    try:
        assert loaded(td.constant(2.0)) == 12.0
    finally:
        td.config.run_functions_eagerly(False)


def test_a_signature_without_a_rank_is_saved_for_all_ranks(tmp_path: Any) -> None:
    class Scale(td.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = td.Variable(100.0)

        @td.function
        def grow(self, x: Any) -> Any:
            return x * self.by

    module = Scale()
    module.grow.get_concrete_function(td.TensorSpec(None, td.float32))
    td.saved_model.save(module, tmp_path)
    again = td.saved_model.load(tmp_path)
    for value in (1.0, [1.0, 2.0], [[3.0]]):
        found = again.grow(td.constant(value)).numpy()
        assert found.tolist() == (np.asarray(value) * 100).tolist()
    module.concrete = module.grow.get_concrete_function(td.TensorSpec(None, td.float32))
    module.grow(td.constant(2.0))  # for which there is a trace then that asks for no signature
    td.saved_model.save(module, tmp_path)
    assert float(td.saved_model.load(tmp_path).concrete(td.constant(2.0))) == 200.0


def _value_of(call: Any, *given: float) -> list[float]:
    """The result of a function of variables, and what these have afterwards."""
    made: dict[float, td.Variable] = {}
    variables = [made.setdefault(x, td.Variable(x)) for x in given]
    return [float(call(*variables)), *(float(v) for v in variables)]


def test_variables_among_the_arguments(tmp_path: Any) -> None:
    own = td.Variable(10.0)

    @td.function
    def both(v: Any, w: Any) -> Any:
        v.assign_add(1.0)
        w.assign_add(1.0)
        return v * 10.0 + w

    @td.function
    def with_own(v: Any) -> Any:
        v.assign_add(1.0)
        own.assign_add(1.0)
        return v * 10.0 + own

    module = td.Module()
    module.one, module.two, module.own = both, td.function(both.python_function), own
    module.with_own = with_own
    same = td.Variable(1.0)
    both(same, same)
    of_one = both.get_concrete_function(same, same)
    of_two = module.two.get_concrete_function(td.Variable(1.0), td.Variable(2.0))
    assert _value_of(of_two, 1.0, 2.0) == [23.0, 2.0, 3.0]
    assert _value_of(of_two, 1.0, 1.0) == [33.0, 3.0, 3.0]  # the trace has two variables
    with pytest.raises(td.errors.InvalidArgumentError, match="for one variable in several"):
        of_one(td.Variable(1.0), td.Variable(2.0))
    of_own = with_own.get_concrete_function(td.Variable(1.0))
    assert float(of_own(own)) == 132.0 and float(own) == 12.0
    own.assign(10.0)
    for _ in range(2):  # a loaded model may be saved
        td.saved_model.save(module, tmp_path)
        module = td.saved_model.load(tmp_path)
        assert _value_of(module.two, 1.0, 2.0) == [23.0, 2.0, 3.0]
        assert _value_of(module.two, 1.0, 1.0) == [33.0, 3.0, 3.0]
        assert _value_of(module.one, 1.0, 1.0) == [33.0, 3.0, 3.0]
        with pytest.raises(ValueError, match="Could not find matching"):
            _value_of(module.one, 1.0, 2.0)
        module.own.assign(10.0)
        assert _value_of(module.with_own, 1.0) == [31.0, 2.0] and float(module.own) == 11.0
        assert float(module.with_own(module.own)) == 143.0
        module.own.assign(10.0)
        with td.GradientTape() as tape:
            v, w = td.Variable(1.0), td.Variable(2.0)
            result = module.two(v, w)
        assert [float(g) for g in tape.gradient(result, [v, w])] == [10.0, 1.0]


def test_tensors_as_defaults(tmp_path: Any) -> None:
    module = td.Module()
    given = td.constant(5.0)
    module.f = td.function(lambda x=given: x * 2.0, input_signature=[td.TensorSpec([])])
    for _ in range(2):
        td.saved_model.save(module, tmp_path)
        module = td.saved_model.load(tmp_path)
        assert float(module.f()) == 10.0 and float(module.f(td.constant(7.0))) == 14.0


def test_a_variable_that_is_given_and_captured(tmp_path: Any) -> None:
    module = td.Module()
    module.u, module.w = td.Variable(1.0), td.Variable(10.0)

    @td.function
    def add(v: Any) -> Any:
        v.assign_add(3.0)
        module.u.assign(module.u * 2.0)
        return module.u + v

    module.add = add
    assert [float(add(module.w)), float(add(module.u))] == [15.0, 20.0]
    of_these = add.concrete_functions[-1]  # a trace for this variable only
    with pytest.raises(td.errors.InvalidArgumentError, match="is given other ones"):
        of_these(module.w)
    td.saved_model.save(module, tmp_path)
    module = td.saved_model.load(tmp_path)
    assert [float(module.add(module.w)), float(module.u)] == [36.0, 20.0]
    assert [float(module.add(module.u)), float(module.w)] == [92.0, 16.0]


class Scaling(td.Module):
    def __init__(self):
        super().__init__()
        self.v = td.Variable(2.0)

    @td.function
    def scaled(self, x):
        return x * self.v


def test_functions_are_found_by_their_aliases(tmp_path):
    model = Scaling()
    one = model.scaled.get_concrete_function(td.TensorSpec([]))
    model.scaled(td.constant([1.0, 2.0]))
    aliases = {"all": model.scaled, "one": one, "listed": [one]}
    td.saved_model.save(
        model, tmp_path, options=td.saved_model.SaveOptions(function_aliases=aliases)
    )
    ask = td.saved_model.LoadOptions(experimental_load_function_aliases=True)
    found = td.saved_model.load(tmp_path, options=ask)
    assert sorted(found.function_aliases) == ["all", "listed", "one"]
    assert found.function_aliases["all"] is found.scaled
    (alone,) = found.function_aliases["one"]
    assert float(alone(td.constant(3.0))) == 6.0 and len(found.function_aliases["listed"]) == 1
    assert not hasattr(td.saved_model.load(tmp_path), "function_aliases")
    wrong = td.saved_model.SaveOptions(function_aliases={"a": lambda x: x})
    with pytest.raises(TypeError, match="Functions in `function_aliases` should be created by"):
        td.saved_model.save(model, tmp_path, options=wrong)
    model.function_aliases = [model.v]
    td.saved_model.save(model, tmp_path / "b")
    with pytest.raises(ValueError, match="already has an attribute with name 'function_aliases'"):
        td.saved_model.load(tmp_path / "b", options=ask)
