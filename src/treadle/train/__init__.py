"""``td.train``: examples, records of named features."""

from typing import TYPE_CHECKING

from treadle.core.refusals import explain_errors
from treadle.names import provided

if TYPE_CHECKING:
    from treadle.io.messages import (
        BytesList,
        Example,
        Feature,
        FeatureList,
        FeatureLists,
        Features,
        FloatList,
        Int64List,
        SequenceExample,
    )

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]

explain_errors(__name__)
__getattr__ = provided(
    __name__,
    {
        "treadle.io.messages": """
            BytesList Example Feature FeatureList FeatureLists Features FloatList Int64List
            SequenceExample
            """,
    },
)
