"""GradientTape: records operations so that gradients can be taken of what they computed."""

from __future__ import annotations

import enum
import types
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from treadle.autodiff.backward import Entry, backpropagate
from treadle.autodiff.values import (
    Gradient,
    is_differentiable,
    key,
    leaves,
    mismatch,
    ones_for,
    subject,
    zeros_for,
)
from treadle.core import nest
from treadle.core.composite_spec import of_elements, with_elements
from treadle.core.context import add_tape, context, set_tapes
from treadle.core.interrupts import puts_modes_back
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.core.trials import current_trial, refuse
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.indexed_slices import values_of
from treadle.ops.indexing.gather import dense
from treadle.ops.state import Variable


class UnconnectedGradients(enum.Enum):
    """The answer of `GradientTape.gradient` for a source that no target depends on."""

    NONE = "none"
    ZERO = "zero"


class _Stopped:
    """A tape does not record inside the block."""

    def __init__(self, tape: GradientTape) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._tape._stop()

    def __exit__(self, *error: object) -> None:
        self._tape._start()


class _Resumed:
    """A tape whose ``with`` block has ended records inside this block."""

    def __init__(self, tape: GradientTape) -> None:
        self._tape = tape

    def __enter__(self) -> None:
        self._tape._block = None
        self._tape._start()

    def __exit__(self, *error: object) -> None:
        self._tape._stop()


def _leave(tape: GradientTape, *error: object) -> None:
    if tape._recording:
        tape._stop()


class _Exit:
    """`__exit__`, made anew for each ``with`` statement, which holds it until its block has ended.

    Where an interrupt comes at its first instruction nothing tells the tape, but that it is gone.
    """

    def __get__(self, tape: GradientTape | None, owner: type) -> Any:
        if tape is None:
            return _leave
        method = types.MethodType(_leave, tape)
        tape._exit = weakref.ref(method)
        return method


