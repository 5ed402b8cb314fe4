"""``td.compat.v1.graph_util``: graphs as data."""

from treadle.compat.v1.graph_def import (
    convert_variables_to_constants,
    extract_sub_graph,
    import_graph_def,
    must_run_on_cpu,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)
from treadle.names import missing_in

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]

__getattr__ = missing_in(__name__)
