"""``td.compat.v1.test``: checks of gradients, and test cases with sessions."""

from __future__ import annotations

import tempfile
import unittest
from typing import Any
from unittest import mock as mock

import numpy as np

from treadle.compat.v1 import functions
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.mirrored import fallback, graph_function
from treadle.compat.v1.session import Session, get_default_session
from treadle.compat.v1.shapes import plain
from treadle.compat.v1.values import Composite, Mode, Operation, element, thread
from treadle.compat.v1.variables import Variable

import treadle as td  # isort: skip


def compute_gradient(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3,
    init_targets: Any = None, extra_feed_dict: Any = None,
) -> Any:  # fmt: skip
    """The Jacobian of `y` by `x` from gradients, and the one from differences, in the default
    session.

    Args:
        x: a tensor, or a list of them with lists of shapes and values.
        x_init_value: where; random numbers where omitted. Real and imaginary parts of complex
            numbers are rows and columns of their own.
        delta: the length of a step.
        init_targets: operations to run before.
    """
    session = get_default_session()
    if session is None:
        raise ValueError("compute_gradient needs a default session: use `with tf.Session():`")
    if init_targets is not None:
        session.run(init_targets)
    if isinstance(x, list):
        values = x_init_value or [None] * len(x)
        return [
            _jacobians(session, a, s, y, y_shape, v, delta, extra_feed_dict)
            for a, s, v in zip(x, x_shape, values, strict=True)
        ]
    return _jacobians(session, x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict)


def _jacobians(session: Any, x: Any, x_shape: Any, y: Any, y_shape: Any, value: Any, delta: float,
               feeds: Any) -> Any:  # fmt: skip
    source, target = element(x), element(y)
    assert source is not None and target is not None
    kind, seed_kind = source.dtype.np_dtype, target.dtype.np_dtype
    if value is None:
        value = np.random.default_rng(0).random(plain(x_shape)).astype(kind)
    value = np.array(value, kind)
    given = dict(feeds or {})
    dy = graph_function(td.ones_like)(y)
    (slope,) = functions.gradients(y, [source], [dy])
    seed = np.zeros(plain(y_shape), seed_kind)
    size = (_parts(value).size, _parts(seed).size)
    exact, numeric = np.zeros(size, _parts(value).dtype), np.zeros(size, _parts(value).dtype)
    for column in range(size[1] if slope is not None else 0):
        at_column = seed.copy()
        _parts(at_column)[column] = 1
        found = session.run(
            functions.convert_to_tensor(slope), {source: value, dy: at_column, **given}
        )
        exact[:, column] = _parts(np.asarray(found))
    for row in range(size[0]):
        ends = []
        for sign in (1, -1):
            moved = value.copy()
            _parts(moved)[row] += sign * delta
            ends.append(_parts(np.asarray(session.run(y, {source: moved, **given}))))
        numeric[row] = (ends[0] - ends[1]) / (2 * delta)
    return exact, numeric


def _parts(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements in a row; real and imaginary parts of complex ones are elements."""
    flat = array.reshape(-1)
    return flat.view(array.real.dtype) if array.dtype.kind == "c" else flat


def compute_gradient_error(
    x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None, delta: float = 1e-3,
    init_targets: Any = None, extra_feed_dict: Any = None,
) -> float:  # fmt: skip
    """The greatest difference between both Jacobians of `compute_gradient`."""
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(a - b).max()) if a.size else 0.0) for a, b in pairs)


class TestCase(td.test.TestCase):
    """`td.test.TestCase` each of whose tests has a graph of its own, where functions are not called
    at once."""

    def setUp(self) -> None:
        super().setUp()
        if not Mode.eager:
            graph = Graph().as_default()
            graph.__enter__()
            self.addCleanup(graph.__exit__, None, None, None)


def _session_of_graph(graph: Any, config: Any, known: dict[Any, Any] | None) -> Any:
    """The session for a graph, or for the default one.

    Args:
        known: the sessions of a test by their graphs, which hold the new one, too. None: one that
            is nobody else's.

    Returns:
        None where no graph is named and operations run at once.
    """
    if graph is None and not thread.graphs and Mode.eager:
        return None
    graph = graph or get_default_graph()
    if known is None:
        return Session(graph=graph, config=config)
    default = get_default_session()
    if default is not None and default.graph is graph:
        return default
    if graph not in known:
        known[graph] = Session(graph=graph, config=config)
    return known[graph]


def _graph_of(value: Any) -> Graph | None:
    """The graph that a value belongs to."""
    if isinstance(value, Composite):
        value = value.values
    own = value if isinstance(value, Variable | Operation) else element(value)
    return getattr(own, "graph", None)  # variables of `td` count as `Variable`, and have none


td.test.TestCase._session_of_graph = staticmethod(_session_of_graph)
td.test.TestCase._graph_of = staticmethod(_graph_of)


def main(argv: Any = None) -> None:
    """Run the test cases of the program."""
    unittest.main(argv=argv)


def get_temp_dir() -> str:
    """A folder for files of tests."""
    return tempfile.mkdtemp()


__getattr__ = fallback(__name__, "treadle.test")
