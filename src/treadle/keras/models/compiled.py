"""What `compile` was given: the losses and metrics of a model's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import treadle as td
from treadle.keras import config, losses, metrics, replicas, tree
from treadle.keras.models.outputs import (
    Term,
    at,
    labels_of,
    metrics_of,
    of_leaves,
    output_names,
    terms,
)
from treadle.modes import generation


class Compiled:
    """The losses and metrics of a model's outputs.

    Args:
        loss: a loss for all outputs; or a structure of them (`outputs.terms`).
        given, weighted: metrics for all outputs; or a structure of them (`outputs.metrics_of`).
            Those of `weighted` take sample weights into account.
        factors: what losses are multiplied by: a number, a list, or a structure like that of the
            losses.
        eager: whether batches are run op by op.
    """

    def __init__(self, loss: Any, given: Any, weighted: Any, factors: Any, eager: bool) -> None:
        self.given_loss, self.given, self.weighted = loss, given, weighted
        self.factors, self.run_eagerly = factors, eager
        self.tracker = metrics.Mean(name="loss")
        self.arguments: dict[str, Any] = {}  # as they were given
        self._terms: list[Term] | None = None
        self._trackers: list[Any] = []  # of the outputs' losses, where there are several
        # The metrics, each with its output and whether it takes weights.
        self._metrics: list[tuple[metrics.Metric, int, bool]] | None = None
        named = isinstance(given, Mapping) or isinstance(weighted, Mapping)
        if not named and not any(map(_waits, [*_flat(given), *_flat(weighted)])):
            self._make_single()

    def _make_single(self) -> None:
        """Make the metrics before the first batch, where no shape has a say in them."""
        listed = [*_listed(self.given), *_listed(self.weighted)]
        if any(isinstance(m, list | tuple) for m in listed):
            return  # a list for each output
        self._ready = []
        used: set[str] = set()
        for of_kind, takes in ((self.given, False), (self.weighted, True)):
            for m in _listed(of_kind):
                made = _named(m, metrics.get(m))
                _set_name(made, "", takes, used)
                self._ready.append((made, takes))

    _ready: list[tuple[metrics.Metric, bool]] | None = None

    _loss: losses.Loss | None = None

    @property
    def loss(self) -> losses.Loss:
        """The loss of the only output, made where a batch first needs it.

        Raises:
            ValueError: there is none of that name.
        """
        if self._loss is None:
            self._loss = losses.as_loss(self.given_loss)
        return self._loss

    @property
    def _waiting(self) -> list[metrics.Metric]:
        """What stands for metrics that the first batch makes, for steps of programs that update
        all metrics."""
        there = any(_flat(given) for given in (self.given, self.weighted))
        return [_Waiting(self)] if there else []

    @property
    def metrics(self) -> list[metrics.Metric]:
        """The tracker of the loss, those of the outputs' losses, and the metrics."""
        if self._metrics is not None:
            return [self.tracker, *self._trackers, *(m for m, _, _ in self._metrics)]
        if self._ready is not None:
            return [self.tracker, *self._trackers, *(m for m, _ in self._ready)]
        return [self.tracker, *self._trackers, *self._waiting]

    # -- the loss --------------------------------------------------------------------------------

    def total(
        self, y: Any, pred: Any, weight: Any, penalties: Sequence[Any], names: Sequence[str]
    ) -> td.Tensor:
        """The losses of all outputs times their factors, and the penalties."""
        parts = [replicas.scaled(td.cast(p, config.floatx())) for p in penalties]
        if self.given_loss is not None:
            parts = [*self._of_outputs(y, pred, weight, names), *parts]
        return td.add_n(parts)

    def _of_outputs(self, y: Any, pred: Any, weight: Any, names: Sequence[str]) -> list[td.Tensor]:
        if not tree.is_nested(self.given_loss) and not tree.is_nested(pred):
            factor = _one_factor(self.factors)
            labels = _fitted(_labels(_only(y)), pred)
            value = td.cast(self.loss(labels, pred, weight), config.floatx())
            return [value if factor is None else value * factor]
        if self._terms is None:
            self._terms = terms(self.given_loss, self.factors, pred, names)
            if len(self._terms) > 1:
                self._trackers = [metrics.Mean(name=f"{term.name}_loss") for term in self._terms]
        trues = labels_of(y, pred, names, self.given_loss)
        weights = of_leaves(weight, pred, names, True)
        weights = tree.pack_sequence_as(pred, weights) if tree.is_nested(pred) else weights[0]
        found, trackers = [], iter(self._trackers)
        for term in self._terms:
            own = at(pred, term.path)
            weighing = weight if not tree.is_nested(weight) else at(weights, term.path)
            loss = term.loss(_fitted(_labels(at(trues, term.path)), own), own, weighing)
            value = td.cast(loss, config.floatx())
            if self._trackers:
                whole = replicas.unscaled(value)
                next(trackers).update_state(whole, sample_weight=_count(tree.flatten(own)[0]))
            found.append(value if term.factor is None else value * term.factor)
        return found

    # -- metrics ---------------------------------------------------------------------------------

    def update(self, y: Any, pred: Any, weight: Any, names: Sequence[str]) -> None:
        """Add a batch to the metrics; those that wait for the shapes are made by the first one."""
        if self._metrics is None:
            self._make(y, pred, names)
            self._ready = None
        preds, trues, weights = self._parts(y, pred, weight, names)
        for metric, n, takes_weight in self._metrics or ():
            if takes_weight and weights[n] is not None:
                metric.update_state(trues[n], preds[n], weights[n])
            else:
                metric.update_state(trues[n], preds[n])

    def _parts(self, y: Any, pred: Any, weight: Any, names: Sequence[str]) -> tuple[Any, Any, Any]:
        """The predictions, labels and weights of each output."""
        if not tree.is_nested(pred):
            return [pred], [_only(y)], [weight]
        trues = labels_of(y, pred, names, self.given_loss)
        return tree.flatten(pred), _aligned(trues, pred), of_leaves(weight, pred, names, True)

    def _make(self, y: Any, pred: Any, names: Sequence[str]) -> None:
        if self._ready is not None and not tree.is_nested(pred):
            self._metrics = [(metric, 0, takes) for metric, takes in self._ready]
            return
        preds, trues, _ = self._parts(y, pred, None, names)
        self._metrics = []
        used: set[str] = set()
        kinds = {"metrics": (self.given, False), "weighted_metrics": (self.weighted, True)}
        for argument, (given, takes) in kinds.items():
            for n, of_output in enumerate(metrics_of(given, pred, names, argument)):
                for m in of_output:
                    if _waits(m):
                        made = metrics.by_shape(m, td.convert_to_tensor(trues[n]), preds[n])
                    else:
                        made = _named(m, metrics.get(m))
                    _set_name(made, names[n] if len(preds) > 1 else "", takes, used)
                    self._metrics.append((made, n, takes))


