"""Sessions: they hold the variables of a graph and run its operations as compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.compat.v1.graph import Graph, get_default_graph
from treadle.compat.v1.random_streams import OperationStreams
from treadle.compat.v1.settings import ConfigProto
from treadle.compat.v1.values import (
    Body,
    Composite,
    Literal,
    Operation,
    Tensor,
    Values,
    element,
    map_leaves,
    thread,
)
from treadle.core import locks
from treadle.core.context import context, recording, taping
from treadle.core.origin import at, user_origin


class Fed:
    """What owns an operation whose value each run takes from its session, as the names of variables
    that have no value. ``value(session)`` gives an array."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Program:
    """The program for some fetches and feeds: the operations that the fetches need, in *stages*
    between which functions of Python are called whose results have a rank that nobody knows before.

    Attributes:
        operations: what is run again, in order.
        feeds: the tensors that are fed, in order.
    """

    def __init__(self, session: BaseSession, fetches: list[Any], feeds: list[Tensor]) -> None:
        self.session, self.feeds = session, feeds
        self._fetches = [f for f in fetches if isinstance(f, Tensor)]
        self.operations, sources = _needed(fetches, feeds)
        _check_fed(sources)
        fed = [op for op in sources if isinstance(op.owner, Fed)]
        self.fed = [op.owner.value for op in fed]
        inputs = [*feeds, *(op.outputs[0] for op in fed)]
        self.variables = [op.outputs[0] for op in sources if session.is_variable(op)]
        for tensor in self.variables:
            session.storage_of(tensor.op.owner)
        self._specs: list[tuple[Tensor, Any, set[Any]]] = [  # with shapes that fit
            (t, t.dtype.np_dtype, set()) for t in feeds
        ]
        self.stages = list(self._divided(inputs))
        self._inputs = inputs
        (*before, last) = self.stages
        assert isinstance(last, Stage)
        self.function: Any = self._in_stages if before else last.function

    def _divided(self, inputs: list[Tensor]) -> Iterator[Stage | Operation]:
        """The stages and the operations that call Python between them."""
        waiting, known = list(self.operations), dict.fromkeys([*inputs, *self.variables])
        while any("python" in op.attributes for op in waiting):
            later = _dependents([op for op in waiting if "python" in op.attributes], waiting)
            ready = [op for op in waiting if "python" in op.attributes and op in later.first]
            now = [op for op in waiting if op not in later.all]
            if any(t not in known for op in ready for t in op.inputs):
                wanted = _read_by([op for op in waiting if op not in now], now, self._fetches)
                yield Stage(self, now, [t for t in known if t not in self.variables], wanted)
                known |= dict.fromkeys(wanted)
                waiting = [op for op in waiting if op not in now]
            for op in ready:
                yield op
                known |= dict.fromkeys(op.outputs)
                waiting.remove(op)
        known_tensors = [
            *inputs, *(t for t in known if t not in self.variables and t not in inputs)
        ]
        yield Stage(self, waiting, known_tensors, self._fetches)

    def _in_stages(self, *fed: Any) -> list[Any]:
        """A run in stages."""
        found: dict[Tensor, Any] = dict(zip(self._inputs, fed, strict=True))
        results: list[Any] = []
        for stage in self.stages:
            if isinstance(stage, Operation):
                given = map_leaves(stage.args[1], lambda v: _array_of(self.session, found, v))
                _put_python_results(self.session, stage, given, found)
            else:
                results = stage.function(*(found[t] for t in stage.inputs))
                found.update(zip(stage.results, results, strict=True))
                if self.session.written:
                    self.session.settle()
        return results

    def converted(self, given: Mapping[Any, Any]) -> list[Any]:
        """The fed values as arrays of the placeholders' dtypes.

        Raises:
            TypeError: one is a tensor. ValueError: it has another shape.
        """
        arrays = []
        for value, (tensor, dtype, fitting) in zip(given.values(), self._specs, strict=True):
            if type(value) is not np.ndarray or value.dtype is not dtype:
                value = _array(value, dtype, tensor)
            if value.shape not in fitting:
                _check_shape(tuple(value.shape), tensor)
                fitting.add(value.shape)
            arrays.append(value)
        return arrays

    def run(self, given: Mapping[Any, Any]) -> list[Any]:
        """The values of the fetched tensors, as arrays."""
        arrays = self.converted(given) if given else []
        if self.fed:
            arrays += [value(self.session) for value in self.fed]
        if context.counted:  # a graph is being made or an eager tape watches: neither sees this
            with recording(None), taping(()):
                found = self.function(*arrays)
        else:
            found = self.function(*arrays)
        if self.session.written:
            self.session.settle()
        return [_given(x) for x in found]


