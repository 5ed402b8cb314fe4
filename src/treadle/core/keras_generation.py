"""Which Keras programs mean: Keras 3, or Keras 2, which libraries of its time ask for.

What layers, losses, variables and files do otherwise in Keras 2 stands beside what they do in
Keras 3, and asks here. Names and arguments that only Keras 2 has are in
`treadle.compat.replacement`, which says that it is meant.
"""

from __future__ import annotations


class _Generation:
    """Attributes:
    is_2: whether Keras 2 is meant, for the whole process.
    """

    is_2 = False


generation = _Generation()
