"""Classes of the user in calls: extension types, and objects that say their trace type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import treadle as td


class Masked(td.experimental.ExtensionType):
    values: td.Tensor
    mask: td.Tensor
    scale: int = 1

    def total(self) -> Any:
        return td.reduce_sum(td.where(self.mask, self.values * self.scale, 0))

    def __add__(self, other: Any) -> Masked:
        return Masked(self.values + other, self.mask, self.scale)


class Batch(td.experimental.ExtensionType):
    parts: tuple[Masked, ...]
    named: Mapping[str, td.Tensor]
    weight: td.TensorSpec([], td.float32) = 1.0  # type: ignore[valid-type]
    note: str | None = None


def masked(*values: int, scale: int = 1) -> Masked:
    return Masked(values, [v % 2 == 0 for v in values], scale)


def batch(scale: int = 1) -> Batch:
    return Batch([masked(1, 2), masked(4, scale=scale)], {"a": 1.0, "b": [2.0]})


def step(b: Batch, n: Any) -> tuple[Batch, Any]:
    first, second = b.parts
    for i in td.range(n):
        if i > 1:
            second = second + i
        else:
            second = Masked(second.values * 2, second.mask, second.scale)
    made = Batch([first + n, second], {k: v + 1.0 for k, v in b.named.items()}, b.weight * 2.0)
    return made, second.total()


def test_structures_of_types_eagerly_and_in_a_function() -> None:
    compiled = td.function(step)
    for scale in (1, 3, 1):
        for n in (0, 1, 4):
            eager, staged = (
                step(batch(scale), td.constant(n)),
                compiled(batch(scale), td.constant(n)),
            )
            assert isinstance(staged[0], Batch) and staged[0].parts[1].scale == scale
            leaves = (td.nest.flatten(x, expand_composites=True) for x in (eager, staged))
            for a, b in zip(*leaves, strict=True):
                assert a.dtype is b.dtype
                np.testing.assert_array_equal(a, b)
    assert compiled.experimental_get_tracing_count() == 2  # one for each value of `scale`


def test_an_annotation_that_is_a_spec() -> None:
    assert Batch([], {}, 3).weight.dtype is td.float32
    for wrong in ([1.0], "a", td.constant(1)):
        with pytest.raises(TypeError, match="weight"):
            Batch([], {}, wrong)


def test_errors_name_the_class_the_field_and_the_line() -> None:
    with pytest.raises(TypeError, match=r"Masked: field 'scale': expected int, got 1.5") as e:
        masked(1, scale=1.5)  # type: ignore[arg-type]
    assert "test_extension_types.py" in str(e.value)
    with pytest.raises(AttributeError, match="'values' cannot be assigned"):
        masked(1).values = 1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="'mask' cannot be deleted"):
        del masked(1).mask


def test_types_of_another_static_value_do_not_fit_a_signature() -> None:
    spec = Masked.Spec(td.TensorSpec([None], td.int32), td.TensorSpec([None], td.bool), 1)
    f = td.function(lambda m: m.total(), input_signature=[spec])
    assert [int(f(masked(*range(n)))) for n in (1, 3, 5)] == [0, 2, 6]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError, match="another structure"):
        f(masked(1, scale=2))
    concrete = f.get_concrete_function()
    assert concrete.structured_input_signature[0][0].is_subtype_of(spec)
    assert int(concrete(masked(2, 4))) == 6
    assert spec.most_specific_common_supertype([td.type_spec_from_value(masked(1))]) == spec
    assert not spec.is_subtype_of(td.type_spec_from_value(masked(1)))
    assert td.type_spec_from_value(masked(1)).is_subtype_of(spec)


def test_branches_with_other_static_values_are_refused() -> None:
    @td.function
    def f(m: Masked, n: Any) -> Masked:
        if n > 0:
            m = Masked(m.values, m.mask, 7)
        return m

    with pytest.raises(TypeError, match="differ|types"):
        f(masked(1), td.constant(1))


def test_gradients_through_fields() -> None:
    class Line(td.experimental.ExtensionType):
        slope: td.Tensor
        offset: td.Tensor

        def __call__(self, x: Any) -> Any:
            return self.slope * x + self.offset

    @td.function
    def slopes(line: Any, x: Any) -> Any:
        with td.GradientTape() as tape:
            tape.watch([line.slope, line.offset])
            y = td.reduce_sum(line(x) ** 2)
        return tape.gradient(y, [line.slope, line.offset])

    found = slopes(Line(2.0, 1.0), td.constant([1.0, 2.0]))
    assert [float(g) for g in found] == [2 * (3 * 1 + 5 * 2), 2 * (3 + 5)]


class Level(td.types.experimental.TraceType):
    """Of values up to a limit: what serves a larger one serves a smaller one."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def is_subtype_of(self, other: Any) -> bool:
        return self.limit <= other.limit

    def placeholder_value(self, placeholder_context: Any = None) -> Any:
        return Limited(self.limit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Level) and other.limit == self.limit

    def __hash__(self) -> int:
        return hash(self.limit)


