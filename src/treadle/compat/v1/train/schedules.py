"""Steps that are counted, and learning rates that follow from them."""

from __future__ import annotations

import functools
import math
from typing import Any

import treadle as td
from treadle.compat.v1.collections import GraphKeys
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.initializers import zeros_initializer
from treadle.compat.v1.recording import in_graphs, recorded, writes_into
from treadle.compat.v1.values import thread
from treadle.compat.v1.variables import Variable


def get_global_step(graph: Graph | None = None) -> Any:
    """The variable that counts steps, or None.

    Raises:
        RuntimeError: there is more than one.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise RuntimeError("Multiple items in the collection GLOBAL_STEP")
    return found[0] if found else None


def create_global_step(graph: Graph | None = None) -> Any:
    """Make the variable that counts steps.

    Raises:
        ValueError: there is one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    if writes_into() is None:
        step: Any = td.Variable(0, trainable=False, name="global_step", dtype=td.int64)
        graph.add_to_collection(GraphKeys.GLOBAL_STEP, step)
        return step
    with graph.as_default(), graph.name_scope(None):
        return Variable(
            lambda: zeros_initializer()([], td.int64), False, name="global_step", dtype=td.int64,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )  # fmt: skip


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The variable that counts steps, made where there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """TypeError unless it is a scalar integer."""
    if not global_step_tensor.dtype.is_integer or global_step_tensor.shape.rank != 0:
        raise TypeError(f"Existing global_step is no scalar integer: {global_step_tensor}")


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps in a session."""
    if isinstance(global_step_tensor, td.Variable):
        return int(global_step_tensor.numpy())
    return int((sess or thread.sessions[-1]).run(global_step_tensor))


def _rate(function: Any, name: str, type_: str) -> Any:
    """`function` as a graph has it. Where functions are called at once it gives a function of no
    arguments, the rate at the time of its call, which optimizers take: the step grows meanwhile."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if writes_into(args) is None and not td.inside_function():
            return functools.partial(function, *args)
        return recorded(function, name, type_)(*args, **kwargs)

    return call


def _exponential(rate: Any, step: Any, steps: Any, decay: Any, staircase: bool) -> Any:
    rate = td.convert_to_tensor(rate)
    exponent = td.cast(step, rate.dtype) / td.cast(steps, rate.dtype)
    return rate * td.pow(td.cast(decay, rate.dtype), td.floor(exponent) if staircase else exponent)


def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                      staircase: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """``learning_rate * decay_rate ** (global_step / decay_steps)``."""
    _check_step(global_step)
    return _rate(_exponential, "ExponentialDecay", "Mul")(
        learning_rate, global_step, decay_steps, decay_rate, staircase, name=name
    )


def _check_step(step: Any) -> None:
    if step is None:
        raise ValueError("global_step is required.")


def _natural(rate: Any, step: Any, steps: Any, decay: Any, staircase: bool) -> Any:
    rate = td.convert_to_tensor(rate)
    exponent = td.cast(step, rate.dtype) / td.cast(steps, rate.dtype)
    return rate * td.exp(
        -td.cast(decay, rate.dtype) * (td.floor(exponent) if staircase else exponent)
    )


def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                      staircase: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``."""
    _check_step(global_step)
    return _rate(_natural, "NaturalExpDecay", "Mul")(
        learning_rate, global_step, decay_steps, decay_rate, staircase, name=name
    )


def _inverse(rate: Any, step: Any, steps: Any, decay: Any, staircase: bool) -> Any:
    rate = td.convert_to_tensor(rate)
    periods = td.cast(step, rate.dtype) / td.cast(steps, rate.dtype)
    return rate / (1 + td.cast(decay, rate.dtype) * (td.floor(periods) if staircase else periods))


def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                       staircase: bool = False, name: str | None = None) -> Any:  # fmt: skip
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``."""
    _check_step(global_step)
    return _rate(_inverse, "InverseTimeDecay", "RealDiv")(
        learning_rate, global_step, decay_steps, decay_rate, staircase, name=name
    )


def _polynomial(rate: Any, step: Any, steps: Any, end: Any, power: Any, cycle: bool) -> Any:
    rate = td.convert_to_tensor(rate)
    step, steps = td.cast(step, rate.dtype), td.cast(steps, rate.dtype)
    if cycle:
        steps = steps * td.maximum(td.cast(1, rate.dtype), td.math.ceil(step / steps))
    else:
        step = td.minimum(step, steps)
    end = td.cast(end, rate.dtype)
    return (rate - end) * td.pow(1 - step / steps, td.cast(power, rate.dtype)) + end


