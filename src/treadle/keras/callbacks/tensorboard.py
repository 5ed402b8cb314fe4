"""Training shown by TensorBoard."""

from __future__ import annotations

import importlib
import os
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import treadle as td
from treadle.keras.callbacks.base import Callback, Logs
from treadle.keras.callbacks.training import rate_of, rates_of
from treadle.keras.variables import path_of
from treadle.summary.messages import message_module, metadata_for


class TensorBoard(Callback):
    """Writes what TensorBoard shows: ``tensorboard --logdir=logs``.

    The package tensorboard must be installed: ``pip install 'treadle[summary]'``. Files are in the
    folders ``train`` and ``validation`` of `log_dir`: the curves ``epoch_loss`` and others after
    each epoch, ``evaluation_loss_vs_iterations`` and others after each evaluation.

    Args:
        log_dir: the folder.
        histogram_freq: every how many epochs the weights of layers are written as histograms; 0:
            never.
        write_graph: write the graph of the training step, and the layers of functional and
            sequential models.
        write_images: write weights as images as well, with the histograms.
        write_steps_per_second: write how fast training is.
        update_freq: "epoch", or every how many batches the curves ``batch_loss`` and others, and
            summaries of the program, are written; "batch" is 1.
        profile_batch: the number of a batch, counted from 1, or of the first and the last one, of
            which a profile is made; 0: of none.
        embeddings_freq: every how many epochs the weights are saved for the page Projector; 0:
            never.
        embeddings_metadata: the file that tells what the rows of all embeddings are, or a dict of
            files by the names of layers.

    Raises:
        ValueError: `profile_batch` is neither a number nor two in order.
    """

    takes_tensors = True

    def __init__(
        self, log_dir: Any = "logs", histogram_freq: int = 0, write_graph: bool = True,
        write_images: bool = False, write_steps_per_second: bool = False,
        update_freq: Any = "epoch", profile_batch: Any = 0, embeddings_freq: int = 0,
        embeddings_metadata: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq, self.embeddings_freq = histogram_freq, embeddings_freq
        self.write_graph, self.write_images = write_graph, write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self.embeddings_metadata = embeddings_metadata
        self._first, self._last = _batches(profile_batch)
        self._profiles = False
        self._batch_trace: Any = None
        self._train_batch = self._test_batch = 0
        self._writers: dict[str, Any] = {}
        self._blocks: list[tuple[Any, Any]] = []  # of default writers and their conditions

    def set_model(self, model: Any) -> None:
        self.model = model
        self._writers = {}
        self._graph_is_due = self.write_graph
        # Keras's names of weights begin with that of the model in which they are built.
        if self.write_graph and (_is_functional(model) or type(model) is td.keras.Sequential):
            self._write_layers()
        if self.embeddings_freq:
            self._write_projector()

    def _writer(self, folder: str) -> Any:
        """The writer of a folder, which is made when something is written there."""
        if folder not in self._writers:
            path = os.path.join(self.log_dir, folder)
            self._writers[folder] = td.summary.create_file_writer(path)
        return self._writers[folder]

    # -- what is written of a model ----------------------------------------------------------------

    def _write_layers(self) -> None:
        """The layers of the model, which TensorBoard draws as its conceptual graph."""
        try:
            text = self.model.to_json()
        except Exception as error:
            warnings.warn(
                f"Model failed to serialize as JSON. Ignoring... {error}", stacklevel=2
            )
            return
        metadata = metadata_for("graph_keras_model", b"1")
        with self._writer("train").as_default():
            td.summary.write("keras", text, step=0, metadata=metadata)

    def _write_step(self) -> None:
        """The graph of the training step."""
        step = self.model.make_train_function()
        traces = getattr(step, "concrete_functions", [])
        if traces:
            with self._writer("train").as_default(), td.summary.record_if(True):
                td.summary.graph(traces[0].graph)

    def _write_projector(self) -> None:
        """Say which weights are embeddings, and what their rows are."""
        projector = message_module("plugins.projector")
        text_format = importlib.import_module("google.protobuf.text_format")
        config, names = projector.ProjectorConfig(), self.embeddings_metadata
        unknown = {} if isinstance(names, str) else dict(names or {})
        for layer in self.model.layers:
            if isinstance(layer, td.keras.layers.Embedding):
                entry = config.embeddings.add()
                entry.tensor_name = "layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
                path = names if isinstance(names, str) else unknown.pop(layer.name, None)
                if path is not None:
                    entry.metadata_path = path
        if unknown:
            raise ValueError(
                "Unrecognized `Embedding` layer names passed to `keras.callbacks.TensorBoard` "
                f"`embeddings_metadata` argument: {unknown.keys()}"
            )
        td.io.gfile.makedirs(self.log_dir)
        with td.io.gfile.GFile(os.path.join(self.log_dir, "projector_config.pbtxt"), "w") as file:
            file.write(text_format.MessageToString(config))

    def _write_weights(self, epoch: int) -> None:
        with self._writer("train").as_default():
            for layer in self.model.layers:
                for weight in layer.weights:
                    name = path_of(weight).replace(":", "_")
                    td.summary.histogram(f"{name}/histogram", weight, step=epoch)
                    if self.write_images:
                        _write_image(f"{name}/image", np.squeeze(weight.numpy()), epoch)

    # -- default writers of batches ----------------------------------------------------------------

    def _push_writer(self, folder: str, step: int) -> None:
        """Let summaries of batches, also of the program, be written every so many batches."""
        if self.update_freq == "epoch":
            return
        blocks = (
            self._writer(folder).as_default(step),
            td.summary.record_if(lambda: step % self.update_freq == 0),
        )
        self._blocks.append(blocks)
        for block in blocks:
            block.__enter__()

    def _pop_writer(self) -> None:
        if self.update_freq != "epoch":
            for block in reversed(self._blocks.pop()):
                block.__exit__(None, None, None)

    # -- hooks -------------------------------------------------------------------------------------

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._train_batch = 0
        self._push_writer("train", 0)

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._pop_writer()
        if self._profiles:
            self._stop_profile()
        for writer in self._writers.values():
            writer.close()

    def on_test_begin(self, logs: Logs | None = None) -> None:
        self._push_writer("validation", self._test_batch)

    def on_test_end(self, logs: Logs | None = None) -> None:
        if self.model.optimizer is not None:
            with self._writer("validation").as_default():
                for name, value in (logs or {}).items():
                    td.summary.scalar(
                        f"evaluation_{name}_vs_iterations", value,
                        step=self.model.optimizer.iterations,
                    )  # fmt: skip
        self._pop_writer()

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._train_batch += 1
        if self.update_freq != "epoch":
            self._pop_writer()
            self._push_writer("train", self._train_batch)
        self._batch_start = time.perf_counter()
        if self._first and self._train_batch == self._first:
            self._start_profile()
        if self._profiles:
            trace = td.profiler.experimental.Trace
            self._batch_trace = trace("Profiled batch", step_num=batch)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        if self._graph_is_due:
            self._write_step()
            self._graph_is_due = False
        if td.summary.should_record_summaries():
            if self.write_steps_per_second:
                rate = 1.0 / (time.perf_counter() - self._batch_start)
                td.summary.scalar("batch_steps_per_second", rate, step=self._train_batch)
            for name, value in logs.items() if isinstance(logs, Mapping) else ():
                td.summary.scalar(f"batch_{name}", value, step=self._train_batch)
        if self._profiles:
            self._batch_trace.__exit__(None, None, None)
            if self._train_batch >= self._last:
                self._stop_profile()

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        self._test_batch += 1
        if self.update_freq != "epoch":
            self._pop_writer()
            self._push_writer("validation", self._test_batch)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        if self.write_steps_per_second:
            self._epoch_start = time.perf_counter(), int(self.model.optimizer.iterations)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self._write_epoch(epoch, logs or {})
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._write_weights(epoch)
        if self.embeddings_freq and epoch % self.embeddings_freq == 0:
            name = f"keras_embedding.ckpt-{epoch}.weights.h5"
            self.model.save_weights(os.path.join(self.log_dir, "train", name))

    def _write_epoch(self, epoch: int, logs: Logs) -> None:
        if not logs:
            return
        training = {k: v for k, v in logs.items() if not k.startswith("val_")}
        training |= self._learning_rate()
        if self.write_steps_per_second:
            start, iterations = self._epoch_start
            steps = int(self.model.optimizer.iterations) - iterations
            training["steps_per_second"] = steps / (time.perf_counter() - start)
        validation = {k.removeprefix("val_"): v for k, v in logs.items() if k.startswith("val_")}
        for folder, values in (("train", training), ("validation", validation)):
            if values:
                with self._writer(folder).as_default():
                    for name, value in values.items():
                        td.summary.scalar(f"epoch_{name}", value, step=epoch)

    def _learning_rate(self) -> dict[str, Any]:
        return {name: rate_of(each) for name, each in rates_of(self.model).items()}

    # -- profiles ----------------------------------------------------------------------------------

    def _start_profile(self) -> None:
        td.summary.trace_on(graph=True, profiler=False)
        td.profiler.experimental.start(os.path.join(self.log_dir, "train"))
        self._profiles = True

    def _stop_profile(self) -> None:
        with self._writer("train").as_default():
            td.summary.trace_export(name=f"batch_{self._last}", step=self._last)
        td.profiler.experimental.stop()
        self._profiles = False


def _is_functional(model: Any) -> bool:
    """Whether a model is nothing but calls of layers."""
    return bool(model._is_functional) and not isinstance(model, td.keras.Sequential)


def _batches(given: Any) -> tuple[int, int]:
    """The numbers of the first and the last batch of a profile; 0 for none."""
    numbers = [int(n) for n in given.split(",")] if isinstance(given, str) else given
    pair = [numbers] * 2 if isinstance(numbers, int) else list(numbers)
    if len(pair) == 1:
        pair *= 2
    if len(pair) != 2 or pair[0] < 0 or pair[1] < pair[0]:
        raise ValueError(
            "profile_batch must be a non-negative integer or 2-tuple of positive integers. A pair "
            f"of positive integers signifies a range of batches to profile. Found: {given}"
        )
    return pair[0], pair[1]


def _write_image(name: str, weight: Any, step: int) -> None:
    """A weight as images: a vector is a row of pixels; what has three axes an image each."""
    if weight.ndim == 1:
        images = weight[None, :, None, None]
    elif weight.ndim == 2:
        images = (weight.T if weight.shape[0] > weight.shape[1] else weight)[None, :, :, None]
    elif weight.ndim == 3:
        images = weight.transpose(2, 0, 1)[..., None]
    else:
        images = weight
    if images.ndim == 4 and images.shape[-1] in (1, 3, 4):
        td.summary.image(name, images, step=step)
