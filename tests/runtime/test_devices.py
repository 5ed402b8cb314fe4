"""Tensors and variables on a device that is not the host (`tests.runtime.shelf`)."""

import pickle

import numpy as np
import pytest

import treadle as td
from tests.runtime.shelf import Box, ShelfCell, shelf
from treadle.core.devices import HOST, Device, add_device, find_device, remove_device
from treadle.core.host_storage import host_storage
from treadle.core.spec import TensorSpec
from treadle.core.tensor import Tensor, moved
from treadle.graph.parser import parse_graph
from treadle.graph.verifier import verify
from treadle.runtime import Options, compile, stored
from treadle.runtime.graph_key import graph_key

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.fixture
def place():
    with shelf() as device:
        yield device


def on(place, value):
    """A tensor of the device; its transfer is not counted."""
    tensor = moved(td.constant(value), place)
    place.storage.counts.clear()
    return tensor


# -- tensors -------------------------------------------------------------------------------------


def test_the_host_is_the_default():
    x, v = td.constant(X), td.Variable(X)
    assert x.device == v.device == (x + 1.0).device == CPU
    assert x.spec.device is v.spec.device is HOST
    assert x.spec is TensorSpec([2, 2]) and type(x) is Tensor


def test_a_tensor_of_a_device_has_a_spec_of_its_own(place):
    x = on(place, X)
    assert x.device == CPU.replace("CPU", "SHELF")
    assert x.spec is not TensorSpec([2, 2])
    assert x.spec is TensorSpec([2, 2]).on(place) and x.spec.on(HOST) is TensorSpec([2, 2])
    assert x.spec.with_dims([4]) is TensorSpec([4]).on(place)
    assert str(x.spec) == "f32[2, 2]@SHELF:0" and "device='SHELF:0'" in repr(x.spec)
    assert pickle.loads(pickle.dumps(x.spec)) is x.spec
    assert (x.shape, x.dtype, x.ndim, len(x)) == ([2, 2], td.float32, 2, 2)
    assert isinstance(x, Tensor) and td.is_tensor(x)
    assert not place.storage.counts


def test_elements_go_to_the_host_where_they_are_asked_for(place):
    x = on(place, X)
    looks = [
        lambda: x.numpy(),
        lambda: np.asarray(x),
        lambda: x.tolist(),
        lambda: np.from_dlpack(x),
        lambda: np.add(x, 0.0),
    ]
    for count, look in enumerate(looks, 1):
        np.testing.assert_array_equal(look(), X)
        assert place.storage.counts == {"to_host": count}
    assert "3., 4." in repr(x) and "3. 4." in str(x) and f"{x}" == str(X)
    assert float(on(place, 2.5)) == 2.5 and bool(on(place, True)) and int(on(place, 3)) == 3
    x.numpy()[0, 0] = 9.0
    assert x.numpy()[0, 0] == 1.0


def test_eager_operators_copy_operands_of_other_devices_as_tensorflow_does(place):
    x, y = on(place, X), td.constant(X)
    for result in (x + y, y * x, x - 1.0, 2.0 / x, td.matmul(x, y), x[0], x[:, 1:], -x):
        assert result.device == x.device and type(result._buffer) is Box
    np.testing.assert_array_equal((x + y).numpy(), X + X)
    np.testing.assert_array_equal(x[1].numpy(), X[1])
    parts = td.split(x, 2)
    assert [p.device for p in parts] == [x.device] * 2
    assert bool(td.reduce_all(x == y)) and (y + y).device == CPU


def test_moving_there_and_back(place):
    x = td.constant(X)
    there = moved(x, place)
    assert moved(x, HOST) is x and moved(there, place) is there
    back = moved(there, HOST)
    assert type(back) is Tensor and back.spec is x.spec
    np.testing.assert_array_equal(back.numpy(), X)
    assert place.storage.counts == {"from_host": 1, "to_host": 1}


# -- functions -----------------------------------------------------------------------------------


def test_a_function_is_traced_for_each_device_and_never_reads_buffers(place):
    x, y = on(place, X), td.constant(X)
    traced = []

    @td.function
    def f(a):
        traced.append(a.spec)
        return {"twice": a * 2.0, "sums": td.reduce_sum(a, 1)}

    for _ in range(4):
        there, here = f(x), f(y)
    assert len(traced) == f.experimental_get_tracing_count() == 2
    assert {t.device for t in there.values()} == {x.device}
    assert {t.device for t in here.values()} == {CPU}
    assert set(place.storage.counts) == {"empty"}, "a compiled call went to the host"
    np.testing.assert_array_equal(there["twice"].numpy(), X * 2)
    np.testing.assert_array_equal(there["sums"].numpy(), here["sums"].numpy())
    assert "SHELF:0" in str(f.explain())