def polynomial_decay(learning_rate: Any, global_step: Any, decay_steps: Any,
                     end_learning_rate: Any = 0.0001, power: Any = 1.0, cycle: bool = False,
                     name: str | None = None) -> Any:  # fmt: skip
    """From `learning_rate` to `end_learning_rate` within `decay_steps`."""
    _check_step(global_step)
    return _rate(_polynomial, "PolynomialDecay", "AddV2")(
        learning_rate, global_step, decay_steps, end_learning_rate, power, cycle, name=name
    )


def _piecewise(x: Any, boundaries: Any, values: Any) -> Any:
    found = td.convert_to_tensor(values[-1])
    for boundary, value in reversed(list(zip(boundaries, values, strict=False))):
        found = td.where(td.cast(x, td.float64) <= td.cast(boundary, td.float64), value, found)
    return found


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Any:
    """``values[i]`` where `x` is behind ``boundaries[i - 1]`` and not behind ``boundaries[i]``.

    Raises:
        ValueError: there are not as many values as boundaries and one.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    return _rate(_piecewise, "PiecewiseConstant", "Select")(x, boundaries, values, name=name)


piecewise_constant_decay = piecewise_constant


def _cosine(rate: Any, step: Any, steps: Any, alpha: Any) -> Any:
    rate = td.convert_to_tensor(rate)
    part = td.minimum(td.cast(step, rate.dtype) / td.cast(steps, rate.dtype), 1.0)
    return rate * ((1 - alpha) * 0.5 * (1 + td.cos(math.pi * part)) + alpha)


def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0,
                 name: str | None = None) -> Any:  # fmt: skip
    """Half a period of a cosine, from `learning_rate` to ``alpha * learning_rate``."""
    _check_step(global_step)
    return _rate(_cosine, "CosineDecay", "Mul")(
        learning_rate, global_step, decay_steps, alpha, name=name
    )


def _restarts(
    rate: Any, step: Any, first_steps: Any, growth: Any, shrink: Any, alpha: Any
) -> Any:
    rate = td.convert_to_tensor(rate)
    done = td.cast(step, rate.dtype) / td.cast(first_steps, rate.dtype)
    growth, shrink = (td.cast(x, rate.dtype) for x in (growth, shrink))
    period = td.floor(done)
    longer = td.floor(td.math.log(1.0 - done * (1.0 - growth)) / td.math.log(growth))
    begun = (1.0 - growth**longer) / (1.0 - growth)
    period, share = (
        td.where(growth == 1.0, period, longer),
        td.where(growth == 1.0, done - period, (done - begun) / growth**longer),
    )
    cosine = 0.5 * shrink**period * (1.0 + td.cos(math.pi * share))
    return rate * ((1.0 - alpha) * cosine + alpha)


def cosine_decay_restarts(learning_rate: Any, global_step: Any, first_decay_steps: Any,
                          t_mul: float = 2.0, m_mul: float = 1.0, alpha: Any = 0.0,
                          name: str | None = None) -> Any:  # fmt: skip
    """Half a period of a cosine, again and again: each `t_mul` times as long as the one before, and
    `m_mul` times as high."""
    _check_step(global_step)
    return _rate(_restarts, "SGDRDecay", "Mul")(
        learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha, name=name
    )


def _linear_cosine(
    rate: Any, step: Any, steps: Any, periods: float, alpha: Any, beta: Any
) -> Any:
    rate = td.convert_to_tensor(rate)
    steps = td.cast(steps, rate.dtype)
    share = td.minimum(td.cast(step, rate.dtype), steps) / steps
    cosine = 0.5 * (1.0 + td.cos(math.pi * 2.0 * periods * share))
    return rate * ((alpha + 1.0 - share) * cosine + beta)


def linear_cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any,
                        num_periods: float = 0.5, alpha: Any = 0.0, beta: Any = 0.001,
                        name: str | None = None) -> Any:  # fmt: skip
    """A line down to 0 within `decay_steps`, times a cosine of some periods."""
    _check_step(global_step)
    return _rate(_linear_cosine, "LinearCosineDecay", "Mul")(
        learning_rate, global_step, decay_steps, num_periods, alpha, beta, name=name
    )


in_graphs(
    _cosine,
    _exponential,
    _inverse,
    _linear_cosine,
    _natural,
    _piecewise,
    _polynomial,
    _restarts,
)