class Stage:
    """Operations that are one compiled program.

    Attributes:
        function: a `td.function` of the values of `inputs` that gives those of `results`.
    """

    def __init__(
        self, program: Program, operations: list[Operation], inputs: list[Tensor],
        results: list[Tensor],
    ) -> None:  # fmt: skip
        self._session, self._variables = program.session, program.variables
        self._operations, self.inputs, self.results = operations, inputs, results
        self.function: Any = td.function(autograph=False)(self._again)

    def _again(self, *fed: Any) -> list[Any]:
        """Run the operations once more, while this is traced."""
        values = Values(self._session)
        for tensor in self._variables:
            values.put(tensor, self._session.storage_of(tensor.op.owner))
        for tensor, value in zip(self.inputs, fed, strict=True):
            values.put(tensor, value)
        before, thread.run = thread.run, values
        region, thread.region = thread.region, None
        try:
            for op in self._operations:
                values.run(op)
            return [self._fetched(values, tensor) for tensor in self.results]
        finally:
            thread.run, thread.region = before, region

    def _fetched(self, values: Values, tensor: Tensor) -> Any:
        found = values.get(tensor)
        if isinstance(found, td.Variable):
            self._session.check_read(tensor.op)
            return found.read_value()
        return td.identity(found) if isinstance(found, td.Tensor) else found


class _Later(NamedTuple):
    """Operations that call Python, or depend on one that does.

    Attributes:
        first: those that call Python and depend on no other.
    """

    all: set[Operation]
    first: list[Operation]


def _dependents(python: list[Operation], operations: list[Operation]) -> _Later:
    later, first = set(python), []
    for op in operations:
        needs = {*(t.op for t in op.inputs), *op.control_inputs, *_inside(op, set())}
        if needs & later:
            later.add(op)
        elif op in later:
            first.append(op)
    return _Later(later, first)


def _read_by(
    later: list[Operation], now: list[Operation], fetches: list[Tensor]
) -> list[Tensor]:
    """The results of operations that others, or the fetches, read."""
    made = {t for op in now for t in op.outputs}
    read = [t for op in later for t in op.inputs]
    return [t for t in dict.fromkeys([*read, *fetches]) if t in made]


def _array_of(session: BaseSession, found: dict[Tensor, Any], value: Any) -> Any:
    tensor = element(value)
    if tensor is None:
        return value
    if tensor in found:
        return _given(found[tensor])
    session.check_read(tensor.op)
    return session.storage_of(tensor.op.owner).numpy()


def _put_python_results(
    session: BaseSession, op: Operation, given: Any, found: dict[Tensor, Any]
) -> None:
    """Call the function of Python of an operation."""
    function = op.attributes["python"]
    if op.attributes.get("of_session"):
        for tensor, value in zip(op.outputs, function(session, *given), strict=True):
            found[tensor] = value
        return
    result = function(*(np.asarray(x) for x in given))
    results = list(result) if isinstance(result, list | tuple) and len(op.outputs) > 1 else [result]
    if len(results) != len(op.outputs):
        raise td.errors.InvalidArgumentError(
            None, op, f"{op.name}: the function gives {len(results)} values, not {len(op.outputs)}"
        )
    for tensor, value in zip(op.outputs, results, strict=True):
        if isinstance(value, list | tuple) and len(value) == 1 and len(op.outputs) == 1:
            value = value[0] if isinstance(value[0], np.ndarray) else value
        array = np.asarray(value)
        wanted = tensor.dtype.np_dtype
        if array.dtype != wanted and not wanted.hasobject:
            if isinstance(value, np.ndarray | np.generic):
                raise td.errors.InvalidArgumentError(
                    None, op, f"{tensor.value_index}-th value returned by {op.name} is "
                    f"{array.dtype.name}, but expects {tensor.dtype.name}{at(op.origin)}",
                )  # fmt: skip
            array = array.astype(wanted)
        found[tensor] = td.constant(array, tensor.dtype)