class GradientTape:
    """Records the operations inside its ``with`` block for differentiation.

    Trainable variables are watched when they are read; tensors are watched with `watch`.

    Args:
        persistent: allow more than one call of `gradient` or `jacobian`.
        watch_accessed_variables: False leaves it to `watch` what is recorded.
    """

    # What `compat.v1` puts here: it takes the gradients of tensors of graphs, of which a tape
    # records nothing.
    of_graphs: ClassVar[Any] = None

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._recording = False
        self._exit: weakref.ref[Any] | None = None
        self._block: weakref.ref[Any] | None = None  # the exit of the statement it records in
        self._used = False
        self._variables: dict[int, Variable] = {}
        self._trial = current_trial()
        self._forget()

    def _is_asked(self) -> None:
        """Refuse a trial that began after the tape, which sees nothing of it."""
        if current_trial() is not self._trial:
            refuse("it uses a gradient tape of outside")

    def _forget(self) -> None:
        """Let go of everything recorded; `watched_variables` stays."""
        self._entries: list[Entry] = []
        # Identities of the values that depend on something watched; entries and `_kept` keep
        # those values alive, so that no other object gets their identity.
        self._watched: set[int] = set()
        self._kept: list[Any] = []

    # -- recording ---------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._recording and self.is_over:
            self._end()
        made = self._exit  # by a with statement, before this
        self._block = made if made is not None and made() is not None else None
        self._start()
        return self

    __exit__ = _Exit()

    @property
    def is_over(self) -> bool:
        """Whether the ``with`` block has ended, which an interrupt may have kept from the tape."""
        return self._block is not None and self._block() is None

    def _start(self) -> None:
        self._is_asked()
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                f"already-active tape.{at(user_origin())}"
            )
        add_tape(self)
        self._recording = True

    def _stop(self) -> None:
        self._is_asked()
        if not self._recording:
            raise ValueError(f"Tape is not recording.{at(user_origin())}")
        self._end()

    def _end(self) -> None:
        set_tapes(tuple([t for t in context.tapes if t is not self]))
        self._recording = False

    def record(self, op: Any, inputs: Sequence[Any], attrs: Any, outputs: Sequence[Tensor]) -> None:
        """Note one operation if it depends on something watched. Called by `ops.registry.run`."""
        if self._block is not None and self._block() is None:
            self._end()
            return
        watched = self._watched
        found = op.takes_variables and self._reads_watched(inputs)
        if not found:
            for x in inputs:
                if id(x) in watched:
                    break
            else:
                if context.recorder is None or not any(key(x) in watched for x in inputs):
                    return
        if op.gradient is None:
            return
        self._entries.append(Entry(op, inputs, attrs, outputs))
        watched.update(map(id, outputs))

    def _reads_watched(self, inputs: Sequence[Any]) -> bool:
        """Whether a variable among the inputs, possibly behind a handle, is watched."""
        found = False
        for x in inputs:
            variable = subject(x)
            if not isinstance(variable, Variable):
                continue
            if self._watch_accessed and variable.trainable:
                self._watch_variable(variable)
            found = found or id(variable) in self._watched
        return found

    def watches(self, x: Any) -> bool:
        """Whether operations on a tensor or variable would be recorded."""
        if key(x) in self._watched:
            return True
        return self._watch_accessed and isinstance(x, Variable) and x.trainable

    def _watch_variable(self, variable: Variable) -> None:
        self._watched.add(id(variable))
        self._variables[id(variable)] = variable

    def extend(self, output: Tensor, more: Sequence[Tensor]) -> None:
        """A traced node got more outputs: the entry that holds `output` has them too."""
        for entry in reversed(self._entries):
            if any(o is output for o in entry.outputs):
                entry.outputs = (*entry.outputs, *more)
                self._watched.update(map(id, more))
                return

    def mark(self) -> int:
        return len(self._entries)

    def forget_since(self, mark: int) -> None:
        for entry in self._entries[mark:]:
            self._watched.difference_update(map(id, entry.outputs))
        del self._entries[mark:]

    def watch(self, tensor: Any) -> None:
        """Treat tensors or variables, also nested in structures, as sources of gradients.

        Raises:
            ValueError: something is neither a tensor nor a variable.
        """
        self._is_asked()
        for x in nest.flatten(with_elements(tensor)):
            if not isinstance(x, Tensor | Variable):
                if self.of_graphs is not None and self.of_graphs.has(x):
                    continue
                raise ValueError(
                    f"Passed in object {x!r} of type {type(x).__name__!r}, not td.Tensor or "
                    f"td.Variable.{at(user_origin())}"
                )
            if not is_differentiable(x):
                _warn(
                    "The dtype of the watched tensor must be floating (e.g. td.float32), got "
                    f"{x.dtype!r}: it is not watched"
                )
            elif isinstance(x, Variable):
                self._watch_variable(x.here)
            else:
                self._watched.add(key(x))
                self._kept.append(subject(x))

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables watched so far, in the order of their first use."""
        self._is_asked()
        return tuple({id(v): v for v in map(Variable.identity, self._variables.values())}.values())

    def stop_recording(self) -> _Stopped:
        """Operations inside the block are not recorded by this tape.

        Raises:
            ValueError: the tape is not recording, when the block begins.
        """
        return _Stopped(self)

    @property
    def is_recording(self) -> bool:
        """Whether operations are recorded now."""
        return self._recording and not self.is_over

    def resumed(self) -> _Resumed:
        """Operations inside the block are recorded, although the tape's own block has ended."""
        if self._recording:
            self._end()
        return _Resumed(self)

    def reset(self) -> None:
        """Forget everything recorded and watched."""
        self._is_asked()
        self._used = False
        self._variables = {}
        self._forget()

    # -- gradients ---------------------------------------------------------------------------

    @puts_modes_back
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradients of the sum of all targets with respect to each source.

        Args:
            target: a tensor or a nested structure of tensors.
            sources: a tensor, variable or nested structure of them.
            output_gradients: for each target what its elements' gradients are weighted with;
                ones where None.
            unconnected_gradients: "none" or "zero": the answer for sources that the targets do not
                depend on.

        Returns:
            The structure of `sources` with a tensor of each source's dtype and shape, or None; or
            `IndexedSlices`, where rows of the source were read along its first axis (`gather`,
            `nn.embedding_lookup`, `Variable.sparse_read`) and nothing else of it.

        Raises:
            RuntimeError: a tape that is not persistent was used before.
            TypeError: a target or source is not a tensor or variable.
        """
        self._is_asked()
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors or Variables "
                f"to be differentiated, but received None.{at(user_origin())}"
            )
        zero = wants_zeros(unconnected_gradients)
        if self.of_graphs is not None and self.of_graphs.has(target, sources):
            return self.of_graphs.gradient(target, sources, output_gradients, zero)
        targets = leaves(with_elements(target), values_of)
        parts = with_elements(sources)
        flat = nest.flatten(parts)
        check_differentiable(targets, "target")
        check_sources(flat)
        seeds = seeds_for(targets, output_gradients)
        with self.used_once():
            gradients = self.rows_or_tensors(targets, seeds, flat, free=not self._persistent)
        if zero:
            gradients = [
                zeros_for(x) if g is None else g for g, x in zip(gradients, flat, strict=True)
            ]
        found = nest.pack(parts, gradients)
        return found if parts is sources else of_elements(sources, found)

    @contextmanager
    def used_once(self) -> Iterator[None]:
        """The block takes gradients: a tape that is not persistent stops and cannot do so again.

        Raises:
            RuntimeError: it was used before.
        """
        if self._used:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                f"(or jacobians); create it with persistent=True{at(user_origin())}"
            )
        if self._recording and not self._persistent:
            self._stop()
        yield
        if not self._persistent:
            self._used = True
            self._forget()

    def vector_jacobian(
        self,
        targets: Sequence[Any],
        seeds: Sequence[Any],
        sources: Sequence[Any],
        free: bool = False,
    ) -> list[Tensor | None]:
        """One backward pass over the recorded operations, for flat lists. Leaves the tape usable
        unless `free`: then operations and their arrays are released on the way."""
        found = self.rows_or_tensors(targets, seeds, sources, free)
        return [None if g is None else dense(g) for g in found]

    def rows_or_tensors(
        self, targets: Sequence[Any], seeds: Sequence[Any], sources: Sequence[Any], free: bool
    ) -> list[Gradient | None]:
        """`vector_jacobian`, with IndexedSlices for sources of which rows were read."""
        self._is_asked()
        pairs = [(t, s) for t, s in zip(targets, seeds, strict=True) if s is not None]
        entries = self._entries
        if free:
            self._entries = []
        else:
            entries = list(entries)  # a persistent tape may record its own gradients
        own = {key(t) for t, _ in pairs}  # the gradient of a target by itself is its seed
        watched = [s for s in sources if key(s) in self._watched or key(s) in own]
        found = backpropagate(entries, [t for t, _ in pairs], [s for _, s in pairs], watched)
        by_source = {key(s): g for s, g in zip(watched, found, strict=True)}
        return [by_source.get(key(s)) for s in sources]

    @puts_modes_back
    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of each element of `target` by each element of the sources.

        Args:
            experimental_use_pfor: whether the backward pass is computed for all elements of
                `target` at once, as by `vectorized_map`; operations that cannot be computed so run
                in a loop, of which a warning tells. False: one pass after the other, which needs
                less memory.
            parallel_iterations: accepted for TensorFlow programs.

        Returns:
            For every source a tensor of shape ``target.shape + source.shape``, or None.
        """
        self._is_asked()
        from treadle.autodiff.jacobian import jacobian

        zero = wants_zeros(unconnected_gradients)
        if self.of_graphs is not None and self.of_graphs.has(target, sources):
            return self.of_graphs.jacobian(target, sources, zero)
        return jacobian(self, target, sources, zero, at_once=experimental_use_pfor)

    @puts_modes_back
    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: Any = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of each example of a batch: ``target[i]`` depends on ``source[i]`` only.

        Args:
            experimental_use_pfor, parallel_iterations: as for `jacobian`.

        Returns:
            A tensor of shape ``target.shape + source.shape[1:]``.

        Raises:
            ValueError: the first dims of target and source differ.
        """
        self._is_asked()
        from treadle.autodiff.jacobian import batch_jacobian

        zero = wants_zeros(unconnected_gradients)
        if self.of_graphs is not None and self.of_graphs.has(target, source):
            return self.of_graphs.batch_jacobian(target, source, zero)
        return batch_jacobian(self, target, source, zero, at_once=experimental_use_pfor)


def _warn(message: str) -> None:
    warnings.warn(f"{message}{at(user_origin())}", stacklevel=4)


def wants_zeros(unconnected_gradients: Any) -> bool:
    """Whether zeros are the answer for sources that no target depends on.

    Raises:
        ValueError: it is neither "none" nor "zero".
    """
    try:
        return UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {unconnected_gradients!r}; use 'none' or "
            f"'zero'{at(user_origin())}"
        ) from None


def check_differentiable(targets: Sequence[Any], what: str) -> None:
    """Refuse targets that are no tensors with a TypeError; warn of those without gradients."""
    for x in targets:
        if not isinstance(x, Tensor | Variable):
            raise TypeError(
                f"GradientTape.gradient: a {what} is {x!r} of type {type(x).__name__!r}; it must "
                f"be a td.Tensor or td.Variable computed under the tape{at(user_origin())}"
            )
        if not is_differentiable(x):
            _warn(
                f"The dtype of the {what} tensor must be floating (e.g. td.float32) when calling "
                f"GradientTape.gradient, got {x.dtype!r}: its gradient is None"
            )


def check_sources(sources: Sequence[Any]) -> None:
    """Refuse sources that are neither tensors nor variables with a TypeError."""
    for x in sources:
        if not isinstance(x, Tensor | Variable):
            raise TypeError(
                f"GradientTape.gradient: a source is {x!r} of type {type(x).__name__!r}; sources "
                f"are td.Tensors that the tape watches, or td.Variables{at(user_origin())}"
            )


def seeds_for(targets: Sequence[Any], output_gradients: Any) -> list[Tensor | None]:
    """One gradient for each target; None for the integer ones."""
    if output_gradients is None:
        given: list[Any] = [None] * len(targets)
    else:
        given = leaves(output_gradients, dense)
    if len(given) != len(targets):
        raise ValueError(
            f"{len(given)} output_gradients were given for {len(targets)} targets"
            f"{at(user_origin())}"
        )
    return [_seed(t, g) for t, g in zip(targets, given, strict=True)]


def _seed(target: Any, given: Any) -> Tensor | None:
    if not is_differentiable(target):
        return None
    if given is None:
        return ones_for(target)
    seed = convert_to_tensor(given, dtype_hint=target.dtype)
    wrong = mismatch(seed, target)
    if wrong is not None:
        raise ValueError(f"An output_gradient {wrong} as its target{at(user_origin())}")
    return seed
