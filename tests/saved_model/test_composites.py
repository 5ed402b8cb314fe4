"""Saved functions that take and give ragged and sparse tensors and extension types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.tracing import extension_types

RAGGED = td.RaggedTensorSpec([None, None], td.float32)


class Masked(td.experimental.BatchableExtensionType):
    __name__ = "tests.Masked"

    values: td.Tensor
    mask: td.Tensor
    unit: str = "m"
    sizes: tuple[int, ...] = ()


class Unnamed(td.experimental.ExtensionType):
    values: td.Tensor


class Model(td.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = td.Variable(100.0)

    @td.function
    def grown(self, x: Any) -> Any:
        return x * self.factor

    @td.function
    def masked(self, x: Any) -> Any:
        return {"a": Masked(x.values * self.factor, ~x.mask, x.unit, (1, 2)), "b": 1.0}

    @td.function
    def unnamed(self, x: Any) -> Any:
        return x.values

    @td.function
    def sparse(self, x: Any) -> Any:
        return td.sparse.map_values(td.multiply, x, self.factor)

    @td.function(input_signature=[td.RaggedTensorSpec([None, None, 2], td.float32, ragged_rank=1)])
    def signed(self, x: Any) -> Any:
        return {"sum": td.reduce_sum(x), "rows": x + self.factor}


def loaded(model: Model, folder: Path) -> Any:
    td.saved_model.save(model, folder / "model")
    return td.saved_model.load(folder / "model")


def test_ragged_tensors(tmp_path: Path) -> None:
    model = Model()
    model.grown.get_concrete_function(RAGGED)
    again = loaded(model, tmp_path)
    for rows in ([[1.0, 4.0], [2.0]], [[], [3.0], []]):
        found = again.grown(td.ragged.constant(rows, td.float32))
        assert found.to_list() == [[v * 100.0 for v in row] for row in rows]
    with pytest.raises(ValueError, match=r"grown\(x=RaggedTensorSpec"):
        again.grown(td.ones([2]))
    x = td.ragged.constant([[[1.0, 2.0]], []], ragged_rank=1, inner_shape=(2,))
    found = again.signed(x)
    assert float(found["sum"]) == 3.0 and found["rows"].to_list() == [[[101.0, 102.0]], []]
    assert again.signed.input_signature == model.signed.input_signature
    parts = again.signatures["serving_default"](
        **dict(zip(("x_0", "x_1"), (x.values, x.row_splits), strict=True))
    )
    assert parts["rows"].to_list() == [[[101.0, 102.0]], []]
    td.saved_model.save(again, tmp_path / "second")
    second = td.saved_model.load(tmp_path / "second")
    assert second.grown(td.ragged.constant([[1.0]])).to_list() == [[100.0]]


def test_sparse_tensors(tmp_path: Path) -> None:
    model = Model()
    model.sparse.get_concrete_function(td.SparseTensorSpec([None, 3], td.float32))
    found = loaded(model, tmp_path).sparse(td.sparse.from_dense([[1.0, 0.0, 2.0]]))
    np.testing.assert_array_equal(td.sparse.to_dense(found), [[100.0, 0.0, 200.0]])


def test_extension_types(tmp_path: Path) -> None:
    model = Model()
    model.masked(Masked([1.0, 2.0], [True, False], sizes=(3,)))
    again = loaded(model, tmp_path)
    found = again.masked(Masked([3.0, 5.0], [True, True], sizes=(3,)))
    assert isinstance(found["a"], Masked) and found["a"].values.numpy().tolist() == [300.0, 500.0]
    assert (found["a"].unit, found["a"].sizes) == ("m", (1, 2))
    with pytest.raises(ValueError, match="Could not find matching concrete function"):
        again.masked(Masked([3.0, 5.0], [True, True], "km", (3,)))


def test_classes_without_a_name_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Model()
    model.unnamed(Unnamed([1.0]))
    again = loaded(model, tmp_path)
    assert "leaves out unnamed(x=Unnamed.Spec" in caplog.text
    with pytest.raises(ValueError, match="Saving left out unnamed"):
        again.unnamed(Unnamed([1.0]))


def test_classes_that_a_program_does_not_define(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    model.masked(Masked([1.0], [True]))
    td.saved_model.save(model, tmp_path / "model")
    monkeypatch.delitem(extension_types._by_name, "tests.Masked")
    words = r"extension type tests\.Masked.*define the class before"
    with pytest.raises(td.errors.NotFoundError, match=words):
        td.saved_model.load(tmp_path / "model")
