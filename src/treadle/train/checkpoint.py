"""``td.train.Checkpoint``: the variables of a graph of objects, saved and restored."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core import dtypes, errors
from treadle.core.context import context, recording
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.ops.python_functions import numpy_function
from treadle.ops.state import Variable
from treadle.train import nodes, own_files, state_file, states, trackable
from treadle.train.nodes import PYTHON_STATE, VALUE, Node, Slot
from treadle.train.python_state import PythonState
from treadle.train.reader import File, open_file
from treadle.train.restoration import Restoration, by_names
from treadle.train.safetensors import Array
from treadle.train.trackable import Walk


class CheckpointOptions:
    """How checkpoints are written and read.

    Args:
        experimental_io_device: taken for TensorFlow's programs; files are this machine's.
        experimental_enable_async_checkpoint, enable_async: taken; `save` returns when all is on
            the disk.
        experimental_write_callbacks: functions, of nothing or of the path, called after writing.
        experimental_sharding_callback: None only; a checkpoint is one file.
        experimental_skip_slot_variables: whether slots of optimizers are left as they are.

    Raises:
        AssertionError: a function of several arguments.
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable[..., Any]] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        if experimental_sharding_callback is not None:
            raise NotImplementedError(
                "CheckpointOptions: experimental_sharding_callback is not supported: a checkpoint "
                "is one file"
            )
        callbacks = list(experimental_write_callbacks or ())
        if any(len(inspect.signature(function).parameters) > 1 for function in callbacks):
            raise AssertionError(
                "CheckpointOptions: a function of experimental_write_callbacks takes nothing, or "
                f"the path{at(user_origin())}"
            )
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = experimental_enable_async_checkpoint
        self.experimental_write_callbacks = callbacks if callbacks else None
        self.enable_async = enable_async
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback

    def __copy__(self) -> CheckpointOptions:
        """Options with a list of functions of their own."""
        return CheckpointOptions(**vars(self))

    def called_back(self, path: str) -> None:
        """Call the functions that wait for a file to be written."""
        for function in self.experimental_write_callbacks or ():
            function(path) if inspect.signature(function).parameters else function()


class _Status:
    """What `Checkpoint.restore` gives: what was restored can be asked here."""

    def expect_partial(self) -> _Status:
        """Say that parts of the checkpoint will not be used; nothing warns of them anyway."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing is left to be done: values are restored when objects are there."""

    run_restore_ops = initialize_or_restore


class InitializationOnlyStatus(_Status):
    """What `restore` gives where there is no checkpoint."""

    def assert_consumed(self) -> _Status:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed


class CheckpointLoadStatus(_Status):
    """What `restore` gives. Objects that came after it are looked for when it is asked."""

    def __init__(self, restoration: Restoration, checkpoint: Checkpoint) -> None:
        self._restoration, self._checkpoint = restoration, checkpoint

    def _walk(self) -> Walk:
        self._restoration.extend(self._checkpoint)
        return self._checkpoint._walk()

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raise an AssertionError unless all variables are restored and all values are used."""
        self.assert_existing_objects_matched()
        found = self._restoration
        unused = [
            found.paths.get(number, str(number))
            for number, node in enumerate(found.nodes)
            if node.values and number not in found.restored
        ]
        if unused:
            raise AssertionError(
                f"Unresolved object in checkpoint {found.file.name}: {len(unused)} values have no "
                f"object in the program: {_some(unused)}"
            )
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raise an AssertionError unless all variables that are there now are restored."""
        unbound = self._unmatched()
        if unbound:
            raise AssertionError(
                f"Found {len(unbound)} Python objects that were not bound to checkpointed values, "
                f"likely due to changes in the Python program: {_some(unbound)} are not in "
                f"{self._restoration.file.name}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Raise an AssertionError if no object but the root is in the checkpoint."""
        unbound = self._unmatched()
        if len(self._restoration.bound) <= 1:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this "
                f"means that the checkpoint {self._restoration.file.name} does not match the "
                f"Python program: {_some(unbound) or 'it has no variables yet'}"
            )
        return self

    def missing_among(self, variables: Sequence[Variable]) -> list[str]:
        """The names of the variables that are not restored."""
        found = self._restoration
        return [v.name for v in variables if found.number_of(v) not in found.restored]

    def _unmatched(self) -> list[str]:
        walk, found = self._walk(), self._restoration
        return [
            path
            for path, value, _ in walk.valued()
            if found.number_of(value) not in found.restored
        ]


