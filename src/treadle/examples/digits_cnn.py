"""A small convolutional network and its training step, eager or as a graph."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import treadle as td


@dataclass
class Trainer:
    """A model with its optimizer; `decorate` makes its step eager or a graph."""

    name: str
    decorate: Callable[[Any], Any]
    times: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        td.random.set_seed(1)
        self.model = make_model()
        self.model(td.zeros((1, 8, 8, 1)))  # creates the variables
        self.optimizer = td.keras.optimizers.Adam(2e-3)
        self.loss = td.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.step = self.decorate(self._step)
        self.predict = self.decorate(lambda x: td.argmax(self.model(x), axis=-1))

    def _step(self, x: Any, y: Any) -> Any:
        with td.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True))
        variables = self.model.trainable_variables
        gradients = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    def epoch(self, batches: list[tuple[Any, Any]], seed: int) -> float:
        """Train on every batch; returns the mean loss. The seed decides what is dropped out."""
        td.random.set_seed(seed)
        for x, y in batches:
            start = time.perf_counter()
            loss = self.step(x, y)
            self.times.append(time.perf_counter() - start)
            self.losses.append(float(loss))
        return statistics.fmean(self.losses[-len(batches) :])

    def accuracy(self, images: Any, labels: np.ndarray[Any, Any]) -> float:
        return float(np.mean(np.asarray(self.predict(images)) == labels))


def make_model() -> Any:
    layers = td.keras.layers
    return td.keras.Sequential(
        [
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )


def as_images(pixels: np.ndarray[Any, Any]) -> Any:
    return td.constant((pixels[..., np.newaxis] / 16).astype(np.float32))
