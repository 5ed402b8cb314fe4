"""Recurrent networks: a cell in a loop over time."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.compat.v1 import functions, scopes
from treadle.compat.v1.mirrored import graph_function
from treadle.compat.v1.tensor_array import TensorArray as _TensorArray
from treadle.compat.v1.values import element, the_tensor

_transpose, _concat, _reverse = map(
    graph_function, (td.transpose, td.concat, td.reverse_sequence)
)
TensorArray: Any = _TensorArray
_where, _stack, _unstack = functions.where, graph_function(td.stack), graph_function(td.unstack)


def by_time(x: Any) -> Any:
    """A batch of sequences as a sequence of batches, or back."""
    return _transpose(x, [1, 0, *range(2, the_tensor(x).shape.rank or 2)])


def _map(function: Any, *structures: Any) -> Any:
    return td.nest.map_structure(function, *structures)


def _first(x: Any) -> Any:
    return td.nest.flatten(x)[0]


def _chosen(mask: Any, new: Any, old: Any) -> Any:
    return _map(lambda a, b: _where(mask, a, b), new, old)


def dynamic_rnn(
    cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None,
    dtype: Any = None, parallel_iterations: Any = None, swap_memory: bool = False,
    time_major: bool = False, scope: Any = None,
) -> Any:  # fmt: skip
    """A cell along the time of batches of sequences: the outputs of all steps and the last state.

    Args:
        inputs: of shape ``[batch, time, ...]``, or ``[time, batch, ...]`` where `time_major`.
        sequence_length: how long each sequence is; outputs behind it are zeros, the state stays.

    Raises:
        ValueError: neither `initial_state` nor `dtype` is given.
    """
    with scopes.variable_scope(scope or "rnn"):
        steps = _map(functions.convert_to_tensor, inputs)
        if not time_major:
            steps = _map(by_time, steps)
        shape = graph_function(td.shape)(_first(steps))
        known = the_tensor(_first(steps)).shape
        time = known[0].value if known[0].value is not None else shape[0]
        batch = known[1].value if known[1].value is not None else shape[1]
        state = _state(cell, initial_state, batch, dtype)
        if sequence_length is not None:
            sequence_length = functions.cast(sequence_length, td.int32)
        arrays = _map(lambda x: TensorArray(x.dtype, time).unstack(x), steps)
        kind = dtype or the_tensor(_first(state)).dtype
        sizes = _map(lambda size: size, cell.output_size)
        outputs = _map(lambda size: TensorArray(kind, time), sizes)
        count = functions.convert_to_tensor(time, td.int32)

        def body(t: Any, state: Any, outputs: Any) -> Any:
            given = _map(lambda a: a.read(t), arrays)
            for one, whole in zip(td.nest.flatten(given), td.nest.flatten(steps), strict=True):
                one.set_shape(whole.shape[1:])
            output, new = cell(given, state)
            if sequence_length is not None:
                goes_on = t < sequence_length
                zeros = _map(graph_function(td.zeros_like), output)
                output, new = _chosen(goes_on, output, zeros), _chosen(goes_on, new, state)
            return t + 1, new, _map(lambda a, x: a.write(t, x), outputs, output)

        _, last, outputs = functions.while_loop(
            lambda t, *_: t < count, body, (functions.convert_to_tensor(0), state, outputs)
        )
        found = _map(lambda a: a.stack(), outputs)
        for whole, size in zip(td.nest.flatten(found), td.nest.flatten(sizes), strict=True):
            whole.set_shape([known[0].value, known[1].value, size])
        return (found if time_major else _map(by_time, found)), last


def _state(cell: Any, initial: Any, batch: Any, dtype: Any) -> Any:
    if initial is not None:
        return initial
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    return cell.zero_state(batch, dtype)


def static_rnn(cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None,
               sequence_length: Any = None, scope: Any = None) -> Any:  # fmt: skip
    """A cell along a list of inputs, one for each step: the list of outputs and the last state.

    Raises:
        TypeError: `inputs` is no list. ValueError: it is empty.
    """
    if not isinstance(inputs, list | tuple):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs = []
    with scopes.variable_scope(scope or "rnn") as opened:
        first = the_tensor(_first(inputs[0]))
        size = first.shape[0].value
        batch = graph_function(td.shape)(first)[0] if size is None else size
        state = _state(cell, initial_state, batch, dtype)
        for step, given in enumerate(inputs):
            if step:
                opened.reuse_variables()
            output, new = cell(given, state)
            if sequence_length is not None:
                goes_on = graph_function(td.greater)(
                    functions.cast(sequence_length, td.int32), step
                )
                zeros = _map(graph_function(td.zeros_like), output)
                output, new = _chosen(goes_on, output, zeros), _chosen(goes_on, new, state)
            state = new
            outputs.append(output)
    return outputs, state


def _reversed(x: Any, lengths: Any, time_axis: int) -> Any:
    if lengths is None:
        return graph_function(td.reverse)(x, [time_axis])
    return _reverse(x, lengths, seq_axis=time_axis, batch_axis=1 - time_axis)


def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None,
    initial_state_fw: Any = None, initial_state_bw: Any = None, dtype: Any = None,
    parallel_iterations: Any = None, swap_memory: bool = False, time_major: bool = False,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Two cells along time, one of them backwards: pairs of outputs and of last states."""
    axis = 0 if time_major else 1
    with scopes.variable_scope(scope or "bidirectional_rnn"):
        forward, last_forward = dynamic_rnn(
            cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major,
            scope="fw",
        )  # fmt: skip
        turned = _map(lambda x: _reversed(x, sequence_length, axis), inputs)
        backward, last_backward = dynamic_rnn(
            cell_bw, turned, sequence_length, initial_state_bw, dtype, time_major=time_major,
            scope="bw",
        )  # fmt: skip
        backward = _map(lambda x: _reversed(x, sequence_length, axis), backward)
    return (forward, backward), (last_forward, last_backward)