class NameBasedStatus(_Status):
    """What `restore` gives for a checkpoint that has names of variables and no objects."""

    def __init__(self, file: File, checkpoint: Checkpoint) -> None:
        self._file, self._checkpoint = file, checkpoint
        by_names(file, self._variables())

    def _variables(self) -> list[Variable]:
        found = (value for _, value, _ in self._checkpoint._walk().valued())
        counter = self._checkpoint._counter
        return [v for v in found if isinstance(v, Variable) and v is not counter]

    def assert_existing_objects_matched(self) -> NameBasedStatus:
        """Raise an AssertionError unless all variables that are there now are restored; those that
        came since are restored now."""
        by_names(self._file, self._variables())
        names = [v.name.rpartition(":")[0] for v in self._variables()]
        missing = [name for name in names if name not in self._file.entries()]
        if missing:
            raise AssertionError(f"{self._file.name} has no values named {_some(missing)}")
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def missing_among(self, variables: Sequence[Variable]) -> list[str]:
        """The names of the variables that are not restored."""
        entries = self._file.entries()
        return [v.name for v in variables if v.name.rpartition(":")[0] not in entries]

    def assert_consumed(self) -> NameBasedStatus:
        """Raise an AssertionError unless all variables are restored and all values are used."""
        self.assert_existing_objects_matched()
        unused = set(self._file.entries()) - {v.name.rpartition(":")[0] for v in self._variables()}
        if unused:
            raise AssertionError(
                f"{self._file.name} has values that no variable is named as: "
                f"{_some(sorted(unused))}"
            )
        return self


def _some(names: Sequence[str]) -> str:
    """The first ten names."""
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


