"""``td.compat.v1.contrib``: what programs use most of TensorFlow's contributed modules."""

from treadle.compat.v1.contrib import (
    crf,
    data,
    distributions,
    eager,
    framework,
    graph_editor,
    layers,
    learn,
    rnn,
    seq2seq,
    slim,
    summary,
    tensorboard,
    training,
    util,
)
from treadle.names import missing_in

__all__ = [
    "crf",
    "data",
    "distributions",
    "eager",
    "framework",
    "graph_editor",
    "layers",
    "learn",
    "rnn",
    "seq2seq",
    "slim",
    "summary",
    "tensorboard",
    "training",
    "util",
]

__getattr__ = missing_in(__name__)
