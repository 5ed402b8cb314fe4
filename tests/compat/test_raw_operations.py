"""`td.raw_ops`: keywords only, names and forms. What the operations compute is recorded from
TensorFlow (`tests/facts_tf/calls/kernels.txt`)."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.compat.operation_forms import form_of, types
from treadle.compat.tensorflow_ops import is_known


def alone(check: Callable[[], None]) -> None:
    """Run in a thread: the tests of this folder stand in a graph of TensorFlow 1."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            check()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def test_every_form_belongs_to_an_operation_that_is_known() -> None:
    assert len(types()) >= 200
    for name in types():
        assert is_known(name), name
        form, function = form_of(name), getattr(td.raw_ops, name)
        parameters = inspect.signature(function).parameters
        assert list(parameters)[-1] == "name"
        assert set(parameters) == {"name", *form.attributes, *(i.name for i in form.inputs)}
        assert name in dir(td.raw_ops) and "Raises" in function.__doc__


def test_calls_and_refusals() -> None:
    def check() -> None:
        x = td.constant([[1.0, 2.0], [3.0, 4.0]])
        product = td.raw_ops.MatMul(a=x, b=[[1, 0], [0, 1]], transpose_a=True, name="m")
        np.testing.assert_array_equal(product, [[1.0, 3.0], [2.0, 4.0]])
        y, idx, count = td.raw_ops.UniqueWithCounts(x=[3, 1, 3])
        assert (y.numpy().tolist(), idx.numpy().tolist(), count.numpy().tolist()) == (
            [3, 1], [0, 1, 0], [2, 1])  # fmt: skip
        assert isinstance(td.raw_ops.Split(axis=0, value=x, num_split=2), list)
        with pytest.raises(TypeError, match="only takes keyword args"):
            td.raw_ops.Abs(x)
        with pytest.raises(TypeError, match="missing arguments: b"):
            td.raw_ops.MatMul(a=x)
        with pytest.raises(TypeError, match="unexpected arguments: turned"):
            td.raw_ops.Abs(x=x, turned=True)
        with pytest.raises(td.errors.InvalidArgumentError, match="Incompatible shapes"):
            td.raw_ops.BroadcastGradientArgs(s0=[2], s1=[3])

    alone(check)


def test_inside_of_functions_with_gradients() -> None:
    def check() -> None:
        @td.function
        def slope(x: Any) -> Any:
            with td.GradientTape() as tape:
                tape.watch(x)
                y = td.raw_ops.Mul(x=td.raw_ops.Sin(x=x), y=2.0)
            return tape.gradient(y, x)

        np.testing.assert_allclose(slope(td.constant([0.0, 1.0])), 2 * np.cos([0.0, 1.0]), 1e-6)

    alone(check)


def test_names_that_are_missing() -> None:
    assert not hasattr(td.raw_ops, "CudnnRNN")
    with pytest.raises(AttributeError, match="public functions"):
        _ = td.raw_ops.CudnnRNN


def test_branches_and_loops_of_a_graph() -> None:
    """Numbers beside tensors of a graph are no tensors of the trace that finds out about shapes."""
    v1, raw = td.compat.v1, td.raw_ops
    with td.Graph().as_default(), v1.Session() as session:
        i = v1.placeholder(td.int32, [])
        loop = v1.while_loop(lambda i: raw.Less(x=i, y=10), lambda i: raw.AddV2(x=i, y=1), [i])
        either = v1.cond(i > 0, lambda: raw.Mul(x=i, y=10), lambda: raw.Sub(x=2, y=i))
        assert session.run([loop, either, raw.AddV2(x=2, y=i)], {i: 3}) == [10, 30, 5]


def test_lists_are_values() -> None:
    """What TensorFlow 2.21 gives."""

    def check() -> None:
        r = td.raw_ops
        new = r.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=td.float32)
        one = r.TensorListSetItem(input_handle=new, index=1, item=[1.0, 2.0])
        of = {"element_shape": [2], "element_dtype": td.float32}
        stacked = r.TensorListStack(input_handle=one, num_elements=3, **of)
        assert stacked.numpy().tolist() == [[0, 0], [1, 2], [0, 0]]
        assert not r.TensorListStack(input_handle=new, **of).numpy().any()
        assert r.TensorListGetItem(input_handle=one, index=1, **of).numpy().tolist() == [1, 2]
        assert r.TensorListLength(input_handle=one).numpy() == 3
        assert r.TensorListElementShape(input_handle=one, shape_type=td.int32).numpy() == [2]

        vectors = {"element_shape": [-1], "element_dtype": td.float32}
        items = r.EmptyTensorList(max_num_elements=4, **vectors)
        assert r.TensorListLength(input_handle=items).numpy() == 0
        items = r.TensorListPushBack(input_handle=items, tensor=[1.0, 2.0])
        items = r.TensorListPushBack(input_handle=items, tensor=[3.0])
        joined, lengths = r.TensorListConcat(
            input_handle=items, element_dtype=td.float32, element_shape=[None]
        )
        assert joined.numpy().tolist() == [1, 2, 3] and lengths.numpy().tolist() == [2, 1]
        assert lengths.dtype is td.int64
        popped = r.TensorListPopBack(input_handle=items, **vectors)
        assert popped.tensor.numpy().tolist() == [3]
        assert r.TensorListLength(input_handle=popped.output_handle).numpy() == 1
        assert r.TensorListLength(input_handle=items).numpy() == 2

        rows = r.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
        found = r.TensorListGather(input_handle=rows, indices=[1, 0], **of)
        assert found.numpy().tolist() == [[3, 4], [1, 2]]
        single = {"element_shape": [1], "element_dtype": td.float32}
        spread = r.TensorListScatter(tensor=[[1.0], [2.0]], indices=[2, 0], element_shape=[1])
        assert r.TensorListStack(input_handle=spread, **single).numpy().tolist() == [[2], [0], [1]]
        spread = r.TensorListScatterV2(
            tensor=[[1.0], [2.0]], indices=[2, 0], element_shape=[1], num_elements=4
        )
        assert r.TensorListLength(input_handle=spread).numpy() == 4
        parts = r.TensorListSplit(tensor=[1.0, 2.0, 3.0], element_shape=[-1], lengths=[2, 1])
        assert r.TensorListGetItem(input_handle=parts, index=1, **vectors).numpy().tolist() == [3]
        for size in (1, 5):
            resized = r.TensorListResize(input_handle=rows, size=size)
            assert r.TensorListLength(input_handle=resized).numpy() == size

    alone(check)


def test_fractional_pools_say_their_windows() -> None:
    def check() -> None:
        images = td.reshape(td.range(36.0), [1, 6, 6, 1])
        for name in ("FractionalMaxPool", "FractionalAvgPool"):
            given = {"pooling_ratio": [1.0, 1.5, 2.0, 1.0], "seed": 3}
            found = getattr(td.raw_ops, name)(value=images, **given)
            assert found.output.shape == [1, 4, 3, 1]
            assert found.row_pooling_sequence.numpy()[[0, -1]].tolist() == [0, 6]
            assert found.col_pooling_sequence.numpy().tolist() == [0, 2, 4, 6]

    alone(check)
