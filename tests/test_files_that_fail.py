"""Whatever programs keep their work in: a damaged file, a full disk, a folder that may not be
written and a changed program are one clear error each, and nothing that was there is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.kinds_of_files import (
    KINDS,
    PLAIN,
    SIZE,
    WRITTEN_ONCE,
    files_below,
    numbers,
    writer_of,
)

CLEAR = (td.errors.OpError, ValueError)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each kind, which holds ones."""
    root = tmp_path_factory.mktemp("kinds")
    for name in (*KINDS, *PLAIN):
        (root / name).mkdir()
        writer_of(name)(root / name, 1)
    return root


@pytest.fixture
def one(written: Path, tmp_path: Path, name: str) -> Path:
    """A copy of the folder of a kind."""
    return Path(shutil.copytree(written / name, tmp_path / "copy"))


def outcome(name: str, path: Path) -> Any:
    """What is read, or the error."""
    try:
        return KINDS[name].read(path)
    except Exception as error:
        return error


def is_clear(error: Exception, path: Path) -> bool:
    """Whether the error is of a documented type, and names the file or what is wrong with it."""
    return isinstance(error, CLEAR) and str(path) in str(error)


@pytest.mark.parametrize("name", KINDS)
def test_it_is_read(one: Path, name: str) -> None:
    np.testing.assert_array_equal(KINDS[name].read(one), numbers(1))


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_found_or_does_not_matter(one: Path, name: str) -> None:
    rng, found = random.Random(7), 0
    for file in files_below(one):
        good = file.read_bytes()
        places = [rng.randrange(len(good) * 8) for _ in range(12)]
        for place in places:
            data = bytearray(good)
            data[place // 8] ^= 1 << place % 8
            file.write_bytes(data)
            result = outcome(name, one)
            if isinstance(result, Exception):
                assert is_clear(result, one), (file.name, place, result)
                found += 1
            else:
                np.testing.assert_array_equal(result, numbers(1), f"{file.name} {place}")
        file.write_bytes(good)
    assert found >= 5
    np.testing.assert_array_equal(KINDS[name].read(one), numbers(1))


@pytest.mark.parametrize("name", KINDS)
def test_a_truncated_file_is_found(one: Path, name: str) -> None:
    largest = max(files_below(one), key=lambda file: file.stat().st_size)
    good = largest.read_bytes()
    for size in (len(good) - 1, len(good) // 2, 20, 0):
        largest.write_bytes(good[:size])
        result = outcome(name, one)
        if name in ("records", "events") and size == 0:
            assert isinstance(result, ValueError | IndexError)  # there is nothing in it
        else:
            assert isinstance(result, Exception) and is_clear(result, one), (size, result)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.changed])
def test_a_changed_program_is_told(one: Path, name: str) -> None:
    changed = KINDS[name].changed
    assert changed is not None
    with pytest.raises(CLEAR) as refusal:
        changed(one)
    assert len(str(refusal.value)) > 40
    np.testing.assert_array_equal(KINDS[name].read(one), numbers(1))


@pytest.mark.parametrize(
    ("fault", "errors"),
    [("full", ("ResourceExhaustedError",)), ("closed", ("PermissionDeniedError",))],
)
def test_writing_that_fails_loses_nothing(
    written: Path, tmp_path: Path, fault: str, errors: tuple[str, ...]
) -> None:
    root = tmp_path / "all"
    shutil.copytree(written, root)
    for name in WRITTEN_ONCE:
        shutil.rmtree(root / name)
        (root / name).mkdir()
    if fault == "closed":
        for folder in [root, *root.rglob("*")]:
            folder.chmod(0o555 if folder.is_dir() else 0o444)
        if os.geteuid():
            root.chmod(0o755)  # what is compiled first is written there
        else:  # another user, who the process will be, passes the folders above
            for folder in [tmp_path, *tmp_path.parents]:
                mode = folder.stat().st_mode
                if mode & 0o111 != 0o111:
                    folder.chmod(mode | 0o111)
    before = {p: p.read_bytes() for p in files_below(root)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kinds_of_files", fault, str(root)], env=environment,
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for name, (kind, text) in json.loads(done.stdout.splitlines()[-1]).items():
        assert kind in errors, (name, kind, text)
        assert str(root / name) in text, (name, text)
    shutil.rmtree(root / "warm")
    for file in set(files_below(root / "events")) - set(before):  # new: has what is whole
        assert len(list(td.compat.v1.train.summary_iterator(str(file)))) == 1
        file.unlink()
    after = {p: p.read_bytes() for p in files_below(root)}
    assert set(after) == set(before)
    for path, content in before.items():
        assert after[path] == content, path
    for name in KINDS:
        if name not in WRITTEN_ONCE:
            np.testing.assert_array_equal(KINDS[name].read(root / name), np.ones(SIZE, np.float32))
