"""What `compile` was given: the losses and metrics of a model's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import treadle as td
from treadle.keras import config, losses, metrics, replicas


class Compiled:
    """The losses and metrics of a model, one of each for every output.

    Args:
        loss: a loss for all outputs; or a list, or a dict by the outputs' names.
        given, weighted: metrics for all outputs; or a list of lists, or a dict by names. Those of
            `weighted` take sample weights into account.
        factors: what losses are multiplied by: a number, a list, or a dict by names.
        eager: whether batches are run op by op.
    """

    def __init__(self, loss: Any, given: Any, weighted: Any, factors: Any, eager: bool) -> None:
        self.given_loss, self.given, self.weighted = loss, given, weighted
        self.factors, self.run_eagerly = factors, eager
        self.tracker = metrics.Mean(name="loss")
        self.arguments: dict[str, Any] = {}  # as they were given
        self._losses: list[losses.Loss | None] | None = None  # of the outputs
        self._factors: list[float | None] = []
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
        self._ready = [
            (_named(m, metrics.get(m)), takes)
            for listed, takes in ((self.given, False), (self.weighted, True))
            for m in _listed(listed)
        ]

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
        if not isinstance(self.given_loss, Mapping | list | tuple) and _is_one(pred):
            factor = _one_factor(self.factors)
            value = td.cast(self.loss(_labels(_only(y)), pred, weight), config.floatx())
            return [value if factor is None else value * factor]
        preds = _flat(pred)
        trues, weights = _matched(y, names, len(preds)), _matched(weight, names, len(preds), True)
        if self._losses is None:
            chosen = _matched(self.given_loss, names, len(preds), True)
            self._losses = [None if c is None else losses.as_loss(c) for c in chosen]
            self._factors = _matched(self.factors, names, len(preds))
            if sum(loss is not None for loss in self._losses) > 1:
                self._trackers = [
                    None if loss is None else metrics.Mean(name=f"{name}_loss")
                    for name, loss in zip(names, self._losses, strict=True)
                ]
                self._trackers = [t for t in self._trackers if t is not None]
        found, trackers = [], iter(self._trackers)
        for n, loss in enumerate(self._losses):
            if loss is None:
                continue
            value = td.cast(loss(_labels(trues[n]), preds[n], weights[n]), config.floatx())
            if self._trackers:
                whole = replicas.unscaled(value)
                next(trackers).update_state(whole, sample_weight=_count(preds[n]))
            factor = self._factors[n]
            found.append(value if factor is None else value * factor)
        return found

    # -- metrics ---------------------------------------------------------------------------------

    def update(self, y: Any, pred: Any, weight: Any, names: Sequence[str]) -> None:
        """Add a batch to the metrics; those that wait for the shapes are made by the first one."""
        if self._metrics is None:
            self._make(y, pred, names)
            self._ready = None
        preds = _flat(pred)
        one = _is_one(pred)
        trues = [_only(y)] if one else _matched(y, names, len(preds))
        weights = [weight] if one else _matched(weight, names, len(preds), True)
        for metric, n, takes_weight in self._metrics or ():
            if takes_weight and weights[n] is not None:
                metric.update_state(trues[n], preds[n], weights[n])
            else:
                metric.update_state(trues[n], preds[n])

    def _make(self, y: Any, pred: Any, names: Sequence[str]) -> None:
        if self._ready is not None and _is_one(pred):
            self._metrics = [(metric, 0, takes) for metric, takes in self._ready]
            return
        preds = _flat(pred)
        trues = [_only(y)] if _is_one(pred) else _matched(y, names, len(preds))
        self._metrics = []
        for listed, takes in ((self.given, False), (self.weighted, True)):
            for n, of_output in enumerate(_metrics_of(listed, names, len(preds))):
                for m in of_output:
                    if _waits(m):
                        made = metrics.by_shape(m, td.convert_to_tensor(trues[n]), preds[n])
                    else:
                        made = _named(m, metrics.get(m))
                    if len(preds) > 1:
                        made.name = f"{names[n]}_{made.name}"
                    self._metrics.append((made, n, takes))


class _Waiting(metrics.Metric):
    """The metrics of a model until the first batch tells their shapes."""

    def __init__(self, setup: Compiled) -> None:
        super().__init__("compile_metrics")
        self._setup = setup

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Make the metrics, and add the first batch."""
        names = output_names(None, y_pred)
        self._setup.update(y_true, y_pred, sample_weight, names)

    def result(self) -> dict[str, Any]:
        """The results of the metrics that it stands for; none before the first batch."""
        if self._setup._metrics is None:
            return {}
        return {metric.name: metric.result() for metric, _, _ in self._setup._metrics}


