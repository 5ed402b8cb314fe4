"""`treadle upgrade`: programs for TensorFlow become programs for treadle."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.upgrades import snippets
from treadle.cli import main, old_names
from treadle.cli.rewriting import V1, V2, rewritten

GRAPHS = "tf.Session()\n"  # what makes a program one of TensorFlow 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import tensorflow as tf\n", "import treadle as tf\n"),
        ("import tensorflow\n", "import treadle as tensorflow\n"),
        ("import TensorFlow as tf\n", "import treadle as tf\n"),
        ("import os, tensorflow as tf  # both\n", "import os\nimport treadle as tf  # both\n"),
        ("import tensorflow.compat.v1 as tf\n", "import treadle.compat.v1 as tf\n"),
        ("import tensorflow.compat.v2 as tf\n", "import treadle as tf\n"),
        (
            "import tensorflow.contrib.eager as tfe\n",
            "import treadle.compat.v1.contrib.eager as tfe\n",
        ),
        ("from tensorflow import keras\n", "from treadle import keras\n"),
        ("import tensorflow.keras as K\n", "import treadle.keras as K\n"),
        (
            "from tensorflow.keras.layers import (\n    Dense,  # one\n    Conv2D as C,\n)\n",
            "from treadle.keras.layers import (\n    Dense,  # one\n    Conv2D as C,\n)\n",
        ),
        ("from keras.models import Sequential\n", "from treadle.keras.models import Sequential\n"),
        (
            "from keras.layers.convolutional import Conv2D\n",
            "from treadle.keras.layers import Conv2D\n",
        ),
        (
            "from tensorflow.python.platform import gfile\n",
            "from treadle.compat.v1 import gfile\n",
        ),
        (
            "from tensorflow.contrib.learn.python.learn import learn_runner\n",
            "from treadle.compat.v1.contrib.learn import learn_runner\n",
        ),
        ("import numpy as np\n", "import numpy as np\n"),
    ],
)
def test_imports(before: str, after: str) -> None:
    done = rewritten(before)
    assert done.text == after and not done.remarks


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tf.reduce_sum(x, keep_dims = True)", "tf.reduce_sum(x, keepdims = True)"),
        ("tf.reduce_max(x, reduction_indices=[1])", "tf.reduce_max(x, axis=[1])"),
        ("tf.nn.softmax(x, dim=0)", "tf.nn.softmax(x, axis=0)"),
        ("tf.cond(p, fn1=f, fn2=g)", "tf.cond(p, true_fn=f, false_fn=g)"),
        ("tf.concat(0, [x, tf.log(x)])", "tf.concat(axis=0, values=[x, tf.log(x)])"),
        ("tf.concat([x, x], 0)", "tf.concat([x, x], 0)"),
        ("tf.split(1, 3, x)", "tf.split(axis=1, num_or_size_splits=3, value=x)"),
        (
            "tf.nn.softmax_cross_entropy_with_logits(\n    a,\n    b)",
            "tf.nn.softmax_cross_entropy_with_logits(\n    logits=a,\n    labels=b)",
        ),
        ("tf.scalar_summary('é', x)", "tf.summary.scalar('é', x)"),
        ("tf.train.SummaryWriter(d)  # ü", "tf.summary.FileWriter(d)  # ü"),
        ("tf.merge_all_summaries()", "tf.summary.merge_all()"),
        ("tf.contrib.framework.nest.flatten(x)", "tf.nest.flatten(x)"),
        ("y = (tf\n     .inv(x))", "y = (tf.reciprocal(x))"),
        ("tf.select(p, tf.inv(x), x)", "tf.where(p, tf.reciprocal(x), x)"),
        ("tf.div(tf.mul(x, x), x)", "tf.div(tf.mul(x, x), x)"),  # compat.v1 has them
        ("tf.train.AdamOptimizer(0.1).minimize(l)", "tf.train.AdamOptimizer(0.1).minimize(l)"),
    ],
)
def test_names_and_arguments(before: str, after: str) -> None:
    done = rewritten(f"import tensorflow as tf\n{GRAPHS}{before}\n")
    assert done.text == f"import treadle.compat.v1 as tf\n{GRAPHS}{after}\n"
    assert not done.remarks and done.api == V1


def test_a_program_of_tensorflow_2() -> None:
    before = (
        "import tensorflow as tf\n"
        "loss = tf.reduce_mean(tf.compat.v2.square(x))\n"
        "sess = tf.compat.v1.Session()\n"
        "k = tf.keras\n"
        "g = tf.gradients(loss, x, colocate_gradients_with_ops=True)\n"
        "opt.minimize(loss, colocate_gradients_with_ops=True, var_list=v)\n"
    )
    done = rewritten(before)
    assert done.api == V2 and not done.remarks
    assert "tf.reduce_mean(tf.square(x))" in done.text
    assert "tf.compat.v1.Session()" in done.text
    assert "opt.minimize(loss, var_list=v)" in done.text


def test_what_a_person_has_to_look_at() -> None:
    done = rewritten(
        "import tensorflow as tf\n"
        "import tensorflow_probability as tfp\n"
        "from tensorflow.keras.layers import JaxLayer\n"
        "a = tf.raw_ops.CudnnRNN(i, v)\n"
        "b = tf.reduce_sum(x, colour=3)\n"
        "c = tf.nonesuch\n"
    )
    found = {r.line: r for r in done.remarks}
    assert list(found) == [2, 3, 4, 5, 6]
    assert found[2].advice.startswith("Write the density")
    assert "has no 'JaxLayer'" in found[3].reason and "numpy_function" in found[3].advice
    assert "td.add for AddV2" in found[4].advice
    assert found[5].reason == "reduce_sum has no argument 'colour'"
    assert found[5].advice == "It takes input_tensor, axis, keepdims, name"
    assert (found[6].text, found[6].reason) == ("tf.nonesuch", "td has no 'nonesuch'")
    assert done.text.startswith("import treadle as tf\nimport tensorflow_probability as tfp\n")


def test_what_a_program_adds_to_a_module_is_its_own() -> None:
    before = "import tensorflow as tf\ntf.model = tf.keras.Sequential()\ntf.model.summary()\n"
    done = rewritten(before)
    assert done.text == before.replace("import tensorflow", "import treadle")
    assert not done.remarks


def test_names_of_an_old_module_follow_its_import() -> None:
    done = rewritten("from keras.utils import np_utils\ny = np_utils.to_categorical([1])\n")
    assert done.text == "from treadle.keras import utils as np_utils\n" + (
        "y = np_utils.to_categorical([1])\n"
    )
    assert not done.remarks and done.api == V2


def test_no_python_3_is_left_alone() -> None:
    source = "import tensorflow as tf\nprint tf.Session().run(x)\n"
    done = rewritten(source)
    assert done.text == source and not done.api
    assert done.remarks[0].line == 2 and "not Python 3" in done.remarks[0].reason


def test_every_new_name_is_there() -> None:
    """A table of names that nobody has is of no use."""
    for new in old_names.NAMES.values():
        value: Any = importlib.import_module(V1)
        for name in new.split("."):
            value = getattr(value, name)


FOLDER = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "file", [p for p in sorted(FOLDER.rglob("*.py"))], ids=lambda p: str(p.relative_to(FOLDER))
)
def test_examples_written_for_tensorflow_become_themselves(file: Path) -> None:
    wanted = file.read_text()
    before = wanted.replace("import treadle.compat.v1 as", "import tensorflow.compat.v1 as")
    before = before.replace("treadle.compat.v1.contrib", "tensorflow.contrib")
    before = re.sub(r"\btreadle\b(?!\.datasets)(?=[\w. ]* (as|import) )", "tensorflow", before)
    assert before != wanted
    done = rewritten(before)
    assert done.text == wanted and not done.remarks


def test_snippets_of_articles_are_found() -> None:
    article = "文章 tf.add\nx = tf.add(1, 2)\nfor i in x:\n    tf.print(i)\n说明\nprint x\ny = 1\n"
    (found,) = snippets(article)
    assert found == (
        "import tensorflow as tf\nx = tf.add(1, 2)\nfor i in x:\n    tf.print(i)\n"
    )


# -- the command ---------------------------------------------------------------------------------


def test_a_file_is_shown(tmp_path: Path, capsys: Any) -> None:
    program = tmp_path / "a.py"
    program.write_text("import tensorflow as tf\ntf.raw_ops.CudnnRNN(x=1, y=2)\n")
    assert main(["upgrade", str(program)]) == 0
    shown = capsys.readouterr().out
    assert "-import tensorflow as tf\n+import treadle as tf\n" in shown
    assert "a.py: treadle, 1 edits, 1 place for you\n  line 2: tf.raw_ops.CudnnRNN\n" in shown
    assert program.read_text().startswith("import tensorflow")


def test_a_folder_is_written(tmp_path: Path, capsys: Any) -> None:
    inner = tmp_path / "in" / "sub"
    inner.mkdir(parents=True)
    (inner / "a.py").write_text("import tensorflow as tf\nx = tf.placeholder(tf.float32)\n")
    (inner / "b.py").write_bytes(b"# coding: latin-1\nimport tensorflow as tf  # \xe9\n")
    (inner / "c.py").write_bytes(b"\xff\xfe\x00")
    (inner / "data.csv").write_text("1,2\n")
    out, report = tmp_path / "out", tmp_path / "report.json"
    assert main(["upgrade", str(tmp_path / "in"), "--out", str(out), "--report", str(report)]) == 0
    assert (out / "sub/a.py").read_text().startswith("import treadle.compat.v1 as tf\n")
    assert "import treadle as tf  # é" in (out / "sub/b.py").read_text("latin-1")
    assert (out / "sub/data.csv").read_text() == "1,2\n"
    found = json.loads(report.read_text())
    assert found["sub/a.py"] == {"api": V1, "edits": 1, "remarks": []}
    assert "sub/c.py: no text" in capsys.readouterr().out


def test_what_is_no_path(tmp_path: Path, capsys: Any) -> None:
    assert main(["upgrade", str(tmp_path / "none.py")]) == 2
    assert "there is no" in capsys.readouterr().err
    assert main(["upgrade", str(tmp_path), "--out", str(tmp_path)]) == 2
