"""`keras.distribution`: descriptions of layouts, with Keras's answers; no weight is split."""

from __future__ import annotations

import numpy as np
import pytest

from treadle import keras

distribution = keras.distribution


def _mesh():
    return distribution.DeviceMesh((2, 2), ("batch", "model"), [f"cpu:{i}" for i in range(4)])


def test_devices():
    assert distribution.list_devices("cpu")[0] == "cpu:0"
    assert distribution.get_device_count("cpu") == len(distribution.list_devices("cpu"))


def test_a_mesh():
    mesh = _mesh()
    assert mesh.shape == (2, 2) and mesh.axis_names == ("batch", "model")
    np.testing.assert_array_equal(mesh.devices, [["cpu:0", "cpu:1"], ["cpu:2", "cpu:3"]])
    assert repr(mesh) == "<DeviceMesh shape=(2, 2), axis_names=('batch', 'model')>"
    for shape, names, devices in (((), (), None), ((2,), ("a", "b"), None), ((3,), "a", ["cpu:0"])):
        with pytest.raises(ValueError, match="hape"):
            distribution.DeviceMesh(shape, names, devices)


def test_layouts_by_paths():
    layouts = distribution.LayoutMap(_mesh())
    layouts[".*kernel"] = (None, "model")
    layouts["dense/bias"] = distribution.TensorLayout(("model",))
    assert layouts["a/kernel"].axes == (None, "model")
    assert layouts["a/kernel"].device_mesh is layouts.device_mesh
    assert layouts["dense/bias"].axes == ("model",) and layouts["other"] is None
    assert list(layouts) == [".*kernel", "dense/bias"] and len(layouts) == 2
    layouts["dense/.*"] = ("batch",)
    with pytest.raises(ValueError, match="matches multiple layout specification keys"):
        layouts["dense/kernel"]
    with pytest.raises(ValueError, match="already exist in the LayoutMap"):
        layouts["dense/bias"] = ("batch",)
    with pytest.raises(ValueError, match="should be a TensorLayout type"):
        layouts["x"] = "model"
    with pytest.raises(ValueError, match="Invalid axis names for Layout"):
        layouts["x"] = ("rows",)
    with pytest.raises(ValueError, match="Cannot override device mesh value"):
        layouts["a/kernel"].device_mesh = _mesh()
    del layouts["dense/bias"]
    assert "dense/bias" not in list(layouts)


def test_no_weight_is_split():
    assert distribution.distribution() is None
    distribution.set_distribution(None)
    with pytest.raises(NotImplementedError, match=r"td\.distribute"):
        distribution.set_distribution(object())
    with pytest.raises(AttributeError, match=r"td\.distribute"):
        distribution.DataParallel