class Checkpoint:
    """Saves and restores the variables that are reached from objects.

    Variables are found as in TensorFlow: through attributes of Modules, layers, models and
    optimizers, and in lists, tuples and dicts. They are named by the way to them, so that a program
    that makes equal objects finds them again, whatever their variables' own names are.

    Args:
        root: an object whose references are those of the checkpoint itself.
        **kwargs: further objects; each is an attribute of the checkpoint, too.

    Raises:
        ValueError: an object cannot hold variables, or `root` refers to another one by that name.
    """

    _counter: Variable | None = None
    _root: Any = None

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if root is not None:
            _assert_trackable(root, "root")
            self._root = root
            kwargs["root"] = root
        known = {} if root is None else trackable.children(root)
        for name, value in sorted(kwargs.items()):
            _assert_trackable(value, name)
            if known.get(name, value) is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} "
                    "already exists."
                )
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        for restoration in self.__dict__.get("_restorations", ()):
            restoration.attribute_set(self, name, self.__dict__.get(name, value))

    def _trackable_children(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name[:1] != "_"}
        if self._counter is not None:
            own["save_counter"] = self._counter
        return own if self._root is None else trackable.children(self._root) | own

    def _walk(self) -> Walk:
        return Walk(self, self._root)

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called, an int64 scalar."""
        if self._counter is None:
            with recording(None):
                found = {} if self._root is None else trackable.children(self._root)
                counter = found.get("save_counter")
                if counter is None:
                    counter = Variable(
                        np.zeros([], np.int64), trainable=False, dtype=dtypes.int64,
                        name="save_counter",
                    )  # fmt: skip
            self._counter = counter
        return self._counter

    # -- saving ----------------------------------------------------------------------------------

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Write a checkpoint named by the prefix and its number, and note it as the latest one of
        its directory.

        The file is there whole or not at all; an older one stays until then.

        Returns:
            Its path without the suffix, for `restore`.

        Raises:
            NotImplementedError: called while a function is traced.
            ResourceExhaustedError: the disk is full.
            PermissionDeniedError: the directory cannot be written.
        """
        self.refuse_tracing("Checkpoint.save")
        counter = self.save_counter
        counter.assign_add(1)
        try:
            prefix = f"{os.fspath(file_prefix)}-{int(counter.numpy())}"
            path = self._write(prefix, self._walk(), options)
            state_file.update_checkpoint_state(os.path.dirname(path), path)
        except BaseException:
            counter.assign_sub(1)  # it was not saved
            raise
        return path

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> Any:
        """Write a checkpoint named by the prefix: without a number, and not noted as the latest.

        In a function that is traced it is written whenever the function comes there, with what the
        variables are at that moment: of the objects that were there when it was traced.

        Args:
            file_prefix: a path; in a function that is traced also a tensor.
            options: a `CheckpointOptions`.

        Returns:
            The prefix, for `read`; a string tensor in a function that is traced.

        Raises:
            ResourceExhaustedError, PermissionDeniedError: as `save`.
        """
        if context.recorder is not None:
            return self._write_traced(file_prefix, options)
        return self._write(os.fspath(file_prefix), self._walk(), options)

    def _write_traced(self, file_prefix: Any, options: CheckpointOptions | None) -> Any:
        """A step of a graph that writes the file, and gives the prefix."""
        walk = self._walk()
        variables = [v for v in walk.objects if trackable.attribute_of(v) == VALUE]
        prefix = file_prefix if isinstance(file_prefix, Tensor) else os.fspath(file_prefix)

        def write(name: Any, *arrays: Array) -> Any:
            given = {id(v): array for v, array in zip(variables, arrays, strict=True)}
            self._write(os.fsdecode(name), walk, options, given=given)
            return name

        values = [v.read_value() for v in variables]
        return numpy_function(write, [prefix, *values], dtypes.string, shape=())

    def refuse_tracing(self, what: str) -> None:
        """Refuse a method that needs numbers, which are not known while a function is traced."""
        if context.recorder is not None:
            raise NotImplementedError(
                f"Calling td.train.{what}() from a function is not supported: call it "
                f"between calls of functions{at(user_origin())}"
            )

    def _write(
        self, prefix: str, walk: Walk, options: CheckpointOptions | None,
        texts: dict[str, str] | None = None, given: Mapping[int, Array] | None = None,
    ) -> str:  # fmt: skip
        """Write a file.

        Args:
            walk: the objects.
            texts: further texts for it.
            given: values of variables, by their ids, in place of what they are now.
        """
        values: dict[str, Array] = {}
        described = [Node(edges) for edges in walk.edges]
        for number, (path, value) in enumerate(zip(walk.paths, walk.objects, strict=True)):
            attribute = trackable.attribute_of(value)
            if attribute is not None:
                name = nodes.key(path, attribute)
                described[number].values[attribute] = name
                if attribute == VALUE:
                    described[number].name = value.name.rpartition(":")[0]
                    array = value.numpy() if given is None else given[id(value)]
                    values[name] = np.asarray(array, value.dtype.np_dtype)
                elif attribute == PYTHON_STATE:
                    values[name] = np.array(_text_of(value, path), object)
                else:
                    values |= _state(value, name)
        skipped = options is not None and options.experimental_skip_slot_variables
        for number, slots in walk.slots.items():
            if not skipped:
                described[number].slots = [Slot(*slot) for slot in slots]
        own_files.write(prefix, described, values, texts or {})
        if options is not None:
            options.called_back(prefix)
        return prefix

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """Restore what `save` wrote, or TensorFlow's Checkpoint or Saver.

        Variables that are there get their values now, those that come later when they come. Where
        a value does not fit, or the file is damaged, nothing is changed.

        Args:
            save_path: what `save` or `latest_checkpoint` gave, or the folder of a saved model;
                None restores nothing.

        Returns:
            A status with `assert_consumed`, `assert_existing_objects_matched`,
            `assert_nontrivial_match` and `expect_partial`, which give the status again.

        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: it is damaged.
            ValueError: a variable has another shape than the checkpoint has for it.
            InvalidArgumentError: a variable has another dtype.
        """
        self.save_counter  # noqa: B018  (makes it, so that it is restored)
        return self.read(save_path, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> Any:
        """`restore` for what `write` wrote: the number of savings is not expected in it."""
        if save_path is None:
            return InitializationOnlyStatus()
        prefix = os.fspath(save_path)
        try:
            file = open_file(_variables_of_saved_model(prefix))
        except errors.NotFoundError as error:
            raise errors.NotFoundError(
                None, None,
                f"Error when restoring from checkpoint or SavedModel at {prefix}: {error.message}\n"
                "Please double-check that the path is correct. You may be missing the checkpoint "
                "suffix (e.g. the '-1' in 'path/to/ckpt-1').",
            ) from None  # fmt: skip
        if file.nodes is None:
            return NameBasedStatus(file, self)
        graph = file.nodes
        if options is not None and options.experimental_skip_slot_variables:
            graph = [Node(n.children, n.values, n.name) for n in graph]
        restoration = Restoration(file, graph)
        if self._root is not None:
            restoration.stands_for(self._root, 0)
        restoration.extend(self, 0)
        return CheckpointLoadStatus(restoration, self)

    def sync(self) -> None:
        """Nothing is left to be waited for."""


def _variables_of_saved_model(prefix: str) -> str:
    """The checkpoint within the folder of a saved model, of treadle or of TensorFlow; any other
    prefix as it is."""
    marks = ("saved_model.json", "saved_model.pb")
    is_saved_model = any(os.path.isfile(os.path.join(prefix, name)) for name in marks)
    return os.path.join(prefix, "variables", "variables") if is_saved_model else prefix


def _text_of(value: PythonState, path: str) -> bytes:
    """What an object keeps of itself.

    Raises:
        TypeError: no string.
    """
    text = value.serialize()
    if not isinstance(text, bytes | str):
        raise TypeError(
            f"serialize() of {path!r} must return bytes or a string, not {text!r}"
        )
    return text.encode() if isinstance(text, str) else text


def _state(value: Any, name: str) -> dict[str, Array]:
    """The values of an object that describes itself: a text, and the arrays in it."""
    found: dict[str, Array] = {}

    def keep(array: Array) -> str:
        place = f"{name}/{len(found)}"
        found[place] = array
        return place

    text = states.to_text(value._state_dict(), keep, name)
    found[name] = np.array(text.encode(), object)
    return found


def _assert_trackable(value: Any, name: str) -> None:
    if not trackable.is_trackable(value):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object (an object with "
            f"variables: a Module, layer, model, optimizer, Variable, or a list or dict of them), "
            f"got {value!r}."
        )