def test_repeated_calls_take_a_plan_for_the_device(place):
    f = td.function(lambda a: a + 1.0)
    x, y = on(place, X), td.constant(X)
    f(x), f(y), f(x), f(y)
    slow = f._lookup
    f._lookup = None
    try:
        assert f(x).device == x.device and f(y).device == CPU
        assert f(on(place, X + 1)).numpy()[0, 0] == 3.0
    finally:
        f._lookup = slow


def test_graphs_and_their_keys_have_the_device(place, monkeypatch):
    monkeypatch.setenv("TREADLE_STORE_PROGRAMS", "1")
    f = td.function(lambda a: td.tanh(a) * 3.25)
    here = f.get_concrete_function(td.constant(X))
    there = f.get_concrete_function(on(place, X))
    assert here.graph.device is HOST and there.graph.device is place
    assert [str(s) for s in (*there.inputs, *there.outputs)] == ["f32[2, 2]@SHELF:0"] * 2
    assert graph_key(here.graph) != graph_key(there.graph)
    keys = [stored.program_key(c.graph, Options()) for c in (here, there)]
    assert len({*keys, None}) == 3
    text = str(there.graph)
    assert " on 'SHELF:0' {" in text.splitlines()[0] and " on " not in str(here.graph).split("#")[0]
    again = parse_graph(text)
    verify(again)
    assert again.device is place and str(again) == text
    with pytest.raises(ValueError, match="'NONE:0'"):
        parse_graph(text.replace("SHELF:0", "NONE:0"))


def test_a_compiled_function_copies_tensors_to_its_device(place):
    f = td.function(lambda a, b: a * 2.0 + b)
    there, here = on(place, X), td.constant(X)
    for _ in range(4):
        for a, b in ((there, here), (here, there), (there, there)):
            found = f(a, b)
            assert found.device == there.device
            np.testing.assert_array_equal(found.numpy(), 3 * X)
    assert f.experimental_get_tracing_count() == 1
    concrete = f.get_concrete_function(here, here)
    assert concrete(here, there).device == CPU


def test_variables_of_other_devices_are_mirrored(place):
    v, w = td.Variable(X, name="v"), td.Variable(on(place, X), name="w")
    x, y = on(place, X), td.constant(X)

    @td.function
    def step(a, u):
        v.assign_add(a)
        u.assign(u * 2.0)
        return a + v + w

    for number in range(1, 5):
        assert step(y, v).device == place.name
        np.testing.assert_array_equal(v.numpy(), (3 * 2**number - 2) * X)
    assert v.device == CPU and type(v._buffer) is np.ndarray and step.variables == (v, w)
    v.assign(X)
    f = td.function(lambda a: td.reduce_sum(a * v * v * w))
    for function in (f, td.function(lambda a: f(a) * 1.0)):
        for _ in range(3):
            with td.GradientTape() as tape:
                loss = function(x)
            for gradient, factor in zip(tape.gradient(loss, [v, w]), (2, 1), strict=True):
                np.testing.assert_allclose(gradient.numpy(), factor * X**3)
        v.assign(X)
    with td.device("CPU:0"):
        assert f(x).device == CPU
        np.testing.assert_allclose(f(x).numpy(), (X**4).sum())


def test_a_model_may_be_trained_outside_of_its_scope(place):
    with td.device("/device:SHELF:0"):
        model = td.keras.Sequential([td.keras.layers.Dense(3), td.keras.layers.Dense(1)])
        model.build([None, 2])
    model.compile("adam", "mse")
    before = [v.numpy() for v in model.trainable_variables]
    model.fit(X, X[:, :1], epochs=2, batch_size=1, verbose=0)
    assert {v.device for v in model.trainable_variables} == {place.name}
    for variable, value in zip(model.trainable_variables, before, strict=True):
        assert not np.array_equal(variable, value)
    assert int(model.optimizer.iterations) == 4


def test_mixed_arguments_take_plans(place):
    f = td.function(lambda a, b, c: a + b + c)
    x, y = on(place, X), td.constant(X)
    f(x, y, X), f(x, y, X), f(x, y, X)
    slow = f._lookup
    f._lookup = None
    try:
        changed = X.copy()
        found = f(x, y, changed)
        changed[:] = 9.0  # the call has copied it
        assert found.device == x.device
        np.testing.assert_array_equal(found.numpy(), 3 * X)
    finally:
        f._lookup = slow
    assert f(y, y, X).device == CPU


