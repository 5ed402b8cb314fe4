"""Texts as TensorFlow 2.21 prints them (recorded from it)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.core.context import recording
from treadle.graph.builder import GraphBuilder

TENSORS: list[tuple[Any, str, str]] = [
    (td.constant([1, 2, 3]), "tf.Tensor([1 2 3], shape=(3,), dtype=int32)",
     "<tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>"),
    (td.constant(1.5), "tf.Tensor(1.5, shape=(), dtype=float32)",
     "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>"),
    (td.constant(0.1), "tf.Tensor(0.1, shape=(), dtype=float32)",
     "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>"),
    (td.constant(True), "tf.Tensor(True, shape=(), dtype=bool)",
     "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
    (td.constant([[1.0, 2], [3, 4]]),
     "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)",
     "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 2.],\n       [3., 4.]], "
     "dtype=float32)>"),
    (td.constant([1.5, 2], td.bfloat16), "tf.Tensor([1.5 2], shape=(2,), dtype=bfloat16)",
     "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1.5, 2], dtype=bfloat16)>"),
    (td.constant(1.5, td.bfloat16), "tf.Tensor(1.5, shape=(), dtype=bfloat16)",
     "<tf.Tensor: shape=(), dtype=bfloat16, numpy=1.5>"),
    (td.zeros([0, 3]), "tf.Tensor([], shape=(0, 3), dtype=float32)",
     "<tf.Tensor: shape=(0, 3), dtype=float32, numpy=array([], shape=(0, 3), dtype=float32)>"),
    (td.constant(1 + 2j), "tf.Tensor((1+2j), shape=(), dtype=complex128)",
     "<tf.Tensor: shape=(), dtype=complex128, numpy=(1+2j)>"),
    (td.constant(3, td.int64), "tf.Tensor(3, shape=(), dtype=int64)",
     "<tf.Tensor: shape=(), dtype=int64, numpy=3>"),
    (td.constant([True, False]), "tf.Tensor([ True False], shape=(2,), dtype=bool)",
     "<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>"),
    (td.range(2000), "tf.Tensor([   0    1    2 ... 1997 1998 1999], shape=(2000,), dtype=int32)",
     "<tf.Tensor: shape=(2000,), dtype=int32, numpy=\narray([   0,    1,    2, ..., 1997, 1998, "
     "1999],\n      shape=(2000,), dtype=int32)>"),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "text", "representation"), TENSORS)
def test_eager_tensors(tensor: Any, text: str, representation: str) -> None:
    assert str(tensor) == text
    assert repr(tensor) == representation


def test_f_strings_show_the_elements() -> None:
    assert f"{td.constant(2.5)} {td.constant(True)} {td.constant(7)}" == "2.5 True 7"
    assert f"{td.constant([[1.0, 2.0], [3.0, 4.0]])}" == "[[1. 2.]\n [3. 4.]]"


def test_format_specs_apply_to_scalars() -> None:
    assert f"{td.constant(0.125):.2f} {td.constant(7):03d}" == "0.12 007"
    with pytest.raises(ValueError, match="format"):
        f"{td.constant([1.0]):.2f}"


def test_symbolic_tensors() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(td.TensorSpec([None, 3]).with_fresh_symbols(), "x")
    with recording(builder):
        assert str(x) == 'Tensor("x:0", shape=(None, 3), dtype=float32)'
        assert repr(x) == "<tf.Tensor 'x:0' shape=(None, 3) dtype=float32>"


def test_variables() -> None:
    assert str(td.Variable([1.0, 2, 3])) == repr(td.Variable([1.0, 2, 3])) == (
        "<tf.Variable 'Variable:0' shape=(3,) dtype=float32, "
        "numpy=array([1., 2., 3.], dtype=float32)>"
    )  # fmt: skip
    a = td.Variable(1, name="a")
    assert repr(a) == "<tf.Variable 'a:0' shape=() dtype=int32, numpy=1>"
    assert repr(td.Variable([[1, 2], [3, 4]])) == (
        "<tf.Variable 'Variable:0' shape=(2, 2) dtype=int32, numpy=\n"
        "array([[1, 2],\n       [3, 4]], dtype=int32)>"
    )
    with recording(GraphBuilder("f")):
        assert repr(a) == "<tf.Variable 'a:0' shape=() dtype=int32>"


def test_numpy_print_options_are_the_users() -> None:
    with np.printoptions(precision=2):
        assert str(td.constant([0.12345])) == "tf.Tensor([0.12], shape=(1,), dtype=float32)"