class _Waiting(metrics.Metric):
    """The metrics of a model until the first batch tells their shapes."""

    def __init__(self, setup: Compiled) -> None:
        super().__init__("compile_metrics")
        self._compile_setup = setup

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Make the metrics, and add the first batch."""
        names = output_names(None, y_pred)
        self._compile_setup.update(y_true, y_pred, sample_weight, names)

    def result(self) -> dict[str, Any]:
        """The results of the metrics that it stands for; none before the first batch."""
        if self._compile_setup._metrics is None:
            return {}
        return {metric.name: metric.result() for metric, _, _ in self._compile_setup._metrics}


class CompiledLoss:
    """The losses of outputs, whose total `metrics` follow: Keras 2's ``LossesContainer``, of which
    ``model.compiled_loss`` is one.

    Args:
        losses, loss_weights: as `Model.compile` takes them.
        output_names: the names of the outputs, where losses or weights are dicts and the outputs
            are a list.
        total_loss_mean: what follows the total, a `keras.metrics.Mean`.
    """

    def __init__(
        self, losses: Any, loss_weights: Any = None, output_names: Sequence[str] | None = None,
        total_loss_mean: Any = None,
    ) -> None:  # fmt: skip
        self._compile_setup = Compiled(losses, None, None, loss_weights, False)
        self._names, self._model = output_names, None
        if total_loss_mean is not None:
            self._compile_setup.tracker = total_loss_mean

    @classmethod
    def of(cls, setup: Compiled, model: Any) -> CompiledLoss:
        """That of a model, whose `metrics` have the tracker, too."""
        made = cls.__new__(cls)
        made._compile_setup, made._names, made._model = setup, None, model
        return made

    @property
    def _user_losses(self) -> Any:
        return self._compile_setup.given_loss

    @property
    def _user_loss_weights(self) -> Any:
        return self._compile_setup.factors

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> td.Tensor:  # fmt: skip
        setup, names = self._compile_setup, self._names
        if not names or isinstance(y_pred, Mapping):  # whose keys are the names
            names = output_names(self._model, y_pred)
        total = setup.total(y_true, y_pred, sample_weight, regularization_losses or (), names)
        first = td.nest.flatten(y_pred)[0]
        setup.tracker.update_state(replicas.unscaled(total), sample_weight=_count(first))
        return total

    @property
    def metrics(self) -> list[metrics.Metric]:
        """What follows the loss."""
        return [self._compile_setup.tracker]

    def get_config(self) -> dict[str, Any]:
        """The losses as plain data, one for each output."""
        given = self._compile_setup.given_loss
        each = tree.flatten(given) if tree.is_nested(given) else [given]
        listed = [losses.serialize(losses.as_loss(loss)) for loss in each]
        return {"losses": listed, "total_loss_mean": metrics.serialize(self._compile_setup.tracker)}


class CompiledMetrics:
    """``model.compiled_metrics`` of Keras 2: the metrics that `compile` was given."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch."""
        names = output_names(self.model, y_pred)
        self.model._compile_setup().update(y_true, y_pred, sample_weight, names)

    @property
    def metrics(self) -> list[metrics.Metric]:
        """The metrics."""
        return self.model._compile_setup().metrics[1:]  # type: ignore[no-any-return]


