"""Settings of sessions: messages of TensorFlow's, whose fields programs may set and read."""

from __future__ import annotations

from typing import Any


class Message:
    """Fields that can be set and read; those that are messages themselves are made when they are
    first read. What they say about devices and threads of TensorFlow has no meaning here."""

    _fields: dict[str, Any] = {}

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in type(self)._fields:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        default = type(self)._fields[name]
        value = default() if isinstance(default, type) else default
        object.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self)._fields:
            raise AttributeError(f"Protocol message {type(self).__name__} has no {name!r} field.")
        object.__setattr__(self, name, value)

    def CopyFrom(self, other: Any) -> None:
        """Take the fields of another message of the kind."""
        self.__dict__.update(other.__dict__)

    MergeFrom = CopyFrom

    def HasField(self, name: str) -> bool:
        """Whether a field was set or read."""
        return name in self.__dict__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "".join(f"{name}: {value!r}\n" for name, value in self.__dict__.items())


class GPUOptions(Message):
    """Memory and devices of GPUs."""

    class Experimental(Message):
        """Accepted."""

        _fields = {
            "virtual_devices": list, "use_unified_memory": False, "collective_ring_order": ""
        }

    _fields = {
        "per_process_gpu_memory_fraction": 0.0, "allow_growth": False, "allocator_type": "",
        "deferred_deletion_bytes": 0, "visible_device_list": "", "force_gpu_compatible": False,
        "polling_active_delay_usecs": 0, "experimental": Experimental,
    }  # fmt: skip


class OptimizerOptions(Message):
    """What TensorFlow's own compiler does."""

    L1, L0 = 0, -1
    DEFAULT, OFF, ON_1, ON_2 = 0, -1, 1, 2
    _fields = {
        "do_common_subexpression_elimination": False, "do_constant_folding": False,
        "do_function_inlining": False, "opt_level": 0, "global_jit_level": 0,
        "max_folded_constant_in_bytes": 0, "cpu_global_jit": False,
    }  # fmt: skip


class RewriterConfig(Message):
    """What TensorFlow's own compiler does."""

    DEFAULT, ON, OFF, AGGRESSIVE = 0, 1, 2, 3
    _fields = dict.fromkeys(
        (
            "layout_optimizer", "constant_folding", "shape_optimization", "remapping",
            "arithmetic_optimization", "dependency_optimization", "loop_optimization",
            "function_optimization", "memory_optimization", "auto_mixed_precision",
            "disable_meta_optimizer", "min_graph_nodes",
        ),
        0,
    )  # fmt: skip


class GraphOptions(Message):
    """What TensorFlow's own compiler does."""

    _fields = {
        "optimizer_options": OptimizerOptions, "rewrite_options": RewriterConfig,
        "infer_shapes": False, "enable_recv_scheduling": False, "build_cost_model": 0,
        "place_pruned_graph": False, "enable_bfloat16_sendrecv": False,
    }  # fmt: skip


class ConfigProto(Message):
    """Settings of a session."""

    class Experimental(Message):
        """Accepted."""

        _fields = {
            "collective_group_leader": "", "executor_type": "", "xla_fusion_autotuner_thresh": 0
        }

    _fields = {
        "device_count": dict, "intra_op_parallelism_threads": 0, "inter_op_parallelism_threads": 0,
        "use_per_session_threads": False, "allow_soft_placement": False,
        "log_device_placement": False, "gpu_options": GPUOptions, "graph_options": GraphOptions,
        "operation_timeout_in_ms": 0, "isolate_session_state": False,
        "share_cluster_devices_in_session": False, "experimental": Experimental,
        "placement_period": 0, "device_filters": list,
    }  # fmt: skip


class RunOptions(Message):
    """Settings of a run."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = 0, 1, 2, 3
    _fields = {
        "trace_level": 0, "timeout_in_ms": 0, "inter_op_thread_pool": 0,
        "output_partition_graphs": False, "report_tensor_allocations_upon_oom": False,
    }  # fmt: skip


class RunMetadata(Message):
    """What TensorFlow tells about a run: nothing here; `td.inspect` shows programs."""

    _fields = {"step_stats": None, "cost_graph": None, "partition_graphs": list}
