"""Each test begins with an empty default graph."""

from collections.abc import Iterator

import pytest

import treadle.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as found:
        yield found