def _flat(feed_dict: Mapping[Any, Any]) -> dict[Any, Any]:
    """What is fed for tensors that stand in tuples or are several, tensor by tensor."""
    found: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        if isinstance(key, Composite):
            key = key.fed_parts(value)
        if not isinstance(key, tuple):
            found[key] = value
            continue
        if len(key) != len(value):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(key)} elements, but value had "
                f"{len(value)} elements. Key: {key}, value: {value}."
            )
        found |= _flat(dict(zip(key, value, strict=True)))
    return found


_OF_SEVERAL = (tuple, Composite)  # what feeds have as keys that is more than one tensor


def _check_fed(sources: list[Operation]) -> None:
    for op in sources:
        if op.type == "Placeholder" and op.owner is None:
            shape, sizes = op.outputs[0].shape, ""
            if shape.rank is not None:
                listed = ["?" if d is None else str(d) for d in shape.as_list()]
                sizes = f" and shape [{','.join(listed)}]"
            dtype = op.outputs[0].dtype.name
            raise td.errors.InvalidArgumentError(
                None, op,
                f"You must feed a value for placeholder tensor {op.name!r} with dtype "
                f"{_C_NAMES.get(dtype, dtype)}{sizes}{at(op.origin)}",
            )  # fmt: skip


_C_NAMES = {"float32": "float", "float64": "double"}


def _given(x: Any) -> Any:
    if isinstance(x, td.Tensor):
        array = x._numpy()
        return array.copy() if array.ndim else array[()]
    return x


def _array(value: Any, dtype: Any, tensor: Tensor) -> Any:
    if element(value) is not None or isinstance(value, td.Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the "
            f"tensor object was {value} which was passed to the argument `feed_dict` with key "
            f"{tensor}.{at(user_origin())}"
        )
    if isinstance(value, int) and not isinstance(value, bool) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
                f"type {dtype.name}. Try explicitly setting the type of the feed tensor to a "
                f"larger type (e.g. int64).{at(user_origin())}"
            )
    if dtype.hasobject:
        return td.constant(np.asarray(value, object), td.string)
    return np.ascontiguousarray(value, dtype).reshape(np.shape(value))


