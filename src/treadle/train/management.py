"""``td.train.CheckpointManager``: the last few checkpoints of a directory are kept."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treadle.train.checkpoint import Checkpoint, CheckpointOptions
from treadle.train.state_file import (
    get_checkpoint_state,
    latest_checkpoint,
    remove,
    update_checkpoint_state,
)


class CheckpointManager:
    """Saves checkpoints under numbers and deletes the oldest ones.

    What it knows is kept in the directory's file ``checkpoint``: another manager goes on from it.

    Args:
        checkpoint: the `Checkpoint` to save.
        directory: where the files are.
        max_to_keep: how many are kept; None keeps all.
        keep_checkpoint_every_n_hours: one in so many hours is kept for good.
        checkpoint_name: how the files' names begin.
        step_counter: a variable, needed for `checkpoint_interval`.
        checkpoint_interval: `save` does nothing until the counter has grown by so much.
        init_fn: called by `restore_or_initialize` where there is no checkpoint.
        last_checkpoint_step: the counter when a checkpoint was last saved.

    Raises:
        ValueError: `max_to_keep` is not positive, or the counter is missing.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint = checkpoint
        self._directory: str = os.fspath(directory)
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter, self._checkpoint_interval = step_counter, checkpoint_interval
        self._init_fn, self._last_checkpoint_step = init_fn, last_checkpoint_step
        self._latest: str | None = None
        self._times: dict[str, float] = {}  # when the checkpoints were made that may be deleted
        now = time.time()
        self._last_preserved = now - 1.0  # so that one made at once is later
        state = get_checkpoint_state(self._directory)
        if state is not None:
            self._latest = state.model_checkpoint_path
            self._last_preserved = min(state.last_preserved_timestamp, now)
            paths, times = state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps
            for path, made in zip(paths, times, strict=False):
                if min(made, now) > self._last_preserved:
                    self._times[path] = min(made, now)

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        return self._checkpoint_interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint, for `Checkpoint.restore`; None where there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that may be deleted one day, the oldest first."""
        return list(self._times)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:  # fmt: skip
        """Write a checkpoint, and delete those that are too many.

        Args:
            checkpoint_number: in its name; how often was saved when omitted.
            check_interval: False saves before the interval is over, but not twice in a step.

        Returns:
            Its path; None where none was saved.

        Raises: as `Checkpoint.save`; then no checkpoint is deleted.
        """
        self._checkpoint.refuse_tracing("CheckpointManager.save")
        if self._checkpoint_interval is not None:
            step, last = int(np.asarray(self._step_counter)), self._last_checkpoint_step
            if last is not None and (
                step == last or check_interval and step < last + self._checkpoint_interval
            ):
                return None
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        number = int(np.asarray(counter if checkpoint_number is None else checkpoint_number))
        options = CheckpointOptions() if options is None else copy.copy(options)
        options.experimental_write_callbacks = [
            *(options.experimental_write_callbacks or ()), self._written
        ]  # fmt: skip
        try:
            path: str = self._checkpoint.write(f"{self._prefix}-{number}", options)
        except BaseException:
            counter.assign_sub(1)  # it was not saved
            raise
        if self._checkpoint_interval is not None:
            self._last_checkpoint_step = step
        return path

    def _written(self, path: str) -> None:
        """Note a new checkpoint, delete others, and note that: who is interrupted in between finds
        the new one noted and at most one too many."""
        self._times.pop(path, None)
        self._times[path] = time.time()
        self._latest = path
        self._record()
        while self._max_to_keep is not None and len(self._times) > self._max_to_keep:
            oldest, made = next(iter(self._times.items()))
            del self._times[oldest]
            if self._hours and made - self._hours * 3600.0 >= self._last_preserved:
                self._last_preserved = made
            else:
                remove(oldest)
        self._record()

    def _record(self) -> None:
        assert self._latest is not None
        update_checkpoint_state(
            self._directory, self._latest, list(self._times),
            all_model_checkpoint_timestamps=list(self._times.values()),
            last_preserved_timestamp=self._last_preserved,
        )  # fmt: skip

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint; where there is none, call `init_fn`.

        Returns:
            The path of what was restored, or None.
        """
        if self._latest is not None:
            self._checkpoint.restore(self._latest)
            if self._checkpoint_interval is not None:
                self._last_checkpoint_step = int(np.asarray(self._step_counter))
            return self._latest
        if self._init_fn is not None:
            self._init_fn()
        return None

    def sync(self) -> None:
        """Nothing is left to be waited for."""


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The paths of new checkpoints in a directory as they appear.

    Args:
        min_interval_secs: the least time between two of them.
        timeout: the seconds to wait for one; None waits for ever.
        timeout_fn: called when the time is over; True ends the iteration. Without it, it ends.
    """
    path: str | None = None
    while True:
        found = _new_checkpoint(checkpoint_dir, path, timeout)
        if found is None:
            if timeout_fn is None or timeout_fn():
                return
            logging.getLogger("treadle").info("No new checkpoint in %s yet", checkpoint_dir)
            continue
        path = found
        began = time.time()
        yield path
        time.sleep(max(began + min_interval_secs - time.time(), 0.0))


def _new_checkpoint(folder: Any, last: str | None, timeout: float | None) -> str | None:
    """The latest checkpoint as soon as it is another one; None when the time is over."""
    end = None if timeout is None else time.time() + timeout
    pause = 1.0 if timeout is None else min(1.0, timeout / 10)
    while True:
        found = latest_checkpoint(folder)
        if found is not None and found != last:
            return found
        if end is not None and time.time() + pause > end:
            return None
        time.sleep(pause)