def static_bidirectional_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None,
) -> Any:  # fmt: skip
    """Two cells along a list of inputs, one of them backwards: the outputs side by side, and the
    last state of each."""
    with scopes.variable_scope(scope or "bidirectional_rnn"):
        forward, last_forward = static_rnn(
            cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope="fw"
        )
        turned = list(reversed(inputs))
        if sequence_length is not None:
            turned = _unstack(_reversed(_stack(inputs), sequence_length, 0))
        backward, last_backward = static_rnn(
            cell_bw, turned, initial_state_bw, dtype, sequence_length, scope="bw"
        )
        backward = (
            list(reversed(backward)) if sequence_length is None
            else _unstack(_reversed(_stack(backward), sequence_length, 0))
        )  # fmt: skip
    both = [_concat([a, b], 1) for a, b in zip(forward, backward, strict=True)]
    return both, last_forward, last_backward


def raw_rnn(cell: Any, loop_fn: Any, parallel_iterations: Any = None, swap_memory: bool = False,
            scope: Any = None) -> Any:  # fmt: skip
    """A cell in a loop whose inputs and states a function chooses at each step.

    Args:
        loop_fn: ``loop_fn(time, cell_output, cell_state, loop_state)`` gives ``(finished,
            next_input, cell_state, emit_output, loop_state)``. First it is called with zero, and
            None for the others; what it emits then says the shapes and dtypes of what is emitted,
            without the batch. None is emitted as the cell's output, of zeros at first.

    Returns:
        ``(outputs, state, loop_state)``: TensorArrays of what was emitted, and the last states. An
        example that is finished emits zeros and keeps its state.
    """
    with scopes.variable_scope(scope or "rnn"):
        finished, given, state, emitted, loop_state = loop_fn(
            functions.convert_to_tensor(0), None, None, None
        )
        given = _map(functions.convert_to_tensor, given)
        first = the_tensor(_first(given))
        size = first.shape[0].value
        batch = graph_function(td.shape)(first)[0] if size is None else size
        has_loop_state = loop_state is not None
        kind = the_tensor(_first(state)).dtype
        zeros = _map(
            (lambda size: _zeros(batch, [size], kind)) if emitted is None
            else lambda like: _zeros(batch, like.shape.as_list(), like.dtype),
            cell.output_size if emitted is None else emitted,
        )  # fmt: skip
        arrays = _map(lambda z: TensorArray(z.dtype, 0, dynamic_size=True), zeros)

        def body(t: Any, finished: Any, given: Any, arrays: Any, state: Any, kept: Any) -> Any:
            output, new = cell(given, state)
            ends, following, new, emitted, changed = loop_fn(
                t + 1, output, new, kept if has_loop_state else None
            )
            emitted = _map(lambda z, e: _where(finished, z, e), zeros, emitted)
            return (
                t + 1, graph_function(td.logical_or)(finished, ends), following,
                _map(lambda a, e: a.write(t, e), arrays, emitted),
                _map(lambda new, old: _kept_where(finished, old, new), new, state),
                kept if changed is None else changed,
            )  # fmt: skip

        _, _, _, arrays, state, kept = functions.while_loop(
            lambda t, finished, *_: graph_function(td.logical_not)(functions.reduce_all(finished)),
            body,
            (
                functions.convert_to_tensor(0), finished, given, arrays, state,
                loop_state if has_loop_state else functions.convert_to_tensor(0),
            ),
        )  # fmt: skip
    return arrays, state, kept if has_loop_state else None


def _zeros(batch: Any, sizes: Any, dtype: Any) -> Any:
    return graph_function(td.zeros)([batch, *sizes], dtype)


def _kept_where(finished: Any, old: Any, new: Any) -> Any:
    """The old value of examples that are finished; arrays of tensors are for all of them."""
    tensor = element(new)
    if isinstance(new, TensorArray) or tensor is None or tensor.shape.rank == 0:
        return new
    return _where(finished, old, new)