def _check_shape(found: tuple[int, ...], tensor: Tensor) -> None:
    if tensor.shape.rank is None:
        return
    shape = tensor.shape.as_list()
    fits = len(found) == len(shape) and all(
        d is None or d == f for f, d in zip(found, shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"Cannot feed value of shape {found} for Tensor {tensor.name}, which has shape "
            f"{tensor.shape}{at(user_origin())}"
        )


def _needed(fetches: list[Any], feeds: list[Tensor]) -> tuple[list[Operation], list[Operation]]:
    """The operations that fetches need, in the order in which they were made, and those among them
    whose value a run is given."""
    fed = set(feeds)
    wanted: dict[Operation, None] = {}
    waiting: list[Operation] = []
    for fetch in fetches:
        if not (isinstance(fetch, Tensor) and fetch in fed):
            waiting.append(fetch.op if isinstance(fetch, Tensor) else fetch)
    while waiting:
        op = waiting.pop()
        if op in wanted:
            continue
        wanted[op] = None
        waiting += [t.op for t in op.inputs if t not in fed]
        waiting += [c for c in op.control_inputs if not _is_fed(c, fed)]
        waiting += _inside(op, fed)
    root = [op for op in wanted if op.name]
    order = {op: i for i, op in enumerate(root[0].graph.get_operations())} if root else {}
    top = sorted((op for op in root if op in order), key=order.__getitem__)
    inner = {op for op in top if op.region is not op.graph._root}
    calls = [op for op in top if op.function is not None and op not in inner]
    sources = [op for op in top if op.function is None]
    return calls, sources


def _is_fed(op: Operation, fed: set[Tensor]) -> bool:
    """Whether an operation is a placeholder whose value a run is given. Other operations happen as
    control inputs, also where what they give is fed."""
    return op.type == "Placeholder" and fed.issuperset(op.outputs)


def _inside(op: Operation, fed: set[Tensor]) -> list[Operation]:
    """The operations of the graph that the bodies of an operation use."""
    found: list[Operation] = []
    for body in op.bodies:
        found += _of_body(body, fed)
    return found


def _of_body(body: Body, fed: set[Tensor]) -> list[Operation]:
    found: list[Operation] = []
    if body.region is not None:
        inner = set(body.region.operations)
        for op in body.region.operations:
            found += [t.op for t in op.inputs if t not in fed and t.op not in inner and t.op.name]
            found += [c for c in op.control_inputs if c not in inner and not _is_fed(c, fed)]
            found += _inside(op, fed)
    found += [t.op for t in body.outer_tensors() if t not in fed and t.op.name]
    return found


class _Fetch:
    """How the values of fetches become what `Session.run` gives.

    Attributes:
        elements: the tensors and operations, each once.
    """

    def __init__(self, graph: Graph, fetches: Any) -> None:
        self._graph = graph
        self.elements: list[Any] = []
        self._places: dict[Any, int] = {}
        self._form = self._form_of(fetches)
        tensors = [e for e in self.elements if isinstance(e, Tensor)]
        self._number = {t: i for i, t in enumerate(tensors)}

    def _form_of(self, fetch: Any) -> Any:
        if fetch is None:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type \"NoneType\". Cannot be None"
            )
        if isinstance(fetch, list | tuple):
            return (fetch, [self._form_of(f) for f in fetch])
        if isinstance(fetch, Mapping):
            return (fetch, {k: self._form_of(f) for k, f in fetch.items()})
        if isinstance(fetch, Composite):
            parts = [p for p in fetch.parts_of(fetch) if p is not None]
            return (fetch, [self._form_of(p) for p in parts])
        return self._element(fetch)

    def _element(self, fetch: Any) -> Any:
        if isinstance(fetch, td.Tensor) and not td.is_symbolic_tensor(fetch):
            return Literal(fetch.numpy())  # what td.constant made within a graph's block
        try:
            found = self._graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type \"{type(fetch).__name__}\" must be a "
                f"string or Tensor. ({error})"
            ) from None
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({error})"
            ) from None
        if found not in self._places:
            self._places[found] = len(self.elements)
            self.elements.append(found)
        return found

    def results(self, values: list[Any]) -> Any:
        """The fetched structure with values; None for operations."""
        return self._filled(self._form, values)

    def _filled(self, form: Any, values: list[Any]) -> Any:
        if isinstance(form, Literal):
            return form.value
        if type(form) is not tuple:
            return values[self._number[form]] if isinstance(form, Tensor) else None
        like, inner = form
        if isinstance(inner, dict):
            filled = {k: self._filled(f, values) for k, f in inner.items()}
            return filled if type(like) is dict else type(like)(filled.items())
        found = [self._filled(f, values) for f in inner]
        if isinstance(like, Composite):
            return like.value(*found)
        if hasattr(like, "_fields"):
            return type(like)(*found)
        return found if isinstance(like, list) else type(like)(found)


