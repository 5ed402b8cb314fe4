"""``td.compat.v1.contrib.learn``: training and evaluating an `Estimator` together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.compat.v1 import feature_column
from treadle.compat.v1.estimator import DNNClassifier as DNNClassifier
from treadle.compat.v1.estimator import DNNRegressor as DNNRegressor
from treadle.compat.v1.estimator import Estimator as Estimator
from treadle.compat.v1.estimator import LinearClassifier as LinearClassifier
from treadle.compat.v1.estimator import LinearRegressor as LinearRegressor
from treadle.compat.v1.estimator import ModeKeys as ModeKeys
from treadle.compat.v1.estimator import RunConfig as RunConfig
from treadle.names import missing_in


class Experiment:
    """An estimator with the functions that give its inputs.

    Args:
        eval_metrics: accepted: the model's are evaluated.
        train_steps, eval_steps: how many steps there are; None: until the inputs end.
        min_eval_frequency: the steps between evaluations while training; None: at the end only.
    """

    def __init__(self, estimator: Any, train_input_fn: Callable[..., Any],
                 eval_input_fn: Callable[..., Any], eval_metrics: Any = None,
                 train_steps: int | None = None, eval_steps: int | None = 100,
                 train_monitors: Any = None, eval_hooks: Any = None,
                 min_eval_frequency: int | None = None, **more: Any) -> None:  # fmt: skip
        self.estimator = estimator
        self._train_input, self._eval_input = train_input_fn, eval_input_fn
        self._train_steps, self._eval_steps = train_steps, eval_steps
        self._hooks, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._between = min_eval_frequency

    def train(self, delay_secs: Any = None) -> Any:
        """Train."""
        return self.estimator.train(self._train_input, self._hooks, max_steps=self._train_steps)

    def evaluate(self, delay_secs: Any = None) -> Any:
        """The metrics."""
        return self.estimator.evaluate(self._eval_input, self._eval_steps, self._eval_hooks)

    def train_and_evaluate(self) -> Any:
        """Train, evaluating now and then, and give the last metrics."""
        if not self._between or self._train_steps is None:
            self.train()
            return self.evaluate()
        found, step = None, self.estimator._step()
        while step < self._train_steps:
            upto = min(step + self._between, self._train_steps)
            self.estimator.train(self._train_input, self._hooks, max_steps=upto)
            found = self.evaluate()
            if self.estimator._step() == step:
                break
            step = self.estimator._step()
        return self.evaluate() if found is None else found

    continuous_train_and_eval = local_run = train_and_evaluate

    def test(self) -> Any:
        """One step and its metrics."""
        self.estimator.train(self._train_input, self._hooks, steps=1)
        return self.estimator.evaluate(self._eval_input, 1)


class learn_runner:
    """Runs experiments."""

    @staticmethod
    def run(experiment_fn: Callable[..., Any], output_dir: Any = None, schedule: str | None = None,
            run_config: Any = None, hparams: Any = None) -> Any:  # fmt: skip
        """Make an experiment and call its method `schedule` (``train_and_evaluate`` where omitted).

        Raises:
            ValueError: it has no such method.
        """
        if run_config is None:
            made = experiment_fn(output_dir)
        else:
            made = experiment_fn(run_config, hparams)
        call = getattr(made, schedule or "train_and_evaluate", None)
        if call is None or (schedule or "x").startswith("_"):
            raise ValueError(f"Schedule references non-existent task {schedule}")
        return call()


def infer_real_valued_columns_from_input(x: Any) -> Any:
    """A column of numbers for an array of features."""
    return [feature_column.numeric_column("", shape=(x.shape[1],))]

__getattr__ = missing_in(__name__)
