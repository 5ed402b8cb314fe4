"""A recorder in the place of a GPU, for every Python that has this folder on its path.

`python -m benchmarks.gpu_session --rehearsal` puts it there, so that its stages, and the processes
that they start, find a GPU:0 without a GPU: kernels run on the processor. A process that is to see
no GPU (CUDA_VISIBLE_DEVICES is -1) sees none.
"""

import functools
import os

NAME = "a recorder in the place of a GPU"


def stand_in() -> None:
    """Let treadle find the recorder where it looks for GPUs, and benchmarks ask little of it."""
    from dataclasses import replace

    from benchmarks import device
    from tests.runtime.gpu.on_processor import GPU
    from tests.runtime.gpu.recorder import RecordingDriver
    from treadle.runtime.gpu import devices, discovery

    gpu = discovery.PhysicalGPU(0, NAME, 4 << 30, (9, 0))
    discovery._search = lambda: discovery._Found([gpu], "", 12090)  # type: ignore[assignment]
    discovery.may_find = lambda: True
    made = replace(GPU, name=NAME)
    devices.CupyDriver = lambda number, limit: RecordingDriver(made)  # type: ignore[assignment,misc]
    device.figures = functools.partial(device.figures, copied=1 << 16, calls=3, row=5)  # type: ignore[assignment]


if os.environ.get("CUDA_VISIBLE_DEVICES") != "-1":
    stand_in()
