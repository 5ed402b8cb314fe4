"""KerasFileEditor: files of weights are looked at, compared and changed; wrappers of models."""

import h5py
import numpy as np
import pytest

import treadle as td

keras = td.keras


def model(*between):
    start = x = keras.Input((2,))
    x = keras.layers.LSTM(3, name="first")(keras.layers.Reshape((1, 2))(x))
    for width in between:
        x = keras.layers.Dense(width)(x)
    return keras.Model(start, keras.layers.Dense(3, name="last")(x))


def test_a_file_is_made_to_fit_another_model(tmp_path, capsys):
    trained, wanted = model(), model(3)
    trained.save(tmp_path / "m.keras")
    editor = keras.saving.KerasFileEditor(tmp_path / "m.keras")
    assert editor.config["class_name"] == "Functional"
    assert editor.compare(trained) == {"status": "success", "error_count": 0, "match_count": 5}
    assert editor.compare(wanted)["status"] == "error"
    editor.rename_object("layers/dense", "dense_1")
    editor.add_object("layers/dense", {"0": np.eye(3, dtype=np.float32)})
    assert editor.compare(wanted)["error_count"] == 1
    editor.add_weights("layers/dense", {"1": np.zeros(3, np.float32)})
    assert editor.compare(wanted)["status"] == "success"
    editor.summary()
    assert "dense_1 ('last')" in capsys.readouterr().out
    editor.save(tmp_path / "new.weights.h5")
    wanted.load_weights(tmp_path / "new.weights.h5")
    x = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(wanted(x), trained(x), rtol=1e-6)
    again = keras.saving.KerasFileEditor(str(tmp_path / "new.weights.h5"))
    again.delete_weight("dense", "1")
    again.delete_object("dense_1")
    assert again.compare(wanted)["error_count"] == 2
    for wrong in (
        lambda: again.delete_object("nothing"), lambda: again.add_object("a/b", {}),
        lambda: again.delete_weight("dense", "7"), lambda: again.add_weights("dense", 3),
        lambda: again.rename_object("dense", "a/b"), lambda: again.save(tmp_path / "x.h5"),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


def test_files_that_lead_elsewhere_are_refused(tmp_path):
    small = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5)])
    other = str(tmp_path / "other.weights.h5")
    small.save_weights(other)
    path = tmp_path / "bad.weights.h5"

    def of_another(file):
        file["layers"] = h5py.ExternalLink(other, "/layers")

    def soft(file):
        file.create_group("real")
        file["layers"] = h5py.SoftLink("/real")

    def virtual(file):
        layout = h5py.VirtualLayout(shape=(5,), dtype="float32")
        layout[:] = h5py.VirtualSource(other, "layers/dense/vars/1", shape=(5,))
        file.create_group("layers/dense/vars").create_virtual_dataset("0", layout)

    for number, change in enumerate((of_another, soft, virtual)):
        with h5py.File(path.with_name(f"{number}.weights.h5"), "w") as file:
            change(file)
        for read in (keras.saving.KerasFileEditor, small.load_weights):
            with pytest.raises(ValueError, match="Not allowed: H5 file"):
                read(str(path.with_name(f"{number}.weights.h5")))