class Limited:
    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __tf_tracing_type__(self, context: Any) -> Level:
        return Level(self.limit)


def test_objects_are_told_apart_by_their_trace_type() -> None:
    traced = []

    @td.function
    def f(item: Limited, x: Any) -> Any:
        traced.append(item.limit)
        return x + item.limit

    item = Limited(5)
    assert isinstance(item, td.types.experimental.SupportsTracingProtocol)
    for limit, expected in ((5, 5), (3, 5), (8, 8), (6, 8), (5, 5)):
        item.limit = limit  # the object is the same: only its type counts
        for _ in range(3):
            assert int(f(item, td.constant(0))) == expected
    assert traced == [5, 8]


def test_a_type_whose_fields_hold_objects_of_itself() -> None:
    class Node(td.experimental.ExtensionType):
        value: td.Tensor
        children: tuple[Node, ...] = ()

        def total(self) -> Any:
            return sum((child.total() for child in self.children), self.value)

    tree = Node(3, children=[Node(5), Node(2, [Node(7)])])
    assert int(tree.total()) == 17
    assert int(td.function(lambda node: node.total())(tree)) == 17
    with pytest.raises(TypeError, match="'children': expected Node, got 4"):
        Node(3, children=[4])


class Veiled(td.experimental.ExtensionType):
    values: td.Tensor
    mask: td.Tensor

    class Spec:
        def __init__(self, shape, dtype=td.float32):
            self.values = td.TensorSpec(shape, dtype)
            self.mask = td.TensorSpec(shape, td.bool)

        def __repr__(self):
            return f"Veiled.Spec(shape={self.shape}, dtype={self.dtype})"

        shape = property(lambda self: self.values.shape)
        dtype = property(lambda self: self.values.dtype)


def test_specs_with_a_constructor_and_methods_of_their_own():
    spec = Veiled.Spec([None], td.int32)
    assert (spec.shape.rank, spec.dtype) == (1, td.int32)
    assert repr(spec) == "Veiled.Spec(shape=(None,), dtype=<dtype: 'int32'>)"
    assert spec == Veiled.Spec([None], td.int32) != Veiled.Spec([None])
    with pytest.raises(AttributeError, match="do not change"):
        spec.values = td.TensorSpec([], td.int32)
    value = Veiled([1, 2], [True, False])
    assert isinstance(value._type_spec, Veiled.Spec) and value._type_spec.shape == [2]

    @td.function(input_signature=[spec])
    def total(x):
        return td.reduce_sum(td.where(x.mask, x.values, 0))

    assert total(value).numpy() == 1
    grown = td.function(lambda x: Veiled(x.values * 2, x.mask)).get_concrete_function(spec)
    assert grown(value).values.numpy().tolist() == [2, 4]
    data = td.data.Dataset.from_generator(lambda: iter([value]), output_signature=spec)
    assert iter(data).next().values.numpy().tolist() == [1, 2]


