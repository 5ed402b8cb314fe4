"""Strategy: a program computed by several replicas, on devices of one machine or on several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import treadle as td
from treadle.core.context import context
from treadle.core.devices import Device, find_device
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.distribute import contexts, datasets
from treadle.distribute.contexts import (
    experimental_set_strategy as experimental_set_strategy,
)
from treadle.distribute.contexts import (
    get_replica_context as get_replica_context,
)
from treadle.distribute.contexts import (
    get_strategy as get_strategy,
)
from treadle.distribute.contexts import (
    in_cross_replica_context as in_cross_replica_context,
)
from treadle.distribute.extended import StrategyExtended
from treadle.distribute.options import (
    BYTES_PER_PACK,
    CommunicationOptions,
    InputContext,
    InputOptions,
    InputReplicationMode,
    RunOptions,
    ValueContext,
)
from treadle.distribute.packs import summed
from treadle.distribute.replicas import ReplicaContext, run_in_turn
from treadle.distribute.values import (
    DistributedValues,
    Mirrored,
    PerReplica,
    ReduceOp,
    added,
    divided,
    local_values,
    reduce_op,
    selected,
)
from treadle.distribute.variables import DistributedVariable, SyncOnReadVariable, made_for
from treadle.ops.control.replicas import REDUCE_REPLICAS, STACK_REPLICAS
from treadle.ops.registry import Op, run
from treadle.ops.state import Variable, VariableAggregation
from treadle.runtime.devices import exchange
from treadle.tracing.replicated import exchanged


class Strategy:
    """How a program is computed by several replicas in sync.

    `MirroredStrategy`, `MultiWorkerMirroredStrategy` and `OneDeviceStrategy` are strategies.
    Variables are made in `scope`, and `run` calls a function for every replica.
    """

    _name = "Strategy"

    def __init__(self, devices: Sequence[str] = ("",)) -> None:
        self._devices = tuple(devices)
        self._functions: dict[int, tuple[Any, Any]] = {}  # what `run` made of functions
        self._extended = StrategyExtended(self)
        self._options = CommunicationOptions()

    # -- what there is -----------------------------------------------------------------------------

    @property
    def extended(self) -> StrategyExtended:
        """More of the strategy, for libraries."""
        return self._extended

    @property
    def cluster_resolver(self) -> Any:
        """What knows the workers; None where there is one."""
        return None

    @property
    def _local_replicas(self) -> int:
        """How many replicas run in this process."""
        return len(self._devices)

    @property
    def _first_replica(self) -> int:
        """The number of this process's first replica among those of all workers."""
        return self._worker * self._local_replicas

    _replica_devices: tuple[Device, ...] = ()  # where replicas have a device each

    def _working(self, number: int) -> AbstractContextManager[Any]:
        """A block in which something is done where a replica of this process is, where replicas
        have a device each; it is not the replica that does it."""
        return nullcontext()

    _worker, _workers = 0, 1  # the number of this process, and how many there are

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas compute a step together."""
        return self._local_replicas * self._workers

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.num_replicas_in_sync} replicas>"

    def __deepcopy__(self, memo: Any) -> Strategy:
        return self

    # -- scopes and replicas -----------------------------------------------------------------------

    def scope(self) -> _Scope:
        """A block in which the strategy is at work: variables made in it are the strategy's.

        Raises:
            RuntimeError: on entry, another strategy is at work.
        """
        return _Scope(self)

    def _made(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """The creator of variables in the scope."""
        with self._working(0):
            made = next_creator(**kwargs)
        self._agree(made)
        replaceable = "_is_plain" in vars(type(made)) or type(made)._is_layer
        return made_for(self, made) if replaceable else made

    def _agree(self, made: Variable) -> None:
        """Let a new variable begin with the same value everywhere."""

    def _placed(self, number: int) -> Any:
        """The device scope of a replica of this process."""
        if context.recorder is not None or not self._devices[number]:
            return nullcontext()  # a graph runs on one device
        return td.device(self._devices[number])

    def run(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Any:  # fmt: skip
        """Call a function for every replica.

        Args:
            fn: may be a `td.function`: the replicas of a process are then one program.
            args, kwargs: its arguments; of a `DistributedValues` a replica gets its own value.

        Returns:
            The structure that fn returns: of the values of several replicas of this process as
            `PerReplica`.

        Raises:
            TypeError: fn is no function.
        """
        if not callable(fn):
            raise TypeError(f"Strategy.run takes a function, not {fn!r}{at(user_origin())}")
        arguments = tuple(args) if isinstance(args, list | tuple) else (args,)
        given = dict(kwargs or {})
        if hasattr(fn, "get_concrete_function") and self._is_distributed:
            return self._compiled(fn)(*arguments, **given)
        if td.inside_function():
            fn = td.autograph.tf_convert(fn)
        return self._run(fn, arguments, given)

    @property
    def _is_distributed(self) -> bool:
        return self.num_replicas_in_sync > 1

    def _compiled(self, fn: Any) -> Any:
        """A function of all replicas of this process, from one of a replica."""
        known = self._functions.get(id(fn))
        if known is not None and known[0] is fn:
            return known[1]
        body = fn.python_function

        def replicas(*args: Any, **kwargs: Any) -> Any:
            return self._run(td.autograph.tf_convert(body), args, kwargs)

        made = td.function(autograph=False, reduce_retracing=True)(replicas)
        self._functions[id(fn)] = fn, made
        return made

    def _run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with self.scope():
            if self._local_replicas > 1:
                first, count = self._first_replica, self._local_replicas
                return run_in_turn(self, fn, args, kwargs, first, count)
            replica = ReplicaContext(self, self._first_replica)
            with contexts.within(self, replica), self._placed(0):
                return fn(*selected(0, args), **selected(0, dict(kwargs)))

    # -- from the values of replicas to one --------------------------------------------------------

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """The sum or mean of the values of all replicas.

        Args:
            reduce_op: a `ReduceOp` or its name.
            value: what `run` returned.
            axis: also reduced along this axis; a mean is one over all elements then, also where
                replicas have different numbers of them.

        Raises:
            ValueError: there is no such operation, or the value is none of replicas and there are
                several.
        """
        op = _op(reduce_op)
        if isinstance(value, SyncOnReadVariable):
            value = PerReplica([Variable.value(v) for v in value.values])
        with self.scope():
            if axis is None:
                return local_values(self._reduced([value], op)[0])[0]
            parts = [td.convert_to_tensor(v) for v in local_values(value)]
            axes = axis if isinstance(axis, list | tuple) else [axis]
            sums = PerReplica([td.reduce_sum(p, axes) for p in parts])
            if op is ReduceOp.SUM:
                return local_values(self._reduced([sums], op)[0])[0]
            counts = PerReplica([_count(p, axes) for p in parts])
            found = self._reduced([sums, counts], ReduceOp.SUM)
            total, count = (local_values(value)[0] for value in found)
            return total / td.cast(count, total.dtype)

    def _reduced(self, given: Sequence[Any], op: ReduceOp, options: Any = None) -> list[Any]:
        """Each of several values of replicas as their sum or mean; where replicas have devices of
        their own and nothing is traced, as a `Mirrored` with that on each of them."""
        return [self._reduced_here(value, op) for value in given]

    def _reduced_here(self, value: Any, op: ReduceOp) -> Any:
        """The sum or mean of the values of the replicas of this process."""
        if isinstance(value, DistributedValues) and len(value.values) == self._local_replicas:
            return added(value.values, op)
        if self._local_replicas == 1:
            return value
        if op is ReduceOp.MEAN:
            return value
        raise ValueError(
            f"A non-DistributedValues value {value!r} cannot be reduced with the given reduce op "
            f"{op}: all replicas have it{at(user_origin())}"
        )

    def _values_of(self, variables: Sequence[SyncOnReadVariable]) -> dict[int, Any]:
        """What variables are read as outside of replicas, by their ids. Sums and means are
        exchanged together."""
        found: dict[int, Any] = {}
        kinds: dict[ReduceOp, list[SyncOnReadVariable]] = {}
        for variable in variables:
            if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
                found[id(variable)] = self._from_first(variable.values[0].read_value())
            elif variable.aggregation is VariableAggregation.NONE:
                raise ValueError(
                    f"Variable {variable.name!r}: its replicas cannot be read as one without an "
                    "aggregation: give it one, such as td.VariableAggregation.SUM"
                    f"{at(user_origin())}"
                )
            else:
                op = ReduceOp.from_variable_aggregation(variable.aggregation)
                kinds.setdefault(op, []).append(variable)
        for op, alike in kinds.items():
            parts = [PerReplica([Variable.value(p) for p in v.values]) for v in alike]
            for variable, value in zip(alike, self._reduced(parts, op), strict=True):
                found[id(variable)] = value
        return found

    def _from_first(self, value: Any) -> Any:
        """A tensor as the first replica of all workers has it."""
        return value

    def _from_chief(self, value: Any) -> Any:
        """An object of Python as the first worker has it."""
        return value

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas, one after the other along an axis.

        Args:
            value: what `run` returned, or a structure of that. Sizes may differ along `axis`.
        """
        with self.scope():
            if isinstance(value, Mapping):
                return {k: self.gather(v, axis) for k, v in value.items()}
            if isinstance(value, list | tuple):
                return type(value)(self.gather(v, axis) for v in value)
            return self._gathered(value, axis)

    def _gathered(self, value: Any, axis: int) -> Any:
        parts = [td.convert_to_tensor(v) for v in local_values(value)]
        if parts[0].ndim == 0:
            raise ValueError(f"gather: scalars have no axis to put them along{at(user_origin())}")
        return parts[0] if len(parts) == 1 else td.concat(parts, axis)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process.

        Args:
            value: what `run` returned, or a variable made in the scope; of a structure of them, a
                structure for each replica.
        """
        kinds = (DistributedValues, DistributedVariable)
        if isinstance(value, kinds):
            return value.values
        if isinstance(value, list | tuple | Mapping):
            return tuple([selected(i, value, kinds) for i in range(self._local_replicas)])
        return (value,)

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[[ValueContext], Any]
    ) -> Any:
        """A value for each replica.

        Args:
            value_fn: called for each replica of this process, with a `ValueContext`.

        Returns:
            A `PerReplica`, or the value where this process has one replica.
        """
        made = []
        for i in range(self._local_replicas):
            about = ValueContext(self._first_replica + i, self.num_replicas_in_sync)
            with self._placed(i):
                made.append(value_fn(about))
        return PerReplica(made) if len(made) > 1 else made[0]

    # -- data --------------------------------------------------------------------------------------

    def experimental_distribute_dataset(
        self, dataset: td.data.Dataset, options: InputOptions | None = None
    ) -> datasets.DistributedDataset | td.data.Dataset:
        """A dataset whose batches are shared out among the replicas.

        The first replica gets the first examples of each batch, and so on: together they have the
        batches of `dataset`, whatever workers and replicas there are. All workers make the same
        dataset, so give shuffles a seed.

        Args:
            dataset: of batches; their sizes are those of all replicas together.
        """
        return datasets.shared_out(self, dataset)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], td.data.Dataset],
        options: InputOptions | None = None,
    ) -> datasets.DistributedDataset | td.data.Dataset:  # fmt: skip
        """A dataset of which each worker makes its own part.

        Args:
            dataset_fn: called once in each process with an `InputContext`; its batches are those of
                one replica, and replicas take them in turn.

        Raises:
            NotImplementedError: one call for each replica is asked for.
        """
        mode = options.experimental_replication_mode if options is not None else None
        if mode is InputReplicationMode.PER_REPLICA:
            raise NotImplementedError(
                "InputReplicationMode.PER_REPLICA is not supported: the function is called once "
                f"for each worker, and replicas take batches in turn{at(user_origin())}"
            )
        about = InputContext(self._workers, self._worker, self.num_replicas_in_sync)
        return datasets.taken_in_turn(self, dataset_fn(about))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    # -- names that TensorFlow 1 had ---------------------------------------------------------------

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """`experimental_local_results`."""
        return self.experimental_local_results(value)

    def experimental_run_v2(self, fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        """`run`."""
        return self.run(fn, args, kwargs)


_op = reduce_op  # (a parameter has the same name)


def _count(part: Tensor, axes: Sequence[int]) -> Tensor:
    """How many elements of a tensor are reduced along axes."""
    sizes = td.shape(part, td.int64)
    return td.reduce_prod(td.stack([sizes[a] for a in axes]))


class _Scope:
    """The block of `Strategy.scope`; it gives the strategy."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._entered: list[tuple[Any, ...]] = []

    def __enter__(self) -> Strategy:
        strategy, frame = self._strategy, contexts.current()
        if frame.strategy is strategy:
            self._entered.append(())
            return self._strategy
        if contexts.has_strategy():
            raise RuntimeError(
                "Mixing different td.distribute.Strategy objects: the scope of "
                f"{strategy!r} inside that of {frame.strategy!r}{at(user_origin())}"
            )
        blocks = contexts.within(strategy, None), td.variable_creator_scope(strategy._made)
        for block in blocks:
            block.__enter__()
        self._entered.append(blocks)
        return strategy

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._entered.pop()):
            block.__exit__(*error)