def test_scopes(place):
    x, y = on(place, X), td.constant(X)
    with td.device("/device:SHELF:0"):
        made, v = td.constant(X), td.Variable(X)
        moved_there = td.identity(y)
        results = [made, v, moved_there, y + 1.0, y[0], td.zeros([2]), td.matmul(y, y), td.range(3)]
        assert {r.device for r in results} == {x.device}
        assert y.device == CPU and td.convert_to_tensor(y) is y
        with td.device("CPU:0"):
            assert (x + 1.0).device == td.constant(1.0).device == CPU
        with td.device(None):
            assert (x + 1.0).device == x.device and td.constant(1.0).device == CPU
        assert td.constant(1.0).device == x.device
        back = x.cpu()
        assert back.device == back.backing_device == CPU and type(back) is Tensor
    assert td.constant(1.0).device == CPU
    with td.GradientTape() as tape, td.device(place.name):
        tape.watch(y)
        loss = td.reduce_sum(y * y).cpu()
    assert loss.device == CPU
    np.testing.assert_array_equal(tape.gradient(loss, y).numpy(), 2 * X)


def test_functions_in_scopes(place):
    traced = []

    @td.function
    def f(a):
        traced.append(a)
        return a * 2.0

    @td.function
    def inside(a):
        b = a + 1.0
        with td.device("/device:SHELF:0"):
            return b * 2.0

    y, numbers = td.constant(X), td.function(lambda: td.range(3))
    for _ in range(3):
        assert f(y).device == CPU and numbers().device == CPU
        with td.device("/device:SHELF:0"):
            assert f(y).device == f(X).device == place.name == numbers().device
        with td.device("CPU:0"):
            assert f(y).device == CPU and f(on(place, X)).device == CPU
        assert inside(y).device == place.name
        np.testing.assert_array_equal(inside(y).numpy(), 2 * (X + 1))
    assert len(traced) == 2
    outer = td.function(lambda a: inside(a) + 1.0)
    assert outer(y).device == place.name
    v = td.Variable(X)
    step = td.function(lambda a: v.assign_add(a))
    with td.device("/device:SHELF:0"):
        step(y), step(y)
        with td.GradientTape() as tape:
            tape.watch(y)
            loss = td.reduce_sum(f(y) * y)
    np.testing.assert_array_equal(v.numpy(), 3 * X)
    assert tape.gradient(loss, y).numpy().tolist() == (4 * X).tolist()


def test_plans_in_scopes(place):
    f = td.function(lambda a: a + 1.0)
    y = td.constant(X)
    with td.device("/device:SHELF:0"):
        f(y), f(y), f(y)
    f(y), f(y), f(y)
    slow = f._lookup
    f._lookup = None
    try:
        assert f(y).device == CPU
        with td.device("/device:SHELF:0"):
            assert f(y).device == place.name
    finally:
        f._lookup = slow


def test_scopes_without_soft_placement(place):
    @td.function
    def f(a):
        with td.device("/device:SHELF:0"):
            b = a * 2.0
        with td.device("CPU:0"):
            return b + 1.0

    assert f(td.constant(X)).device == place.name
    td.config.set_soft_device_placement(False)
    try:
        text = "Could not satisfy device specification 'CPU:0'.* this one on SHELF:0"
        with pytest.raises(td.errors.InvalidArgumentError, match=text) as info:
            f(td.constant(X))
        for word in ("enable_soft_placement=0.", "test_devices.py"):
            assert word in str(info.value)
    finally:
        td.config.set_soft_device_placement(True)


def test_random_numbers_in_scopes(place):
    td.random.set_seed(3)
    with td.device("/device:SHELF:0"):
        assert td.random.normal([2]).device == place.name
    f = td.function(lambda: td.random.normal([2]))
    assert f().device == CPU


def test_the_log_of_placements(place, capfd):
    x, y = on(place, X), td.constant(X)

    @td.function
    def twice(a):
        return a * 2.0

    twice(y), twice(y), twice(y)
    td.debugging.set_log_device_placement(True)
    try:
        assert td.debugging.get_log_device_placement()
        y + 1.0, td.matmul(x, y), twice(y), twice(x)
        with td.device("/device:SHELF:0"):
            y * y
    finally:
        td.debugging.set_log_device_placement(False)
    y + 1.0, twice(y)
    lines = [line.removeprefix("Executing op ") for line in capfd.readouterr().err.splitlines()]
    there = CPU.replace("CPU", "SHELF")
    assert lines == [
        f"add in device {CPU}", f"matmul in device {there}",
        f"__inference_twice_1 in device {CPU}", f"__inference_twice_2 in device {there}",
        f"multiply in device {there}",
    ]  # fmt: skip


