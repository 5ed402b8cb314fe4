"""Every name of TensorFlow that the articles of the seeds use is there, at the same path.

Left out are the names that are misspelt in the articles.
"""

from functools import reduce
from pathlib import Path

import pytest

import treadle as td
import treadle.compat.v1 as tf
from tests.compat import v1_names

NAMES = Path(__file__).with_name("seed_names.txt").read_text().split()


def test_names() -> None:
    assert len(NAMES) > 150 and not [name for name in NAMES if not is_there(name)]


def is_there(name: str) -> bool:
    first, *parts = name.split(".")
    for module in [tf, td] if first == "tf" else [tf.contrib.eager]:
        try:
            reduce(getattr, parts, module)
        except AttributeError:
            continue
        return True
    return False


def test_a_name_that_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match="has no 'nonesuch'"):
        tf.nonesuch
    with pytest.raises(AttributeError, match="Ragged tensors are not provided"):
        tf.RaggedTensor


# Where names are those of a class or of a module below `treadle.names`, which cannot say more.
_WITHOUT_WORDS = ("errors.", "version.", "saved_model.constants.", "saved_model.signature_def_")


def test_what_is_missing_of_tensorflow_1_says_what_to_use() -> None:
    gone = v1_names.missing(tf)
    assert len(gone) < 480
    for name, text in gone.items():
        if not name.startswith(_WITHOUT_WORDS):
            assert ". " in text and "not supported yet" not in text, text
            assert "Near it" not in text, text


@pytest.mark.parametrize("name", ["factorization", "boosted_trees", "tensor_forest", "tpu"])
def test_contributed_modules_that_are_left_out_say_what_to_use(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"contrib has no '{name}'\. [A-Z].*(use|by) "):
        getattr(tf.contrib, name)


def test_programs_compare_versions() -> None:
    assert tf.VERSION == tf.__version__ == td.__version__
    assert tf.GIT_VERSION == tf.__git_version__ == td.version.GIT_VERSION
