"""Optimizers of Keras 2: values of tf_keras 2.21, and what subclasses of libraries do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import treadle as td
from treadle.compat.replacement import optimizers_of_keras_2 as legacy
from treadle.keras.optimizers import schedules

# After three steps, the last of them from rows: the elements of both variables, and how many
# weights the optimizer has. Recorded with tf_keras 2.21.
CASES: dict[str, tuple[Callable[[], Any], list[float], int]] = {
    "SGD": (
        lambda: legacy.SGD(0.1),
        [0.92198, 1.84397, 2.8812, 3.8416, 4.70596, 5.64715, 0.32956, -2.78657], 1,
    ),
    "momentum": (
        lambda: legacy.SGD(0.1, 0.9, nesterov=True, decay=0.1),
        [0.82602, 1.65205, 2.7377, 3.65027, 4.27461, 5.12953, 0.12237, -8.38962], 3,
    ),
    "Adam": (
        lambda: legacy.Adam(schedules.ExponentialDecay(0.1, 2, 0.5)),
        [0.78054, 1.78068, 2.79075, 3.79072, 4.7794, 5.77938, 0.28563, -1.22088], 5,
    ),
    "AMSGrad": (
        lambda: legacy.Adam(0.1, amsgrad=True, clipnorm=0.5),
        [0.70353, 1.7044, 2.72279, 3.72275, 4.69972, 5.6997, 0.22007, -1.30014], 7,
    ),
    "RMSprop": (
        lambda: legacy.RMSprop(0.1, momentum=0.5, centered=True),
        [-0.06017, 0.80142, 2.25986, 3.2559, 3.8403, 4.83478, -0.14413, -2.35453], 7,
    ),
    "Adagrad": (
        lambda: legacy.Adagrad(0.1, clipvalue=0.2),
        [0.8362, 1.83081, 2.89941, 3.89941, 4.85677, 5.85677, 0.35677, -1.14323], 3,
    ),
}  # fmt: skip


def after_three_steps(optimizer: Any) -> list[float]:
    table = td.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    vector = td.Variable([0.5, -1.0])
    for step in range(3):
        with td.GradientTape() as tape:
            rows = td.gather(table, [0, 2, 0]) if step == 2 else table
            loss = 0.1 * td.reduce_sum(rows**2) + td.reduce_sum(vector**3)
        grads = tape.gradient(loss, [table, vector])
        optimizer.apply_gradients(zip(grads, [table, vector], strict=True))
    return [float(x) for v in (table, vector) for x in td.reshape(v, [-1]).numpy()]


@pytest.mark.parametrize("name", CASES)
def test_the_rules_are_those_of_keras_2(name: str) -> None:
    make, expected, weights = CASES[name]
    optimizer = make()
    assert after_three_steps(optimizer) == pytest.approx(expected, abs=2e-5)
    assert len(optimizer.weights) == len(optimizer.variables()) == weights
    assert int(optimizer.iterations) == 3
    again = type(optimizer).from_config(optimizer.get_config())
    assert after_three_steps(again) == pytest.approx(expected, abs=2e-5)


class Own(legacy.Optimizer):
    """As a library derives one."""

    def __init__(self, learning_rate: Any = 0.5, name: str = "Own", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("kept", 0.5)

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self.add_slot(var, "m", "ones")

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        place = var.device, var.dtype.base_dtype
        found = (apply_state or {}).get(place) or self._fallback_apply_state(*place)
        m = self.get_slot(var, "m")
        change = m.assign(self._get_hyper("kept", var.dtype.base_dtype) * m + grad)
        return var.assign_sub(found["lr_t"] * change)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "learning_rate": self._serialize_hyperparameter("learning_rate")
        }


def test_hyperparameters_of_a_subclass_change_between_calls_of_a_function() -> None:
    optimizer, x = Own(lr=0.25), td.Variable(1.0)

    @td.function
    def step() -> None:
        optimizer.minimize(lambda: 2.0 * x, [x])

    step()
    assert float(x) == 1.0 - 0.25 * 2.5
    optimizer.lr, optimizer.kept = 0.5, 0.0
    step()
    assert float(x) == 1.0 - 0.25 * 2.5 - 0.5 * 2.0
    assert step.experimental_get_tracing_count() <= 2  # the first call makes variables
    assert float(optimizer.learning_rate) == 0.5 and optimizer.get_slot_names() == ["m"]
    assert optimizer.get_config() == {"name": "Own", "learning_rate": 0.5}


def test_a_model_is_trained_by_a_subclass() -> None:
    model = td.keras.Sequential([td.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(Own(0.01), "mse")
    history = model.fit(td.ones([8, 3]), td.ones([8, 1]), epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="unsupported arguments: rate"):
        Own(rate=1.0)
    with pytest.raises(ValueError, match="needs a name"):
        legacy.Optimizer(0.1)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        Own().get_slot(td.Variable(1.0), "m")
    with pytest.raises(AttributeError, match="no attribute 'beta_9'"):
        _ = Own().beta_9