class BaseSession:
    """Runs the operations of a graph and holds the values of its variables.

    Args:
        target: accepted: programs run in this process.
        graph: the graph; the default one where it is omitted.
        config: a `ConfigProto`.

    Raises:
        TypeError: `graph` is no graph, or `config` no ConfigProto.
    """

    def __init__(self, target: Any = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(
                f"Argument `graph` must be a tf.Graph, but got {type(graph).__name__!r}"
            )
        if config is not None and not isinstance(config, ConfigProto):
            raise TypeError(
                f"Argument `config` must be a tf.ConfigProto, but got {type(config).__name__!r}"
            )
        self._graph = get_default_graph() if graph is None else graph
        self._config = config
        self._is_closed = False
        self._target = target
        self._stored: dict[Any, td.Variable] = {}
        self._initialized: set[Any] = set()
        self.written: set[Any] = set()  # by the function that was traced last
        self._programs: dict[Any, Any] = {}
        self._lock = locks.reentrant_lock()
        self._blocks: list[Any] = []
        self.iterators: dict[str, Any] = {}  # of pipelines that are open, by their names
        self._resources: dict[Any, Any] = {}  # queues and readers, by what is in the graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> Any:
        return self._target

    # -- variables ---------------------------------------------------------------------------

    def is_variable(self, op: Operation) -> bool:
        """Whether an operation is a variable's."""
        return hasattr(op.owner, "storage")

    def storage_of(self, variable: Any) -> td.Variable:
        """The variable of treadle that holds the value which a variable has in this session."""
        found = self._stored.get(variable)
        if found is None:
            with self._lock, recording(None), taping(()):
                found = self._stored[variable] = variable.storage()
        return found

    def has_value(self, variable: Any) -> bool:
        """Whether a variable has a value in this session."""
        return variable in self._initialized or hasattr(variable, "shared")

    def give_value(self, variable: Any, value: Any) -> None:
        """Let a variable have a value in this session."""
        with recording(None), taping(()):
            self.storage_of(variable).assign(value)
        self._initialized.add(variable)

    def before(self, op: Operation, values: Values) -> None:
        """Note what an operation that is run again does with variables."""
        for tensor in op.inputs:
            if not self.is_variable(tensor.op) or not isinstance(values.get(tensor), td.Variable):
                continue
            reads = op.attributes.get("assigns") is not tensor
            if reads and not op.attributes.get("may_be_missing"):
                self.check_read(tensor.op)
            if tensor in op.attributes.get("writes", ()):
                self.written.add(tensor.op.owner)

    def check_read(self, op: Operation) -> None:
        """FailedPreconditionError where a variable has no value yet."""
        known = self._initialized | self.written
        if op.owner not in known and not hasattr(op.owner, "shared"):
            raise td.errors.FailedPreconditionError(
                None, op, f"Attempting to use uninitialized value {op.name}{at(user_origin())}"
            )

    def settle(self) -> None:
        """The variables that a program has written have values now."""
        self._initialized |= self.written
        self.written = set()

    def resource(self, owner: Any, make: Callable[[], Any]) -> Any:
        """What stands for an object of the graph in this session; made when it is first needed."""
        with self._lock:
            if owner not in self._resources:
                self._resources[owner] = make()
            return self._resources[owner]

    def streams_of(self, op: Operation) -> Any:
        """The random streams that an operation draws from."""
        return OperationStreams(self, op)

    # -- running -----------------------------------------------------------------------------

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Compute tensors and run operations.

        Args:
            fetches: a tensor, variable or operation, or its name, or nested lists, tuples and
                mappings of them.
            feed_dict: values for placeholders, and for any other tensors instead of their own. A
                tuple of tensors takes values of the same structure.
            options, run_metadata: accepted for TensorFlow programs.

        Sparse tensors are fed and fetched as a `SparseTensorValue`.

        Returns:
            Arrays (NumPy scalars for rank 0) in the structure of `fetches`; None for operations.

        Raises:
            RuntimeError: the session is closed, or its graph empty.
            TypeError, ValueError: something cannot be fetched or fed.
            FailedPreconditionError: a variable has no value yet.
            InvalidArgumentError: a placeholder is not fed; the exceptions of operations.
        """
        form = type(fetches)
        try:
            key = tuple(fetches) if form is list else fetches
            found = self._programs[key, form, tuple(feed_dict) if feed_dict else None]
        except (KeyError, TypeError):
            keys = feed_dict if isinstance(feed_dict, Mapping) else ()
            if any(isinstance(key, _OF_SEVERAL) for key in keys):
                return self.run(fetches, _flat(feed_dict), options, run_metadata)
            found = self._prepared(fetches, feed_dict)
        fetch, program = found
        if self._is_closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if form is Operation:
            program.run(feed_dict)
            return None
        try:
            values = program.run(feed_dict)
        except BaseException:
            self.written = set()
            raise
        if form is Tensor:
            return values[0]
        return fetch.results(values)

    def _prepared(self, fetches: Any, feed_dict: Any) -> Any:
        if self._is_closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if not self._graph.version:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        if feed_dict is not None and not isinstance(feed_dict, Mapping):
            raise TypeError(
                "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type object, "
                f"instead of {type(feed_dict).__name__!r}."
            )
        fetch = _Fetch(self._graph, fetches)
        feeds = [self._feed(key) for key in feed_dict or ()]
        for tensor in feeds:
            if not self._graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor} may not be fed.")
        key = ("program", tuple(fetch.elements), tuple(feeds))
        with self._lock:
            program = self._programs.get(key)
            if program is None:
                program = self._programs[key] = Program(self, fetch.elements, feeds)
        found = fetch, program
        try:
            kept = tuple(fetches) if type(fetches) is list else fetches
            hash(kept)
            self._programs[kept, type(fetches), tuple(feed_dict) if feed_dict else None] = found
        except TypeError:
            pass
        return found

    def _feed(self, key: Any) -> Tensor:
        try:
            return self._graph.as_graph_element(key, allow_operation=False)  # type: ignore[no-any-return]
        except (TypeError, ValueError, KeyError) as error:
            raise TypeError(
                f"Cannot interpret feed_dict key as Tensor: {error.args[0]}"
            ) from None

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Any:
        """A function of the fed values that runs the fetches."""
        feeds = list(feed_list or ())

        def call(*values: Any, **options: Any) -> Any:
            return self.run(fetches, dict(zip(feeds, values, strict=True)))

        return call

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        """NotImplementedError: programs run as a whole."""
        raise NotImplementedError(
            "Partial runs are not provided: run() with other fetches runs what these need"
            f"{at(user_origin())}"
        )

    partial_run = partial_run_setup

    def list_devices(self) -> list[Any]:
        return td.config.list_logical_devices()

    def close(self) -> None:
        """No more runs; the variables' values are let go. Runs that wait for a queue end with a
        CancelledError or an OutOfRangeError."""
        self._is_closed = True
        for resource in self._resources.values():
            if isinstance(resource, td.queue.QueueBase):
                resource.close(cancel_pending_enqueues=True)
        self._stored.clear()
        self._programs.clear()

    def as_default(self) -> Any:
        """In the block `Tensor.eval` and `Operation.run` use this session."""
        return _DefaultSession(self)


class _DefaultSession:
    def __init__(self, session: BaseSession) -> None:
        self._session = session

    def __enter__(self) -> BaseSession:
        thread.sessions = (*thread.sessions, self._session)
        return self._session

    def __exit__(self, *error: object) -> None:
        _remove(self._session)


def _remove(session: BaseSession) -> None:
    """Take the innermost mention of a session from the default ones."""
    found = thread.sessions
    for index in reversed(range(len(found))):
        if found[index] is session:
            thread.sessions = found[:index] + found[index + 1 :]
            break


class Session(BaseSession):
    """As `BaseSession`; a ``with`` block makes it and its graph the default ones, and closes it."""

    def __enter__(self) -> Session:
        block = self._graph.as_default()
        block.__enter__()
        thread.sessions = (*thread.sessions, self)
        self._blocks.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        _remove(self)
        self._blocks.pop().__exit__(*error)
        self.close()

    @staticmethod
    def reset(target: Any, containers: Any = None, config: Any = None) -> None:
        """Accepted: a session's variables are its own."""


class InteractiveSession(BaseSession):
    """A session that is the default one from the beginning until it is closed."""

    def __init__(self, target: Any = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        thread.sessions = (*thread.sessions, self)
        self._given = graph is not None
        if self._given:
            thread.graphs = (*thread.graphs, self._graph)

    def close(self) -> None:
        super().close()
        _remove(self)
        if self._given:
            thread.graphs = tuple(g for g in thread.graphs if g is not self._graph)


def get_default_session() -> BaseSession | None:
    """The session that `Tensor.eval` uses, if any."""
    found = thread.sessions
    return found[-1] if found else None
