"""td.test.TestCase as a base class: seeds, folders, errors, the runner."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

import treadle as td


class TestOfTensors(td.test.TestCase):
    def test_random_numbers_are_the_same_in_every_test(self):
        first = td.random.uniform([3]), np.random.rand(2)  # noqa: NPY002
        self.setUp()
        self.assertAllEqual(first[0], td.random.uniform([3]))
        self.assertAllEqual(first[1], np.random.rand(2))  # noqa: NPY002

    def test_folders(self):
        folder = self.get_temp_dir()
        assert os.path.isdir(folder) and folder == self.get_temp_dir()
        self.doCleanups()
        assert not os.path.exists(folder)

    def test_errors_of_operations(self):
        with self.assertRaisesOpError("3"), self.cached_session():
            td.linalg.solve(td.ones([2, 2]), td.ones([3, 1]))
        with self.assertRaisesRegex(AssertionError, r"not equal at \['a'\]"):
            self.assertAllEqual({"a": [1]}, {"a": [2]})


def test_the_runner(tmp_path):
    file = tmp_path / "cases.py"
    file.write_text(
        textwrap.dedent("""
        import treadle as td

        class Cases(td.test.TestCase):
            def test_good(self):
                self.assertAllClose(td.ones([2]), [1, 1])

            def test_bad(self):
                self.assertAllClose(td.ones([2]), [1, 2])

        td.test.main()
        """)
    )
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    # As in TensorFlow, `test_session` is one of them, which is skipped.
    assert "Ran 3 tests" in done.stderr and "failures=1, skipped=1" in done.stderr
    assert "not close" in done.stderr


def test_what_a_stream_is_given_is_captured(tmp_path: Path) -> None:
    class Case(td.test.TestCase):
        def runTest(self) -> None:
            with open(tmp_path / "stream", "w") as stream:
                with self.captureWritesToStream(stream) as written:
                    stream.write("captured")
                self.assertEqual(written.contents(), "captured")
                stream.write("as before")

    assert Case().run().wasSuccessful()
    assert (tmp_path / "stream").read_text() == "as before"