def test_arrays_and_captured_tensors_follow(place):
    c = td.constant(X)
    f = td.function(lambda a, b: a * b + c)
    x = on(place, X)
    for _ in range(3):
        assert f(x, X).device == x.device
    np.testing.assert_array_equal(f(x, X).numpy(), X * X + X)
    captured = f.get_concrete_function(x, X).captured_inputs
    assert [t.device for t in captured] == [x.device]
    g = td.function(lambda: x * 2.0)
    assert g().device == x.device
    h = td.function(lambda a: a + x)
    assert h(c).device == x.device
    np.testing.assert_array_equal(h(c).numpy(), X + X)


def test_shapes_are_generalized_on_the_device(place):
    f = td.function(lambda a: td.reduce_sum(a * a, 0), reduce_retracing=True)
    for rows in (2, 3, 4, 5):
        a = np.full((rows, 2), 2.0, np.float32)
        assert f(on(place, a)).device == f(moved(td.constant(a), place)).device != f(a).device
        np.testing.assert_array_equal(f(on(place, a)).numpy(), [4.0 * rows] * 2)
    assert f.experimental_get_tracing_count() == 4


def test_input_signatures_take_tensors_of_any_device(place):
    f = td.function(lambda a: a * 3.0, input_signature=[TensorSpec([None, 2])])
    x = on(place, X)
    assert f(x).device == x.device and f(td.constant(X)).device == CPU
    np.testing.assert_array_equal(f(x).numpy(), X * 3)
    assert f.experimental_get_tracing_count() == 2


def test_functions_inside_functions_and_gradients(place):
    w = td.Variable(on(place, X))
    inner = td.function(lambda a: td.reduce_sum(a * a * w))
    outer = td.function(lambda a: inner(a) * 2.0)
    x = on(place, X)
    with td.GradientTape() as tape:
        tape.watch(x)
        loss = outer(x)
    dx, dw = tape.gradient(loss, [x, w])
    assert loss.device == dx.device == dw.device == x.device
    np.testing.assert_allclose(dx.numpy(), 4 * X * X)
    np.testing.assert_allclose(dw.numpy(), 2 * X * X)


def test_a_graph_is_interpreted_for_a_device(place):
    graph = td.function(lambda a: a + 1.0).get_concrete_function(on(place, X)).graph
    program = compile(graph, Options(interpret=True))
    (result,) = program.run([on(place, X)._buffer])
    assert type(result) is Box
    np.testing.assert_array_equal(result._secret, X + 1)


def test_jit_stays_on_the_host(place):
    v = td.Variable(on(place, X))
    with pytest.raises(td.errors.UnimplementedError, match="SHELF:0"):
        td.jit(lambda: v + 1.0)()


def test_a_device_without_backend():
    bare = Device("BARE", 0, host_storage)
    add_device(bare)
    try:
        with pytest.raises(td.errors.UnimplementedError, match="BARE:0"):
            td.function(lambda a: a + 1.0)(moved(td.constant(X), bare))
        with pytest.raises(ValueError, match="already"):
            add_device(Device("BARE", 0, host_storage))
    finally:
        remove_device(bare)
    with pytest.raises(ValueError, match="there is no device 'BARE:0': the only one is 'CPU:0'"):
        find_device("BARE:0")


def test_devices_are_listed(place):
    listed = td.config.list_physical_devices()
    assert [d.name for d in listed] == ["/physical_device:CPU:0", "/physical_device:SHELF:0"]
    assert td.config.list_physical_devices("SHELF") == listed[1:]
    for name in ("SHELF:0", "/device:SHELF:0", "/physical_device:SHELF:0", str(place.name)):
        assert find_device(name) is place


# -- variables -----------------------------------------------------------------------------------