class CompiledLoss:
    """``model.compiled_loss(y, y_pred)`` of Keras 2: the loss, which `metrics` follow."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> td.Tensor:  # fmt: skip
        setup, names = self.model._setup(), output_names(self.model, y_pred)
        total = setup.total(y_true, y_pred, sample_weight, regularization_losses or (), names)
        first = td.nest.flatten(y_pred)[0]
        setup.tracker.update_state(replicas.unscaled(total), sample_weight=_count(first))
        return total  # type: ignore[no-any-return]

    @property
    def metrics(self) -> list[metrics.Metric]:
        """What follows the loss."""
        return [self.model._setup().tracker]


class CompiledMetrics:
    """``model.compiled_metrics`` of Keras 2: the metrics that `compile` was given."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch."""
        names = output_names(self.model, y_pred)
        self.model._setup().update(y_true, y_pred, sample_weight, names)

    @property
    def metrics(self) -> list[metrics.Metric]:
        """The metrics."""
        return self.model._setup().metrics[1:]  # type: ignore[no-any-return]


def _listed(given: Any) -> list[Any]:
    """Metrics as a list; none for None."""
    if given is None or isinstance(given, Mapping):
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def _metrics_of(given: Any, names: Sequence[str], count: int) -> list[list[Any]]:
    """The metrics of each output."""
    if isinstance(given, Mapping):
        _check_names(given, names)
        return [_listed(given.get(name)) for name in names]
    listed = _listed(given)
    if count == 1 and not any(isinstance(m, list | tuple) for m in listed):
        return [listed]
    if listed and len(listed) != count:
        raise ValueError(
            f"compile: {len(listed)} entries of metrics for {count} outputs: a list has one for "
            "each output, a dict those of some"
        )
    return [_listed(m) for m in listed] or [[] for _ in names]


def _matched(given: Any, names: Sequence[str], count: int, shared: bool = False) -> list[Any]:
    """What each output is given, from a list, a dict by names, or (`shared`) one for all."""
    if given is None:
        return [None] * count
    if isinstance(given, Mapping):
        _check_names(given, names)
        return [given.get(name) for name in names]
    if isinstance(given, list | tuple):
        if len(given) != count:
            raise ValueError(
                f"{len(given)} parts for the {count} outputs of the model: {', '.join(names)}"
            )
        return list(given)
    if count == 1 or shared:
        return [given] * count
    raise ValueError(
        f"The model has {count} outputs ({', '.join(names)}): labels, losses and factors are lists "
        f"or dicts, not {type(given).__name__}"
    )


def _check_names(given: Mapping[str, Any], names: Sequence[str]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"No output is called {unknown}: the outputs are {list(names)}")


def output_names(model: Any, pred: Any) -> list[str]:
    """The names of a model's outputs: keys of a dict, names of the layers that give them."""
    if isinstance(pred, Mapping):
        return list(pred)
    count = len(_flat(pred))
    network = getattr(model, "_network", None)
    if network is not None and len(network.targets) == count:
        found = [str(t.node.layer.name) for t in network.targets]
        if len(set(found)) == count:
            return found
    return [f"output_{n + 1}" for n in range(count)]


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


def _is_one(pred: Any) -> bool:
    return not isinstance(pred, list | tuple | Mapping)


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
