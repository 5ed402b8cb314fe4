"""td.train.Checkpoint: objects saved, restored now or when they come, and what does not fit."""

import copy
import os
from collections import namedtuple

import numpy as np
import pytest

import treadle as td


class Dense(td.Module):
    """Makes its variables on the first call."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    def __call__(self, x):
        if not hasattr(self, "w"):
            self.w = td.Variable(td.ones([x.shape[-1], self.units]))
            self.b = td.Variable(td.zeros([self.units]))
        return x @ self.w + self.b


Pair = namedtuple("Pair", "first second")


class State(td.Module):
    def __init__(self, start=0.0):
        super().__init__()
        self.number = td.Variable(start)
        self.text = td.Variable(["a", "b"] if start else ["", ""])
        self.listed = [td.Variable(start + 1), [td.Variable(start + 2)], 3, None]
        self.pair = Pair(td.Variable(start + 3), "no variable")
        self.named = {"a/b": td.Variable(start + 4), "other": {"c": td.Variable(start + 5)}}
        self.generator = td.random.Generator.from_seed(int(start))
        self.wide = td.Variable(np.full([2], start * 1j, np.complex64))
        self.narrow = td.Variable(td.fill([3], td.cast(start, td.bfloat16)))
        self.empty = td.Variable(td.zeros([0, 2]))

    def values(self):
        held = [
            self.number, self.text, self.listed[0], self.listed[1][0], self.pair.first,
            *td.nest.flatten(self.named), self.generator.state, self.wide, self.narrow, self.empty,
        ]  # fmt: skip
        return [v.numpy().tolist() for v in held]


def test_everything_that_attributes_hold_is_saved_and_restored(tmp_path):
    saved, new = State(2.0), State()
    path = td.train.Checkpoint(state=saved).save(tmp_path / "ck")
    assert path == str(tmp_path / "ck-1") and os.listdir(tmp_path).sort() is None
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ck-1.safetensors"]
    assert new.values() != saved.values()
    td.train.Checkpoint(state=new).restore(path).assert_consumed()
    assert new.values() == saved.values()


def test_names_are_those_of_tensorflow(tmp_path):
    path = td.train.Checkpoint(state=State()).save(tmp_path / "ck")
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [name.removesuffix(end) for name, _ in td.train.list_variables(path)]
    assert names == sorted([
        "save_counter", "state/empty", "state/generator/_state_var", "state/listed/0",
        "state/listed/1/0", "state/named/a.Sb", "state/named/other/c", "state/narrow",
        "state/number", "state/pair/0", "state/text", "state/wide",
    ])  # fmt: skip


def test_an_object_that_is_reached_in_two_ways_is_saved_once(tmp_path):
    shared = td.Variable(1.0)
    path = td.train.Checkpoint(a=shared, b=[shared]).write(tmp_path / "ck")
    assert len(td.train.list_variables(path)) == 1
    one = td.Variable(0.0)
    td.train.Checkpoint(b=[one]).read(path).assert_consumed()
    assert one.numpy() == 1.0


def test_variables_that_come_later_get_their_values_then(tmp_path):
    x = td.ones([1, 3])
    first = Dense(2)
    first(x)
    first.w.assign(first.w * 5)
    path = td.train.Checkpoint(model=first).save(tmp_path / "ck")
    second = Dense(2)
    status = td.train.Checkpoint(model=second).restore(path)
    with pytest.raises(AssertionError, match="'model/w'"):
        status.assert_consumed()
    assert second(x).numpy().tolist() == [[15.0, 15.0]]
    status.assert_consumed()
    assert not hasattr(second, "_restorations")  # nothing is waited for any more


def test_variables_of_a_root_that_come_later_get_their_values(tmp_path):
    x, first = td.ones([1, 3]), Dense(2)
    first(x)
    first.w.assign(first.w * 5)
    path = td.train.Checkpoint(first, more=[Dense(1)]).save(tmp_path / "ck")
    names = [name.partition("/")[0] for name, _ in td.train.list_variables(path)]
    assert names == ["b", "save_counter", "w"]
    second = Dense(2)
    status = td.train.Checkpoint(second).restore(path)
    assert second(x).numpy().tolist() == [[15.0, 15.0]]
    status.assert_consumed()
    assert not hasattr(second, "_restorations")


@pytest.mark.parametrize("later_is_second", [True, False])
def test_of_several_restorations_the_one_that_began_last_counts(tmp_path, later_is_second):
    """It does not matter which of them finds the object first (as in TensorFlow 2.21)."""
    saved = td.Module()
    saved.dep = td.Module()
    saved.dep.var = td.Variable(12.0)
    checkpoint = td.train.Checkpoint(root=saved)
    paths = [checkpoint.save(tmp_path / "a")]
    saved.dep.var.assign(13.0)
    paths.append(checkpoint.save(tmp_path / "b"))
    roots = [td.Module(), td.Module()]
    statuses = {
        number: td.train.Checkpoint(root=roots[number]).restore(paths[number])
        for number in ((0, 1) if later_is_second else (1, 0))
    }
    found = td.Module()
    found.var = td.Variable(0.0)
    roots[0].dep = found
    assert found.var.numpy() == 12.0
    roots[1].dep = found
    assert found.var.numpy() == (13.0 if later_is_second else 12.0)
    for status in statuses.values():
        status.assert_existing_objects_matched()


def test_variables_that_a_trace_makes_get_their_values(tmp_path):
    x = td.ones([1, 3])
    first = Dense(2)
    first(x)
    first.w.assign(first.w * 5)
    path = td.train.Checkpoint(model=first).save(tmp_path / "ck")
    second = Dense(2)
    td.train.Checkpoint(model=second).restore(path)
    call = td.function(lambda x: second(x))
    assert call(x).numpy().tolist() == [[15.0, 15.0]]


def test_objects_given_to_the_checkpoint_later_are_restored(tmp_path):
    path = td.train.Checkpoint(v=td.Variable(3.0), w=Dense(1)).save(tmp_path / "ck")
    checkpoint = td.train.Checkpoint()
    status = checkpoint.restore(path)
    checkpoint.v = td.Variable(0.0)
    assert checkpoint.v.numpy() == 3.0
    status.assert_consumed()


def test_lists_that_grow_are_looked_at_when_a_layer_is_called(tmp_path):
    class Stack(td.keras.Model):
        def __init__(self, count):
            super().__init__()
            self.parts = [td.keras.layers.Dense(2, use_bias=False) for _ in range(count)]

        def call(self, x):
            for part in self.parts:
                x = part(x)
            return x

    x = np.ones((1, 2), np.float32)
    first, second = Stack(3), Stack(1)
    expected = first(x)
    path = td.train.Checkpoint(first).write(tmp_path / "ck")
    status = td.train.Checkpoint(second).read(path)
    second.parts += [td.keras.layers.Dense(2, use_bias=False) for _ in range(2)]
    np.testing.assert_array_equal(second(x), expected)
    status.assert_consumed()


def test_the_latest_restoration_counts(tmp_path):
    paths = []
    for value in (1.0, 2.0):
        first = Dense(1)
        first(td.ones([1, 1]))
        first.w.assign([[value]])
        paths.append(td.train.Checkpoint(m=first).write(tmp_path / f"ck{value}"))
    late = Dense(1)
    for path in paths:
        td.train.Checkpoint(m=late).read(path)
    late(td.ones([1, 1]))
    assert late.w.numpy() == 2.0


def test_the_number_of_savings_is_saved(tmp_path):
    checkpoint = td.train.Checkpoint(v=td.Variable(0.0))
    assert [os.path.basename(checkpoint.save(tmp_path / "ck")) for _ in range(3)] == [
        "ck-1", "ck-2", "ck-3",
    ]  # fmt: skip
    again = td.train.Checkpoint(v=td.Variable(0.0))
    again.restore(td.train.latest_checkpoint(tmp_path))
    assert again.save_counter.numpy() == 3
    assert again.save(tmp_path / "ck").endswith("ck-4")


def test_write_counts_nothing_and_notes_nothing(tmp_path):
    checkpoint = td.train.Checkpoint(v=td.Variable(1.0))
    assert checkpoint.write(tmp_path / "ck") == str(tmp_path / "ck")
    assert td.train.latest_checkpoint(tmp_path) is None
    checkpoint.read(tmp_path / "ck").assert_consumed()
    with pytest.raises(AssertionError, match="save_counter"):
        checkpoint.restore(tmp_path / "ck").assert_consumed()


def test_what_a_program_lacks_and_what_a_checkpoint_lacks_is_named(tmp_path):
    path = td.train.Checkpoint(a=td.Variable(1.0), b=td.Variable(2.0)).write(tmp_path / "ck")
    status = td.train.Checkpoint(a=td.Variable(0.0)).read(path)
    status.assert_existing_objects_matched().assert_nontrivial_match().expect_partial()
    with pytest.raises(AssertionError, match=r"1 values have no object in the program: 'b'"):
        status.assert_consumed()
    status = td.train.Checkpoint(a=td.Variable(0.0), c=td.Variable(0.0)).read(path)
    with pytest.raises(AssertionError, match=r"Found 1 Python objects .*'c' are not in .*ck"):
        status.assert_existing_objects_matched()
    status = td.train.Checkpoint(c=td.Variable(0.0)).read(path)
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        status.assert_nontrivial_match()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        td.train.Checkpoint().restore(None).assert_consumed()
    td.train.Checkpoint().restore(None).initialize_or_restore()


def test_a_changed_model_is_an_error_and_changes_nothing(tmp_path):
    saved = td.train.Checkpoint(a=td.Variable(1.0), b=td.Variable([1.0, 2.0]))
    path = saved.write(tmp_path / "ck")
    a, b = td.Variable(0.0), td.Variable([0.0, 0.0, 0.0], name="mine")
    with pytest.raises(ValueError, match=r"shape \(2,\).*shape \(3,\) and name mine:0.*ck.*'b'"):
        td.train.Checkpoint(a=a, b=b).read(path)
    b = td.Variable([0, 0], name="mine")
    with pytest.raises(td.errors.InvalidArgumentError, match="'b' has dtype float32.*int32.*mine"):
        td.train.Checkpoint(a=a, b=b).read(path)
    assert a.numpy() == 0.0


def test_what_cannot_be_tracked_is_refused():
    with pytest.raises(ValueError, match="was expecting x to be a trackable object"):
        td.train.Checkpoint(x=3)
    net = State()
    with pytest.raises(ValueError, match=r"keyword argument number if root\.number already"):
        td.train.Checkpoint(net, number=td.Variable(0.0))
    with pytest.raises(ValueError, match="keys are not strings: 1"):
        td.train.Checkpoint(d={1: td.Variable(0.0)}).write("/nowhere/ck")


def test_tracing_cannot_save(tmp_path):
    checkpoint = td.train.Checkpoint(v=td.Variable(0.0))

    @td.function(autograph=False)
    def step():
        checkpoint.save(tmp_path / "ck")

    with pytest.raises(NotImplementedError, match="from a function is not supported"):
        step()


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(td.errors.NotFoundError, match=r"(?s)at .*none: .*missing the checkpoint"):
        td.train.Checkpoint().restore(tmp_path / "none")
    with pytest.raises(td.errors.NotFoundError):
        td.train.load_checkpoint(tmp_path / "none")
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        td.train.load_checkpoint(tmp_path)


class Counting:
    """An object that describes itself by a dict, as iterators over data do."""

    def __init__(self):
        self.seen = {}

    def _state_dict(self):
        return self.seen

    def _load_state_dict(self, state):
        self.seen = state


def test_objects_that_describe_themselves_are_saved_and_restored(tmp_path):
    counting = Counting()
    counting.seen = {
        "position": 3, "order": np.arange(5), 7: (1.5, None, True, b"\x00\xff", "text"),
        "inner": [{"array": np.float32(2.0)}, []],
    }  # fmt: skip
    path = td.train.Checkpoint(it=counting).save(tmp_path / "ck")
    new = Counting()
    td.train.Checkpoint(it=new).restore(path).assert_consumed()
    np.testing.assert_array_equal(new.seen.pop("order"), np.arange(5))
    del counting.seen["order"]
    assert new.seen == counting.seen
    counting.seen = {"bad": object()}
    with pytest.raises(TypeError, match=r"The state of 'it.* holds <object"):
        td.train.Checkpoint(it=counting).write(path)


def test_iterators_over_data_go_on_where_they_were(tmp_path):
    def elements():
        return iter(td.data.Dataset.range(20).shuffle(5, seed=3).batch(2))

    first = elements()
    for _ in range(3):
        next(first)
    step = td.Variable(3)
    path = td.train.Checkpoint(data=first, step=step).save(tmp_path / "ck")
    second, other = elements(), td.Variable(0)
    td.train.Checkpoint(data=second, step=other).restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in first] == [x.numpy().tolist() for x in second]
    third, other = iter(td.data.Dataset.range(20)), td.Variable(0)
    with pytest.raises(ValueError):
        td.train.Checkpoint(data=third, step=other).restore(path)
    assert other.numpy() == 0


def test_callbacks_are_told_of_the_path(tmp_path):
    told = []
    options = td.train.CheckpointOptions(
        experimental_write_callbacks=[told.append, lambda: told.append(None)]
    )
    path = td.train.Checkpoint(v=td.Variable(0.0)).save(tmp_path / "ck", options)
    assert told == [path, None]


def trained(steps, model, optimizer, x, y):
    for _ in range(steps):
        with td.GradientTape() as tape:
            loss = td.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    x, y = td.random.normal([8, 3], seed=1), td.random.normal([8, 1], seed=2)

    def made():
        model = td.keras.Sequential([td.keras.layers.Dense(4, "tanh"), td.keras.layers.Dense(1)])
        return model, td.keras.optimizers.Adam(0.1)

    model, optimizer = made()
    trained(3, model, optimizer, x, y)
    path = td.train.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ck")
    trained(3, model, optimizer, x, y)
    again, other = made()
    status = td.train.Checkpoint(model=again, optimizer=other).restore(path)
    trained(3, again, other, x, y)
    status.assert_consumed()
    assert other.iterations.numpy() == 6
    for one, two in zip(model.weights + optimizer.variables, again.weights + other.variables):
        np.testing.assert_array_equal(one, two)


def test_slots_can_be_left_out(tmp_path):
    x, y = td.ones([2, 2]), td.ones([2, 1])
    model, optimizer = td.keras.Sequential([td.keras.layers.Dense(1)]), td.keras.optimizers.Adam()
    trained(1, model, optimizer, x, y)
    checkpoint = td.train.Checkpoint(model=model, optimizer=optimizer)
    options = td.train.CheckpointOptions(experimental_skip_slot_variables=True)
    path = checkpoint.write(tmp_path / "ck")
    slots = [v.numpy() for v in optimizer.variables[2:]]
    trained(1, model, optimizer, x, y)
    later = [v.numpy() for v in optimizer.variables[2:]]
    checkpoint.read(path, options)
    assert optimizer.iterations.numpy() == 1
    for one, two in zip(optimizer.variables[2:], later):
        np.testing.assert_array_equal(one, two)
    checkpoint.read(path)
    for one, two in zip(optimizer.variables[2:], slots):
        np.testing.assert_array_equal(one, two)


def test_moving_averages():
    v = td.Variable([1.0, 2.0], name="v")
    average = td.train.ExponentialMovingAverage(0.9)
    assert average.average(v) is None
    average.apply([v])
    v.assign([3.0, 4.0])
    average.apply([v])
    np.testing.assert_allclose(average.average(v), [1.2, 2.2], rtol=1e-6)
    assert average.average_name(v) == "v/ExponentialMovingAverage"
    early = td.train.ExponentialMovingAverage(0.9, num_updates=2)
    w = td.Variable(0.0)
    step = td.function(lambda: early.apply([w]))
    step()
    w.assign(8.0)
    step()
    assert early.average(w).numpy() == 6.0  # decay (1 + 2) / (10 + 2)
    with pytest.raises(TypeError, match="must be half, float, or double"):
        average.apply([td.Variable(1)])


def test_lists_and_dicts_that_grow_after_a_restoration(tmp_path):
    saved = td.train.Checkpoint()
    saved.listed = [td.Variable(1.0), td.Variable(2.0)]
    saved.named = {"a": td.Variable(3.0), "b": td.Variable(4.0)}
    path = saved.save(tmp_path / "ckpt")
    again = td.train.Checkpoint()
    status = again.restore(path)
    again.listed = []
    first, second = td.Variable(0.0), td.Variable(0.0)
    again.listed.append(first)
    assert float(first.numpy()) == 1.0 and again.listed == [first]
    again.listed += [second]
    assert float(second.numpy()) == 2.0
    again.named = {"a": td.Variable(0.0)}
    again.named["b"] = td.Variable(0.0)
    assert [float(v.numpy()) for v in again.named.values()] == [3.0, 4.0]
    status.assert_consumed()
    assert td.nest.map_structure(type, again.listed) == [td.Variable, td.Variable]
    assert type(copy.copy(again.listed)) is list


def test_a_list_of_a_module_that_grows_after_a_restoration(tmp_path):
    def module(values):
        made = td.Module()
        made.weights = [td.Variable(value) for value in values]
        return made

    path = td.train.Checkpoint(module=module([5.0, 6.0])).save(tmp_path / "ckpt")
    fresh = td.Module()
    td.train.Checkpoint(module=fresh).restore(path)
    fresh.weights = [td.Variable(0.0)]
    fresh.weights.extend([td.Variable(0.0)])
    assert [float(v.numpy()) for v in fresh.variables] == [5.0, 6.0]


def test_the_variables_of_a_saved_model_are_restored(tmp_path):
    model = td.Module()
    model.scale, model.later = td.Variable(2.0), td.Variable([5.0, 6.0])
    td.saved_model.save(model, tmp_path / "model")
    fresh = td.Module()
    fresh.scale = td.Variable(0.0)
    td.train.Checkpoint(fresh).restore(tmp_path / "model").expect_partial()
    assert fresh.scale.numpy() == 2.0
    fresh.later = td.Variable([0.0, 0.0])
    assert fresh.later.numpy().tolist() == [5.0, 6.0]
    with pytest.raises(td.errors.NotFoundError, match="checkpoint or SavedModel"):
        td.train.Checkpoint(fresh).restore(tmp_path / "none")


def test_options_are_checked_and_copied():
    options = td.train.CheckpointOptions(
        enable_async=True, experimental_write_callbacks=[lambda path: path]
    )
    copied = copy.copy(options)
    copied.enable_async = False
    copied.experimental_write_callbacks.append(lambda: None)
    assert options.enable_async and len(options.experimental_write_callbacks) == 1
    assert len(copied.experimental_write_callbacks) == 2
    with pytest.raises(AssertionError, match="takes nothing, or the path"):
        td.train.CheckpointOptions(experimental_write_callbacks=[lambda path, more: path])
