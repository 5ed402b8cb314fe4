"""Models of estimators as saved models: what is fed, what is given, and what writes them when."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import treadle as td
from treadle.compat.v1 import saved_model
from treadle.compat.v1.inputs import placeholder
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.sparse import SparseTensor
from treadle.compat.v1.train.writing import summary_iterator
from treadle.compat.v1.values import element
from treadle.core.origin import at, user_origin
from treadle.names import missing_in
from treadle.saved_model import SERVING

_log = logging.getLogger("treadle")

# -- what is fed ---------------------------------------------------------------------------------


class ServingInputReceiver:
    """What an exported model is fed, and the features that are made of it.

    Args:
        features: a tensor, or a dict of them.
        receiver_tensors: the tensors that are fed: one, or a dict of them.
        receiver_tensors_alternatives: other tensors that may be fed instead, by the names of their
            signatures.
    """

    def __init__(
        self, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> None:
        if features is None or receiver_tensors is None:
            raise ValueError(f"features and receiver_tensors must be defined{at(user_origin())}")
        self.features = _named(features, "feature")
        self.receiver_tensors = _named(receiver_tensors, "input")
        self.receiver_tensors_alternatives = {
            k: _named(v, "input") for k, v in (receiver_tensors_alternatives or {}).items()
        }


class TensorServingInputReceiver(ServingInputReceiver):
    """As `ServingInputReceiver`, for models whose features are one tensor."""

    def __init__(
        self, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> None:
        super().__init__(features, receiver_tensors, receiver_tensors_alternatives)
        self.features = features


def _named(tensors: Any, name: str) -> dict[str, Any]:
    found = dict(tensors) if isinstance(tensors, Mapping) else {name: tensors}
    for key, value in found.items():
        if element(value) is None and not isinstance(value, SparseTensor):
            raise ValueError(f"{name} {key} must be a Tensor.{at(user_origin())}")
    return found


def build_raw_serving_input_receiver_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that gives what is fed for models that are fed their features themselves.

    Args:
        features: tensors or placeholders like those that are fed.
    """
    like = {
        k: (v.dtype, None if v.shape.rank is None else v.shape.as_list()[1:], _label(v))
        for k, v in features.items()
    }

    def receive() -> ServingInputReceiver:
        fed = {
            k: placeholder(dtype, None if rest is None else [default_batch_size, *rest], name)
            for k, (dtype, rest, name) in like.items()
        }
        return ServingInputReceiver(fed, fed)

    return receive


def _label(value: Any) -> str | None:
    tensor = element(value)
    return None if tensor is None else tensor.op.name


def build_parsing_serving_input_receiver_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """A function that gives what is fed for models that are fed messages Example as bytes.

    Args:
        feature_spec: the features that are read: see `td.io.parse_example`.
    """

    def receive() -> ServingInputReceiver:
        fed = placeholder(td.string, [default_batch_size], "input_example_tensor")
        features = graph_function(td.io.parse_example)(fed, dict(feature_spec))
        return ServingInputReceiver(features, {"examples": fed})

    return receive


# -- what is given -------------------------------------------------------------------------------


class ExportOutput:
    """What a signature of an exported model gives."""

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        """The signature for what is fed; ValueError where it cannot be that."""
        raise NotImplementedError


class PredictOutput(ExportOutput):
    """Tensors by their names; one alone is ``output``."""

    def __init__(self, outputs: Any) -> None:
        self.outputs = _named(outputs, "output")

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        return saved_model.predict_signature_def(receiver_tensors, self.outputs)


def _examples(receiver_tensors: Mapping[str, Any], what: str) -> Any:
    """The one tensor of strings that is fed."""
    found = list(receiver_tensors.values())
    if len(found) != 1 or found[0].dtype is not td.string:
        raise ValueError(
            f"{what} signatures can only accept a single tensor input of type tf.string: use "
            "build_parsing_serving_input_receiver_fn"
        )
    return found[0]


class ClassificationOutput(ExportOutput):
    """The scores of classes, and their names, of which one may be left out."""

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is None and classes is None:
            raise ValueError(
                "Cannot create a ClassificationOutput with empty arguments. At least one of "
                f"`scores` and `classes` must be defined.{at(user_origin())}"
            )
        if scores is not None and not scores.dtype.is_floating:
            raise ValueError(
                f"Classification scores must be a float32 Tensor; got {scores}{at(user_origin())}"
            )
        if classes is not None and classes.dtype is not td.string:
            raise ValueError(
                f"Classification classes must be a string Tensor; got {classes}{at(user_origin())}"
            )
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        examples = _examples(receiver_tensors, "Classification")
        return saved_model.classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """Predicted numbers."""

    def __init__(self, value: Any) -> None:
        if not value.dtype.is_floating:
            raise ValueError(
                f"Regression output value must be a float32 Tensor; got {value}{at(user_origin())}"
            )
        self.value = value

    def as_signature_def(self, receiver_tensors: Mapping[str, Any]) -> Any:
        examples = _examples(receiver_tensors, "Regression")
        return saved_model.regression_signature_def(examples, self.value)


def _signatures(receiver: Any, outputs: Mapping[str, ExportOutput]) -> dict[str, Any]:
    """The signatures that what is fed allows.

    Raises:
        ValueError: there is none.
    """
    found, left = {}, {}
    inputs = {None: receiver.receiver_tensors, **receiver.receiver_tensors_alternatives}
    for label, tensors in inputs.items():
        for key, output in outputs.items():
            name = key if label is None else f"{label}:{key}"
            try:
                found[name] = output.as_signature_def(tensors)
            except ValueError as error:
                left[name] = str(error)
    if not found:
        raise ValueError(f"No signature can be exported: {left}{at(user_origin())}")
    for name, why in left.items():
        _log.warning("Signature %r is left out of the export: %s", name, why)
    return found


