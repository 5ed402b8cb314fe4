"""MultiWorkerMirroredStrategy: a replica in each of several processes, which MPI starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core import errors
from treadle.core.devices import find_device
from treadle.core.origin import at, user_origin
from treadle.core.tensor import Tensor
from treadle.distribute import mpi
from treadle.distribute.cluster_resolver import (
    ClusterResolver,
    MPIClusterResolver,
    TFConfigClusterResolver,
)
from treadle.distribute.options import (
    BYTES_PER_PACK,
    CommunicationImplementation,
    CommunicationOptions,
    InputOptions,
)
from treadle.distribute.packs import summed
from treadle.distribute.strategy import Strategy, default_devices
from treadle.distribute.values import ReduceOp, divided
from treadle.ops.control.collectives import ALL_GATHER, ALL_REDUCE
from treadle.ops.registry import run
from treadle.ops.state import Variable
from treadle.runtime.devices import join_workers


class MultiWorkerMirroredStrategy(Strategy):
    """A replica in each of several processes, on one machine or on many, with the same variables.

    MPI starts the processes: ``mpiexec -n 2 python program.py``; all of them run the same program.
    A process that MPI did not start is one worker alone. A worker computes on its machine's
    processor, or on a GPU where there is one: on machines with several the workers take one each.

    The workers meet in exchanges: where variables are made, in ``all_reduce``, ``gather`` and
    ``reduce``, and where a variable of metrics is read outside of ``run``. All of them must do the
    same of these in the same order. A worker that is lost ends the others with one error.

    Args:
        cluster_resolver: says which workers there are; it must agree with MPI.
        communication_options: a `td.distribute.experimental.CommunicationOptions`.

    Raises:
        ValueError: `cluster_resolver`, or TF_CONFIG, names another number of workers than MPI
            started.
        ImportError: MPI started several processes, and mpi4py is not installed.
    """

    _name = "MultiWorkerMirroredStrategy"

    def __init__(
        self, cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
    ) -> None:  # fmt: skip
        self._comm = mpi.workers()
        if self._comm is not None:
            self._worker, self._workers = self._comm.rank, self._comm.size
        _check_number(cluster_resolver, self._workers)
        super().__init__([_own_device(self._comm)])
        self._options = communication_options or CommunicationOptions()
        hosts = ["localhost"] if self._comm is None else self._comm.hosts
        self._resolver = cluster_resolver or MPIClusterResolver(hosts, self._worker)
        if self._comm is not None:
            self._comm.lookout.wait_at_most(self._options.timeout_seconds)
        self._by_nccl = self._joined()

    def _joined(self) -> bool:
        """Whether GPUs exchange values by NCCL."""
        way, comm = self._options.implementation, self._comm
        if comm is None or self._workers == 1 or way is CommunicationImplementation.RING:
            return False
        device, host = find_device(self._devices[0]), comm.hosts[comm.rank]
        is_wanted = way is CommunicationImplementation.NCCL
        return join_workers(device, comm.rank, comm.from_all, host, is_wanted)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """What knows the workers: `task_id` is the number of this one, and that of the chief,
        which writes checkpoints, is 0."""
        return self._resolver

    def _from_chief(self, value: Any) -> Any:
        return value if self._comm is None else self._comm.from_first(value)

    def _placed(self, number: int) -> Any:
        return td.device(self._devices[0]) if "GPU" in self._devices[0] else _Nowhere()

    def _agree(self, made: Variable) -> None:
        """Let a new variable begin with the value that it has at the first worker."""
        if self._workers == 1:
            return
        with td.init_scope():
            value = np.asarray(made.numpy())
            mine = (made.name, value.shape, made.dtype.name)
            theirs, found = self._from_chief((mine, value if self._worker == 0 else None))
            if theirs != mine:
                raise errors.FailedPreconditionError(
                    None, None,
                    f"worker {self._worker} makes variable {mine}, and worker 0 makes {theirs}: "
                    f"all workers must make the same ones in the same order{at(user_origin())}",
                )  # fmt: skip
            if self._worker:
                made.assign(td.convert_to_tensor(found, made.dtype))

    # -- exchanges ---------------------------------------------------------------------------------

    def _reduced(self, given: Sequence[Any], op: ReduceOp, options: Any = None) -> list[Any]:
        here = [self._reduced_here(value, ReduceOp.SUM) for value in given]
        if self._workers == 1:
            return here
        rows = [i for i, value in enumerate(here) if isinstance(value, td.IndexedSlices)]
        dense = [i for i in range(len(here)) if i not in rows]
        bound = (options or self._options).bytes_per_pack or BYTES_PER_PACK
        tensors = [td.convert_to_tensor(here[i]) for i in dense]
        for i, total in zip(dense, self._summed(tensors, bound), strict=True):
            here[i] = total if op is ReduceOp.SUM else divided(total, self._workers)
        for i in rows:
            here[i] = self._all_rows(here[i], op)
        return here

    def _all_rows(self, rows: td.IndexedSlices, op: ReduceOp) -> td.IndexedSlices:
        """The rows of all workers, one after the other."""
        values = self._gathered(rows.values, 0)
        if op is ReduceOp.MEAN:
            values = values / td.cast(self._workers, values.dtype)
        return td.IndexedSlices(values, self._gathered(rows.indices, 0), rows.dense_shape)

    def _summed(self, tensors: Sequence[Tensor], bound: int) -> list[Tensor]:
        """The sum of each tensor over all workers."""
        found = summed([[t] for t in tensors], bound, self._exchanged)
        return [total for (total,) in found]

    def _exchanged(self, joined: Sequence[Tensor]) -> list[Tensor]:
        by = {"by": "nccl"} if self._by_nccl else {}
        return [run(ALL_REDUCE, joined[0], how="sum", workers=self._workers, **by)]

    def _gathered(self, value: Any, axis: int) -> Any:
        part = super()._gathered(value, axis)
        if self._workers == 1:
            return part
        axis = axis % part.ndim
        order = [axis, *(i for i in range(part.ndim) if i != axis)]
        part = td.transpose(part, order)
        count = td.shape(part)[0]
        counts = run(ALL_GATHER, count, workers=self._workers)
        longest = td.reduce_max(counts)
        filled = td.pad(part, [[0, longest - count]] + [[0, 0]] * (part.ndim - 1))
        every = run(ALL_GATHER, filled, workers=self._workers)
        mask = td.sequence_mask(counts, longest)
        joined = td.boolean_mask(every, mask)
        back = [order.index(i) for i in range(part.ndim)]
        return td.transpose(joined, back)

    def _from_first(self, value: Any) -> Any:
        tensor = td.convert_to_tensor(value)
        mine = tensor if self._worker == 0 else td.zeros_like(tensor)
        return self._summed([mine], BYTES_PER_PACK)[0]

    # -- data --------------------------------------------------------------------------------------

    def experimental_distribute_dataset(
        self, dataset: td.data.Dataset, options: InputOptions | None = None
    ) -> Any:
        """See `Strategy.experimental_distribute_dataset`. Shuffles without a seed get that of the
        first worker, so that all workers share the same batches."""
        self.extended.agree_on_seeds(dataset)
        return super().experimental_distribute_dataset(dataset, options)


class _Nowhere:
    """A block that changes nothing."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def _own_device(comm: Any) -> str:
    """The device of this worker: of the GPUs of its machine those of one machine take one each."""
    names = default_devices()
    if "GPU" not in names[0] or comm is None:
        return names[0]
    here: int = comm.hosts[: comm.rank].count(comm.hosts[comm.rank])
    return names[here % len(names)]


def _check_number(resolver: ClusterResolver | None, workers: int) -> None:
    """Refuse a description of other workers than those that MPI started."""
    source = "the cluster resolver"
    if resolver is None:
        if not os.environ.get("TF_CONFIG"):
            return
        resolver, source = TFConfigClusterResolver(), "TF_CONFIG"
    jobs = resolver.cluster_spec().as_dict()
    named = sum(len(jobs.get(job, ())) for job in ("chief", "worker"))
    if named not in (0, workers):
        raise ValueError(
            f"{source} names {named} workers, and MPI started {workers}: start the program with "
            f"`mpiexec -n {named} python program.py`, which needs no TF_CONFIG{at(user_origin())}"
        )
