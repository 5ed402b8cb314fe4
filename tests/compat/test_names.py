"""Every name of TensorFlow that the articles of the seeds use is there, at the same path.

Left out are the names that are misspelt in the articles.
"""

from functools import reduce
from pathlib import Path

import pytest

import treadle as td
import treadle.compat.v1 as tf

NAMES = Path(__file__).with_name("seed_names.txt").read_text().split()


@pytest.mark.parametrize("name", NAMES)
def test_name(name: str) -> None:
    first, *parts = name.split(".")
    modules = [tf, td] if first == "tf" else [tf.contrib.eager]
    found = []
    for module in modules:
        try:
            found.append(reduce(getattr, parts, module))
        except AttributeError:
            continue
    assert found


def test_a_name_that_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match="has no 'nonesuch'"):
        tf.nonesuch
    with pytest.raises(AttributeError, match="Ragged tensors are not provided"):
        tf.RaggedTensor


def test_programs_compare_versions() -> None:
    assert tf.VERSION == tf.__version__ == td.__version__
    assert tf.GIT_VERSION == tf.__git_version__ == td.version.GIT_VERSION