def export(
    session: Any, receiver: Any, outputs: Mapping[str, ExportOutput], base: str,
    assets_extra: Mapping[str, Any] | None,
) -> bytes:  # fmt: skip
    """Write the graph of a session and its variables into a new folder of `base`, which has its
    name when it is complete."""
    folder = Path(os.fsdecode(base))
    folder.mkdir(parents=True, exist_ok=True)
    number = max([int(time.time()), *(n + 1 for n in _versions(folder))])
    made, there = folder / f"temp-{number}", folder / str(number)
    builder = saved_model.Builder(str(made))
    builder.add_meta_graph_and_variables(session, [SERVING], _signatures(receiver, outputs))
    builder.save()
    for target, source in (assets_extra or {}).items():
        file = made / "assets.extra" / target
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.fspath(source), file)
    made.rename(there)
    return os.fsencode(there)


def _versions(folder: Path) -> list[int]:
    """The numbers of the exports in a folder, the oldest first."""
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(n) for n in names if n.isdigit() and len(n) == 10)


# -- exporting now and then ----------------------------------------------------------------------


class Exporter:
    """Exports models while `train_and_evaluate` runs.

    Attributes:
        name: of the folder in the ``export`` of the model's.
    """

    name: str

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any,
               is_the_final_export: bool) -> Any:  # fmt: skip
        """Export a model, or not.

        Args:
            eval_result: its metrics.
        """
        raise NotImplementedError


class _Exporting(Exporter):
    """An exporter that keeps some of the exports.

    Args:
        exports_to_keep: how many; None: all.
    """

    def __init__(self, name: str, serving_input_receiver_fn: Any, assets_extra: Any,
                 as_text: bool, exports_to_keep: int | None) -> None:  # fmt: skip
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                "`exports_to_keep`, if provided, must be a positive number. Got "
                f"{exports_to_keep}{at(user_origin())}"
            )
        self.name = name
        self._receive, self._assets, self._kept = (
            serving_input_receiver_fn, assets_extra, exports_to_keep
        )  # fmt: skip

    def _write(self, estimator: Any, export_path: Any, checkpoint_path: Any) -> Any:
        found = estimator.export_saved_model(
            export_path, self._receive, self._assets, checkpoint_path=checkpoint_path
        )
        if self._kept is not None:
            folder = Path(os.fsdecode(export_path))
            for number in _versions(folder)[: -self._kept]:
                shutil.rmtree(folder / str(number))
        return found


class LatestExporter(_Exporting):
    """Exports the model at every evaluation."""

    def __init__(self, name: str, serving_input_receiver_fn: Any, assets_extra: Any = None,
                 as_text: bool = False, exports_to_keep: int | None = 5) -> None:  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any,
               is_the_final_export: bool) -> Any:  # fmt: skip
        return self._write(estimator, export_path, checkpoint_path)


class FinalExporter(_Exporting):
    """Exports the model when training has ended."""

    def __init__(self, name: str, serving_input_receiver_fn: Any, assets_extra: Any = None,
                 as_text: bool = False) -> None:  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, None)

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any,
               is_the_final_export: bool) -> Any:  # fmt: skip
        if not is_the_final_export:
            return None
        return self._write(estimator, export_path, checkpoint_path)


def _loss_smaller(best_eval_result: Any, current_eval_result: Any) -> bool:
    """Whether the loss is smaller than the smallest one before."""
    for name, found in (
        ("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)
    ):  # fmt: skip
        if not found or "loss" not in found:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_Exporting):
    """Exports the model where it is better than all before.

    Args:
        event_file_pattern: the files of events in the model's folder that tell how good models of
            an earlier process were; None: no files.
        compare_fn: says of the metrics of the best model, and of another one, whether this one is
            better.
    """

    def __init__(self, name: str = "best_exporter", serving_input_receiver_fn: Any = None,
                 event_file_pattern: str | None = "eval/*.tfevents.*",
                 compare_fn: Callable[..., bool] = _loss_smaller, assets_extra: Any = None,
                 as_text: bool = False, exports_to_keep: int | None = 5) -> None:  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        if compare_fn is None:
            raise ValueError(f"`compare_fn` must not be None.{at(user_origin())}")
        self._is_better, self._pattern = compare_fn, event_file_pattern
        self._folder: str | None = None
        self._best: Any = None
        self._was_written = False

    def export(self, estimator: Any, export_path: Any, checkpoint_path: Any, eval_result: Any,
               is_the_final_export: bool) -> Any:  # fmt: skip
        if self._folder != estimator.model_dir and self._pattern:
            self._folder = estimator.model_dir
            self._best = self._best_of_events(Path(estimator.model_dir))
        is_first = self._best is None or not self._was_written
        if not is_first and not self._is_better(
            best_eval_result=self._best, current_eval_result=eval_result
        ):
            return None
        self._best, self._was_written = eval_result, True
        return self._write(estimator, export_path, checkpoint_path)

    def _best_of_events(self, folder: Path) -> Any:
        best: Any = None
        assert self._pattern is not None
        for file in sorted(folder.glob(self._pattern)):
            for event in summary_iterator(str(file)):
                found = {
                    v.tag: v.simple_value
                    for v in event.summary.value if v.HasField("simple_value")
                }  # fmt: skip
                if found and (best is None or self._is_better(
                    best_eval_result=best, current_eval_result=found
                )):  # fmt: skip
                    best = found
        return best


__getattr__ = missing_in(__name__)