def test_a_variable_has_a_cell_of_its_storage(place):
    x = on(place, X)
    v = td.Variable(x, name="w")
    assert type(v.cell()) is ShelfCell and place.storage.counts == {"cell": 1}
    assert v.device == x.device and str(v.spec) == "ref f32[2, 2]@SHELF:0"
    before = v.value()
    assert before.device == x.device
    v.assign(td.constant(X + 1))  # copied to the device
    v.assign_add(x)
    np.testing.assert_array_equal(v.numpy(), X + X + 1)
    np.testing.assert_array_equal(before.numpy(), X)
    assert v.device == x.device and type(v._buffer) is Box


def test_programs_write_variables_in_place_unless_somebody_holds_them(place):
    v = td.Variable(on(place, X))

    @td.function
    def step(a):
        v.assign_add(a)
        return v * 2.0

    x = on(place, X)
    step(x)
    buffer = v._buffer
    place.storage.counts.clear()
    assert step(x).device == x.device
    assert v._buffer is buffer and set(place.storage.counts) == {"empty"}
    held = v.value()
    step(x)
    assert v._buffer is not buffer and place.storage.counts["copy"] == 1
    np.testing.assert_array_equal(held.numpy(), 3 * X)
    np.testing.assert_array_equal(v.numpy(), 4 * X)
    assert step.experimental_get_tracing_count() == 1


def test_variables_as_arguments_are_traced_for_each_device(place):
    f = td.function(lambda v: v + 1.0)
    here, there = td.Variable(X), td.Variable(on(place, X))
    assert f(here).device == CPU and f(there).device == there.device
    assert f.experimental_get_tracing_count() == 2


def test_random_numbers_go_on_where_the_host_stopped(place):
    def drawn(scope):
        td.random.set_seed(7)
        f = td.function(lambda a: a + td.random.uniform([2]))
        numbers = [td.random.uniform([2])]
        with td.device(scope):
            return np.stack([*numbers, *(f(np.zeros(2, np.float32)) for _ in range(3))])

    np.testing.assert_array_equal(drawn("CPU:0"), drawn("/device:SHELF:0"))
    v = td.Variable(on(place, [0.0, 0.0]))
    noise = td.function(lambda: v.assign_add(td.random.uniform([2], seed=3)))
    td.random.set_seed(8)
    first = noise().numpy()
    assert noise().device == place.name
    td.random.set_seed(8)
    v.assign([0.0, 0.0])
    np.testing.assert_array_equal(noise().numpy(), first)


def test_retraces_for_devices_are_explained(place):
    f, g = td.function(lambda a: a + 1.0), td.function(lambda: td.range(3))
    f(td.constant(X)), g()
    with td.device("/device:SHELF:0"):
        f(td.constant(X)), g()
    assert "f32[2, 2]@SHELF:0 (another device: a function has a trace for each)" in str(f.explain())
    assert "another device scope" in str(g.explain())


def test_gradients_of_captured_tensors_that_are_elsewhere(place):
    y, x = td.constant(X), on(place, X)
    f = td.function(lambda a: td.reduce_sum(a * y))
    outer = td.function(lambda a: f(a) * 2.0)
    for function, factor in ((f, 1), (outer, 2)):
        for scope in ("CPU:0", "/device:SHELF:0", None):
            with td.device(scope), td.GradientTape() as tape:
                tape.watch([x, y])
                loss = function(x)
            for gradient in tape.gradient(loss, [x, y]):
                np.testing.assert_array_equal(gradient.numpy(), factor * X)


def test_pipelines_run_on_the_host(place):
    scale, v = on(place, np.float32(3)), td.Variable(on(place, np.float32(5)))
    numbers = td.data.Dataset.from_tensor_slices(np.arange(3, dtype=np.float32))
    with td.device("/device:SHELF:0"):
        mapped = numbers.map(lambda x: x * 2.0 + td.constant(1.0))
        assert [e.device for e in mapped] == [CPU] * 3
        assert [float(e) for e in mapped.map(lambda x: x * scale)] == [3.0, 9.0, 15.0]
        assert [float(e) for e in mapped.filter(lambda x: x > 2.0)] == [3.0, 5.0]
        assert [float(e) for e in mapped.map(lambda x: x + v)] == [6.0, 8.0, 10.0]
        assert float(numbers.reduce(0.0, lambda s, x: s + x)) == 3.0


def test_variables_of_strings_stay_on_the_host(place):
    with td.device("/device:SHELF:0"):
        v = td.Variable("a")
        f = td.function(lambda x: (v.assign(v + "b"), x * 2.0))
        for text in (b"ab", b"abb"):
            found, number = f(td.constant(1.0))
            assert (found.numpy(), number.device) == (text, place.name)
    assert v.device == CPU and v.numpy() == b"abb"