class _DefaultExtended(StrategyExtended):
    """That of the default strategy."""

    @property
    def is_default(self) -> bool:
        return True


class DefaultStrategy(Strategy):
    """The strategy of programs that enter no scope: one replica, on no device in particular."""

    _name = "DefaultStrategy"

    def __init__(self) -> None:
        super().__init__()
        self._extended = _DefaultExtended(self)

    def scope(self) -> Any:
        """A block that changes nothing.

        Raises:
            RuntimeError: another strategy is at work.
        """
        if contexts.has_strategy():
            raise RuntimeError(
                "Mixing different td.distribute.Strategy objects: the default one's scope inside "
                f"that of {contexts.get_strategy()!r}{at(user_origin())}"
            )
        return nullcontext(self)

    def _run(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        with contexts.within(self, ReplicaContext(self)):
            return fn(*selected(0, args), **selected(0, dict(kwargs)))


class OneDeviceStrategy(Strategy):
    """One replica on one device: a program written for several can be tried out on it.

    Args:
        device: its name, such as "/cpu:0" or "GPU:0".

    Raises:
        ValueError: it is no name of a device.
    """

    _name = "OneDeviceStrategy"

    def __init__(self, device: Any = "") -> None:
        super().__init__([_device_name(device)])

    def _placed(self, number: int) -> Any:
        host = self._devices[number].endswith("CPU:0")
        return nullcontext() if host else td.device(self._devices[number])

    def _made(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        with self._placed(0):
            return super()._made(next_creator, **kwargs)


def _device_name(device: Any) -> str:
    """The full name of a device."""
    name = td.DeviceSpec.from_string(str(getattr(device, "name", device)))
    full = td.DeviceSpec("localhost", 0, 0, "CPU", 0).make_merged_spec(name)
    return full.to_string()


def default_devices() -> list[str]:
    """The devices of `MirroredStrategy` where none are named: all GPUs, else all logical CPUs that
    are set up."""
    found = td.config.list_logical_devices("GPU") or td.config.list_logical_devices("CPU")
    return [_device_name(d) for d in found]


class CrossDeviceOps:
    """How the values of several GPUs are added up (`MirroredStrategy`). Those of logical CPUs,
    which share their memory, are added in the order of the replicas, whichever it is.

    Args:
        num_packs: into how many arrays the gradients of a step are packed at least.
    """

    _by = "auto"

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = num_packs


class NcclAllReduce(CrossDeviceOps):
    """By NVIDIA's NCCL, which is the default where it is installed and the devices are GPUs of
    their own each."""

    _by = "nccl"


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Each GPU adds up its part of the elements, in the order of the replicas, and copies it to the
    others: the default without NCCL."""

    _by = "copies"


class ReductionToOneDevice(CrossDeviceOps):
    """The first GPU adds up everything, in the order of the replicas, and copies it to the others.

    Args:
        reduce_to_device, accumulation_fn: accepted for TensorFlow programs.
    """

    _by = "one"

    def __init__(self, reduce_to_device: object = None, accumulation_fn: object = None) -> None:
        super().__init__()


def _computed_by_processor(names: Sequence[str], known: Iterable[str]) -> bool:
    """Whether GPUs are named on a machine that has none, where soft placement lets the processor
    take their place. Says so in a warning."""
    absent = [name for name in names if "GPU" in name]
    if not absent or any("GPU" in name for name in known):
        return False
    if not td.config.get_soft_device_placement():
        return False
    warnings.warn(
        f"MirroredStrategy: this machine has no GPU; the processor computes the replicas of "
        f"{absent}{at(user_origin())}",
        stacklevel=3,
    )
    return True


class MirroredStrategy(Strategy):
    """A replica on each of several devices of this machine, each with the same variables.

    Each GPU runs a program of its own, at the same time as the others; they meet where values are
    exchanged. Logical CPUs (`td.config.set_logical_device_configuration`) compute with the same
    processor, so they show what a program does on several devices, and are not faster than one.

    Args:
        devices: names of devices; all GPUs when omitted, or the logical CPUs where there are none.
            On a machine without GPUs the processor computes what GPUs are named for, as with
            `td.device`, with a warning.
        cross_device_ops: a `CrossDeviceOps`: how values of GPUs are added up. None: by NCCL where
            it can be, else by copies.

    Raises:
        ValueError: there is no such device, one is named twice, or they are of several kinds.
        TypeError: `cross_device_ops` is none.
        UnavailableError: NCCL is asked for, and cannot be used.
    """

    _name = "MirroredStrategy"

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        if isinstance(devices, str):
            devices = [devices]
        names = default_devices() if devices is None else [_device_name(d) for d in devices]
        if not names:
            raise ValueError("Must specify at least one device")
        if len(set(names)) < len(names):
            raise ValueError(f"No duplicates allowed in `devices` argument: {names}")
        known = {_device_name(d) for d in td.config.list_logical_devices()}
        is_soft = _computed_by_processor(names, known)
        for name in names:
            if name not in known and not (is_soft and "GPU" in name):
                raise ValueError(
                    f"There is no device {name}: there are {sorted(known)}. Logical CPUs are made "
                    "by td.config.set_logical_device_configuration"
                )
        gpus = [name for name in names if "GPU" in name]
        if gpus and len(gpus) < len(names) and not is_soft:
            raise ValueError(f"devices must be all GPUs or all CPUs, got {names}")
        if not isinstance(cross_device_ops, CrossDeviceOps | None):
            raise TypeError(
                "cross_device_ops must be a td.distribute.CrossDeviceOps, such as "
                f"td.distribute.NcclAllReduce(), not {cross_device_ops!r}{at(user_origin())}"
            )
        super().__init__(names)
        self._ops = cross_device_ops or CrossDeviceOps()
        if len(gpus) > 1 and not is_soft:
            self._replica_devices = tuple(find_device(name) for name in names)
            self._exchange = exchange(self._replica_devices, self._ops._by)

    def _working(self, number: int) -> AbstractContextManager[Any]:
        if not self._replica_devices:
            return nullcontext()
        block = ExitStack()
        block.enter_context(contexts.within(self, None, number))
        block.enter_context(td.device(self._devices[number]))
        return block

    # -- exchanges between GPUs --------------------------------------------------------------------

    def _reduced(self, given: Sequence[Any], op: ReduceOp, options: Any = None) -> list[Any]:
        if not self._replica_devices:
            return super()._reduced(given, op, options)
        found = list(given)
        parted = [i for i, v in enumerate(given) if isinstance(v, DistributedValues)]
        for i in range(len(given)):
            if i not in parted:  # a value that all replicas have
                found[i] = self._reduced_here(given[i], op)
        rows = [i for i in parted if isinstance(given[i].values[0], td.IndexedSlices)]
        dense = [i for i in parted if i not in rows]
        tensors = [[td.convert_to_tensor(v) for v in given[i].values] for i in dense]
        bound = self._bytes_per_pack(tensors, options)
        sums = summed(tensors, bound, self._exchanged, self._working)
        for i, total in zip(dense, sums, strict=True):
            found[i] = self._for_all(total, op)
        for i in rows:
            found[i] = self._all_rows(given[i].values, op)
        return found

    def _bytes_per_pack(self, tensors: Sequence[Sequence[Tensor]], options: Any) -> int:
        """How large packs may be."""
        bound: int = (options or self._options).bytes_per_pack or BYTES_PER_PACK
        if self._ops.num_packs > 1:
            sizes = [(t[0].shape.num_elements() or 0) * t[0].dtype.size for t in tensors]
            bound = min(bound, -(-sum(sizes) // self._ops.num_packs))
        return bound

    def _exchanged(self, joined: Sequence[Tensor], op: Op = REDUCE_REPLICAS) -> list[Tensor]:
        """What comes of an exchange of one tensor of each replica: one for all in a trace, else
        one on each device."""
        attrs: dict[str, Any] = {"by": self._ops._by}
        if op is REDUCE_REPLICAS:
            attrs["how"] = "sum"
        if context.recorder is not None:
            return [run(op, *joined, **attrs)]
        return exchanged(op, joined, self._replica_devices, attrs)

    def _for_all(self, totals: Sequence[Any], op: ReduceOp) -> Any:
        """Sums, of which there is one for all replicas or one for each, as a value."""
        if op is ReduceOp.MEAN:
            totals = [divided(t, self._local_replicas) for t in totals]
        return totals[0] if len(totals) == 1 else Mirrored(totals)

    def _all_rows(self, slices: Sequence[td.IndexedSlices], op: ReduceOp) -> td.IndexedSlices:
        """The rows of all replicas, one after the other."""
        rows = self._gathered(PerReplica([s.values for s in slices]), 0)
        if op is ReduceOp.MEAN:
            rows = rows / td.cast(len(slices), rows.dtype)
        indices = self._gathered(PerReplica([s.indices for s in slices]), 0)
        return td.IndexedSlices(rows, indices, slices[0].dense_shape)

    def _gathered(self, value: Any, axis: int) -> Any:
        parts = local_values(value)
        if not self._replica_devices or len(parts) == 1:
            return super()._gathered(value, axis)
        tensors = [td.convert_to_tensor(p) for p in parts]
        first = tensors[0].shape
        same = all(t.shape.as_list() == first.as_list() for t in tensors)
        if not (same and first.is_fully_defined() and first.rank and axis in (0, -first.rank)):
            return super()._gathered(PerReplica(tensors), axis)
        (stacked, *_) = self._exchanged(tensors, STACK_REPLICAS)
        return td.reshape(stacked, [-1, *first.as_list()[1:]])


class _Refused:
    """A strategy of TensorFlow that is not provided."""

    _why = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"td.distribute.{self._why}{at(user_origin())}")


class ParameterServerStrategy(_Refused):
    """Not provided: variables are not kept on servers of their own."""

    _why = (
        "ParameterServerStrategy is not provided: replicas compute in sync. Use "
        "td.distribute.MultiWorkerMirroredStrategy, with `mpiexec -n 2 python program.py`"
    )


class CentralStorageStrategy(MirroredStrategy):
    """A replica on each GPU, or one on the processor where there is none. Variables are as those of
    `MirroredStrategy`: the results of a program are the same.

    Args:
        compute_devices: names of the replicas' devices.
        parameter_device: the name of the device that TensorFlow keeps variables on; accepted for
            its programs.
    """

    _name = "CentralStorageStrategy"

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        gpus = [device.name for device in td.config.list_logical_devices("GPU")]
        super().__init__(gpus or ["/cpu:0"] if compute_devices is None else compute_devices)


class TPUStrategy(_Refused):
    """Not provided: there are processors and GPUs only."""

    _why = (
        "TPUStrategy is not provided: there are processors and GPUs only. Use "
        "td.distribute.MirroredStrategy or MultiWorkerMirroredStrategy"
    )


_the_default = DefaultStrategy()
contexts.set_default(_the_default, ReplicaContext(_the_default))