def _fitted(y: Any, pred: Any) -> Any:
    """What losses are given for labels beside predictions. In Keras 2 labels get an axis for each
    of the predictions', and their dtype, where both are floats or both ints."""
    if not generation.is_2 or not isinstance(y, td.Tensor) or not isinstance(pred, td.Tensor):
        return y
    if y.shape.rank == 1 and pred.shape.rank == 2:
        y = td.expand_dims(y, -1)
    kinds = ("is_floating", "is_integer")
    same = any(getattr(y.dtype, kind) and getattr(pred.dtype, kind) for kind in kinds)
    return td.cast(y, pred.dtype) if same else y


def _listed(given: Any) -> list[Any]:
    """Metrics as a list; none for None."""
    if given is None or isinstance(given, Mapping):
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _aligned(structure: Any, pred: Any) -> list[Any]:
    """The parts of a structure for the leaves of the outputs."""
    return [at(structure, path) for path, _ in tree.flatten_with_path(pred)]


def _set_name(metric: metrics.Metric, output: str, weighted: bool, used: set[str]) -> None:
    """Give a metric the name that its result is to have: after that of its output, where there are
    several; weighted ones say so where there is another one of their name."""
    before = f"{output}_" if output else ""
    name = f"{before}{metric.name}"
    if name in used and weighted:
        name = f"{before}weighted_{metric.name}"
    number, base = 0, name
    while name in used:
        number += 1
        name = f"{base}_{number}"
    used.add(name)
    if name != metric.name:
        metric.name = name


def _only(y: Any) -> Any:
    """The labels of a model of one output, which may be in a list or dict of one."""
    if isinstance(y, list | tuple | Mapping) and len(y) == 1:
        return _flat(y)[0] if isinstance(y, Mapping) else y[0]
    return y


def _labels(y: Any) -> Any:
    """Labels, which a loss cannot do without."""
    if y is None:
        raise ValueError(
            "The loss that compile() was given needs labels, and there are none: give y, or "
            "batches of (x, y)"
        )
    return y


def _flat(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return list(value.values())
    return list(td.nest.flatten(value))


def _count(pred: Any) -> td.Tensor:
    """The number of examples, as a weight."""
    return td.cast(td.shape(pred)[0], td.float32)


def _waits(given: Any) -> bool:
    """Whether the shapes of labels and predictions say which metric is meant."""
    return isinstance(given, str) and given in metrics.BY_SHAPE


def _named(given: Any, metric: metrics.Metric) -> metrics.Metric:
    """A metric that `compile` was given by name has that name, as in ``val_mae``."""
    if isinstance(given, str):
        metric.name = given
    return metric


def _one_factor(given: Any) -> float | None:
    """The weight of the only loss."""
    values = [given] if isinstance(given, int | float) or given is None else list(given)
    if len(values) != 1 or isinstance(given, Mapping):
        raise ValueError(
            f"`loss_weights` must match the number of losses, got 1 loss and {given!r}"
        )
    return None if values[0] is None else float(values[0])
