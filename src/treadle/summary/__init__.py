"""Files of events that TensorBoard shows: ``td.summary``.

The package tensorboard has their messages: ``pip install 'treadle[summary]'``.
"""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.summary import experimental
from treadle.summary.graphs import graph
from treadle.summary.traces import trace_export, trace_off, trace_on
from treadle.summary.values import (
    audio,
    histogram,
    image,
    import_event,
    scalar,
    summary_scope,
    text,
    write,
)
from treadle.summary.writers import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    record_if,
    should_record_summaries,
)

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "image",
    "import_event",
    "record_if",
    "scalar",
    "should_record_summaries",
    "summary_scope",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
