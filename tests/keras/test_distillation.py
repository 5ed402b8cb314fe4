"""Distillation: losses as formulas say, a student that learns, a teacher that does not."""

import numpy as np
import pytest

import treadle as td

keras = td.keras
kd = keras.distillation


def model(units, name):
    layers = [keras.Input((4,)), keras.layers.Dense(units, "relu", name=f"{name}_inner")]
    return keras.Sequential([*layers, keras.layers.Dense(3, name=f"{name}_last")], name=name)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_losses():
    random = np.random.default_rng(0)
    teacher, student = (random.normal(size=(5, 3)).astype("float32") for _ in range(2))
    p, q = softmax(teacher / 4.0), softmax(student / 4.0)
    expected = (p * np.log(p / q)).sum(-1).mean() * 16
    found = kd.LogitsDistillation(4.0).compute_loss(teacher, student)
    np.testing.assert_allclose(float(found), expected, rtol=1e-4)
    mse = kd.LogitsDistillation(2.0, "mse").compute_loss(teacher, student)
    np.testing.assert_allclose(float(mse), ((teacher - student) ** 2).mean() / 4, rtol=1e-5)
    both = kd.FeatureDistillation(["mse", None]).compute_loss([teacher, teacher], [student] * 2)
    np.testing.assert_allclose(float(both), ((teacher - student) ** 2).mean(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["logits", "features", "both"])
def test_a_student_learns(kind):
    keras.utils.set_random_seed(1)
    teacher, student = model(8, "teacher"), model(8, "student")
    features = kd.FeatureDistillation("mse", "teacher_inner", "student_inner")
    losses = {
        "logits": kd.LogitsDistillation(), "features": features,
        "both": [kd.LogitsDistillation(), features],
    }[kind]  # fmt: skip
    weights = [1.0, 0.5] if kind == "both" else None
    distiller = kd.Distiller(teacher, student, losses, weights, student_loss_weight=0.25)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    distiller.compile("adam", loss, metrics=["accuracy"])
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    y = teacher(x).numpy().argmax(-1)
    before = teacher.get_weights()
    history = distiller.fit(x, y, epochs=15, verbose=0).history
    assert history["total_loss"][-1] < history["total_loss"][0]
    total = [0.25 * a + 0.75 * b for a, b in zip(
        history["student_loss"], history["distillation_loss"], strict=True)]  # fmt: skip
    np.testing.assert_allclose(history["total_loss"], total, rtol=1e-4)
    for kept, now in zip(before, teacher.get_weights(), strict=True):
        np.testing.assert_array_equal(kept, now)
    np.testing.assert_allclose(distiller.predict(x, verbose=0), student(x).numpy(), rtol=1e-5)


def test_files(tmp_path):
    distiller = kd.Distiller(model(8, "teacher"), model(6, "student"), kd.LogitsDistillation(2.0))
    x = np.ones((2, 4), "float32")
    expected = distiller(x).numpy()
    distiller.save(tmp_path / "distiller.keras")
    again = keras.models.load_model(tmp_path / "distiller.keras")
    np.testing.assert_allclose(again(x).numpy(), expected, rtol=1e-6)
    assert again.distillation_losses[0].temperature == 2.0
    np.testing.assert_allclose(again.teacher(x).numpy(), distiller.teacher(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kd.LogitsDistillation(0.0), "must be positive"),
        (lambda: kd.LogitsDistillation("3"), "must be a number"),
        (lambda: kd.FeatureDistillation(None), "at least one non-`None`"),
        (lambda: kd.Distiller("x", model(2, "s"), kd.LogitsDistillation()), "Teacher must be"),
        (lambda: kd.Distiller(model(2, "t"), model(2, "s"), None), "cannot be `None`"),
        (
            lambda: kd.Distiller(
                model(2, "t"), model(2, "s"), kd.LogitsDistillation(), student_loss_weight=2.0
            ),
            "between 0.0 and 1.0",
        ),
        (
            lambda: kd.Distiller(
                model(2, "t"), model(2, "s"), kd.FeatureDistillation("mse", "absent", "s_inner")
            ),
            "In teacher model",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
