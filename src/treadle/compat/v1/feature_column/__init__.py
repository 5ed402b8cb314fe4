"""``td.compat.v1.feature_column``: features of models from columns of data."""

from treadle.compat.v1.feature_column.columns import (
    bucketized_column,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    crossed_column,
    embedding_column,
    indicator_column,
    numeric_column,
    shared_embedding_columns,
    weighted_categorical_column,
)
from treadle.compat.v1.feature_column.models import (
    input_layer,
    linear_model,
    make_parse_example_spec,
)
from treadle.names import missing_in

__all__ = [
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "numeric_column",
    "shared_embedding_columns",
    "weighted_categorical_column",
]

__getattr__ = missing_in(__name__)
