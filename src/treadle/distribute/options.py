"""How workers exchange values, and what an input function is told (`td.distribute`)."""

from __future__ import annotations

import enum

# Small tensors are sent together up to so many bytes: sending a megabyte takes a network a hundred
# times as long as to begin, so larger packs gain nothing.
BYTES_PER_PACK = 1 << 22


class CommunicationImplementation(enum.Enum):
    """Which library adds up the values of workers. AUTO is NCCL where each of them has a GPU of its
    own and NCCL is installed, else MPI. RING is MPI, which takes values of GPUs from the memory of
    the host, NCCL an error where NCCL cannot be used."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions:
    """How workers exchange values.

    Args:
        bytes_per_pack: tensors that are reduced together are sent in pieces of so many bytes, or
            one tensor where that is larger; 0: as many as pay.
        timeout_seconds: how long a worker may wait for the others in an exchange before all of them
            end with an error that names those that did not come. None: for ever, as long as they
            are alive.
        implementation: a `CommunicationImplementation`.

    Raises:
        ValueError: `bytes_per_pack` is negative.
    """

    Implementation = CommunicationImplementation

    def __init__(
        self, bytes_per_pack: int = 0, timeout_seconds: float | None = None,
        implementation: CommunicationImplementation = CommunicationImplementation.AUTO,
    ) -> None:  # fmt: skip
        if bytes_per_pack < 0:
            raise ValueError(f"bytes_per_pack must not be negative, got {bytes_per_pack}")
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = CommunicationImplementation(implementation)

    def __repr__(self) -> str:
        return (
            f"CommunicationOptions(bytes_per_pack={self.bytes_per_pack}, "
            f"timeout_seconds={self.timeout_seconds}, implementation={self.implementation.name})"
        )


class RunOptions:
    """Accepted by `Strategy.run` for TensorFlow programs."""

    def __init__(
        self, experimental_enable_dynamic_batch_size: bool = True,
        experimental_bucketizing_dynamic_shape: bool = False,
        experimental_xla_options: object = None,
    ) -> None:  # fmt: skip
        self.experimental_enable_dynamic_batch_size = experimental_enable_dynamic_batch_size
        self.experimental_bucketizing_dynamic_shape = experimental_bucketizing_dynamic_shape
        self.experimental_xla_options = experimental_xla_options


class InputReplicationMode(enum.Enum):
    """How often an input function is called: once for each worker, or for each replica."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions:
    """How datasets are distributed.

    Args:
        experimental_fetch_to_device, experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size: accepted for TensorFlow programs.
        experimental_replication_mode: an `InputReplicationMode`, for
            `Strategy.distribute_datasets_from_function`.
    """

    def __init__(
        self, experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
    ) -> None:  # fmt: skip
        fetches = experimental_fetch_to_device
        self.experimental_fetch_to_device = True if fetches is None else fetches
        self.experimental_replication_mode = experimental_replication_mode
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size


class InputContext:
    """What an input function is told (`Strategy.distribute_datasets_from_function`).

    Attributes:
        num_input_pipelines: how many times the function is called, by all workers together.
        input_pipeline_id: the number of this call.
        num_replicas_in_sync: how many replicas share a global batch.
    """

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:  # fmt: skip
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The examples of a replica's batch.

        Raises:
            ValueError: the global batch cannot be shared out evenly.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by "
                f"`num_replicas_in_sync` {self.num_replicas_in_sync}"
            )
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"td.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: "
            f"{self.num_input_pipelines})"
        )


class ValueContext:
    """What the function of `Strategy.experimental_distribute_values_from_function` is told.

    Attributes:
        replica_id_in_sync_group: the number of the replica.
        num_replicas_in_sync: how many there are.
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"td.distribute.ValueContext(replica id {self.replica_id_in_sync_group}, total "
            f"replicas in sync: {self.num_replicas_in_sync})"
        )