def test_specs_whose_constructor_leaves_out_a_field():
    class Pair(td.experimental.ExtensionType):
        a: td.Tensor
        b: td.Tensor

        class Spec:
            def __init__(self):
                self.a = td.TensorSpec([], td.float32)

    with pytest.raises(AttributeError, match="did not set the field 'b'"):
        Pair.Spec()


def test_dispatched_functions_may_leave_out_the_name():
    @td.experimental.dispatch_for_api(td.stack)
    def stack(values: list[Veiled], axis=0):
        parts = [td.stack([getattr(v, n) for v in values], axis) for n in ("values", "mask")]
        return Veiled(*parts)

    x = Veiled([1, 2], [True, False])
    try:
        for made in (td.stack([x, x]), td.stack([x, x], 0, "n"), td.stack([x, x], name="n")):
            assert made.values.numpy().tolist() == [[1, 2], [1, 2]]
        with pytest.raises(ValueError, match="does not match"):
            td.experimental.dispatch_for_api(td.stack)(lambda other: other)
    finally:
        td.experimental.unregister_dispatch_for(stack)

    @td.experimental.dispatch_for_api(td.stack)
    def stack_any(values: list[Veiled | td.Tensor], axis=0):
        none = [Veiled(v, td.ones_like(v, td.bool)) for v in values if isinstance(v, td.Tensor)]
        whole = [v for v in values if isinstance(v, Veiled)] + none
        parts = [td.stack([getattr(v, n) for v in whole], axis) for n in ("values", "mask")]
        return Veiled(*parts)

    try:
        made = td.stack([x, td.constant([3, 4])])
        assert made.values.numpy().tolist() == [[1, 2], [3, 4]]
        assert td.stack([x.values, x.values]).shape == (2, 2)  # tensors alone: not handed over
    finally:
        td.experimental.unregister_dispatch_for(stack_any)


def test_fields_as_a_dict() -> None:
    made = batch()
    fields = td.experimental.extension_type.as_dict(made)
    assert list(fields) == ["parts", "named", "weight", "note"]
    assert fields["parts"] is made.parts and fields["note"] is None


def test_fields_of_ragged_and_sparse_tensors():
    class Lines(td.experimental.BatchableExtensionType):
        rows: td.RaggedTensor
        places: td.SparseTensor
        shape: td.TensorShape

    rows = td.ragged.constant([[1, 2], [3]])
    places = td.sparse.from_dense([[0, 1], [2, 0]])
    lines = Lines(rows, places, [2])
    total = td.function(lambda x: td.reduce_sum(x.rows) + td.sparse.reduce_sum(x.places))
    assert int(total(lines)) == 9
    with pytest.raises(TypeError, match="field 'rows': expected RaggedTensor"):
        Lines([[1, 2]], places, [2])
    parts = list(td.data.Dataset.from_tensor_slices(lines))
    assert [p.shape.as_list() for p in parts] == [[], []]
    assert [p.rows.numpy().tolist() for p in parts] == [[1, 2], [3]]
    (whole,) = td.data.Dataset.from_tensor_slices(lines).batch(2)
    assert whole.rows.to_list() == [[1, 2], [3]] and whole.shape.as_list() == [None]


def test_datasets_refuse_encoders_of_users():
    class Encoder(td.experimental.ExtensionTypeBatchEncoder):
        def encode(self, spec, value, minimum_rank=0):
            return [value.values * 2]

    class Doubled(td.experimental.BatchableExtensionType):
        values: td.Tensor
        __batch_encoder__ = Encoder()

    with pytest.raises(TypeError, match="objects of Doubled together by their fields"):
        td.data.Dataset.from_tensor_slices(Doubled([1, 2]))
    found = td.map_fn(lambda x: x.values, Doubled([1, 2]), fn_output_signature=td.int32)
    assert found.numpy().tolist() == [2, 4]
