"""Files and folders. What TensorFlow does was tried with 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import treadle as td

G, E = td.io.gfile, td.errors


def test_text_and_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "a.txt")
    with G.GFile(path, "w") as file:
        file.write("héllo\n")
        file.write("x\n")
    assert G.GFile(path).readlines() == ["héllo\n", "x\n"]
    assert list(G.GFile(path, "rb")) == [b"h\xc3\xa9llo\n", b"x\n"]
    assert (G.GFile(path).read(3), G.GFile(path).size()) == ("hé", 9)
    with pytest.raises(UnicodeDecodeError):  # in the middle of a character, as in TensorFlow
        G.GFile(path).read(2)
    file = G.GFile(path)
    assert (file.readline(), file.tell()) == ("héllo\n", 7)
    file.seek(1)
    assert (file.read(), file.tell(), file.seekable()) == ("éllo\nx\n", 9, True)
    file.close()
    with G.GFile(path, "a") as file:
        file.write("end")
    assert G.GFile(path).read() == "héllo\nx\nend"
    with G.GFile(path, "rb") as file:
        file.seek(-3, 2)
        assert file.read() == b"end"


def test_a_file_is_there_where_nothing_was_written(tmp_path: Path) -> None:
    with G.GFile(str(tmp_path / "empty"), "w"):
        pass
    assert G.stat(str(tmp_path / "empty")).length == 0


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda p: G.GFile(p + "/none").read(), E.NotFoundError),
        (lambda p: G.GFile(p + "/none", "w").read(), E.PermissionDeniedError),
        (lambda p: G.GFile(p + "/file").write("x"), E.PermissionDeniedError),
        (lambda p: G.GFile(p + "/file", "x"), E.InvalidArgumentError),
        (lambda p: G.GFile(p + "/file").seek(0, 5), E.InvalidArgumentError),
        (lambda p: G.GFile(p).read(), E.FailedPreconditionError),
        (lambda p: G.listdir(p + "/none"), E.NotFoundError),
        (lambda p: G.mkdir(p + "/none/x"), E.NotFoundError),
        (lambda p: G.mkdir(p + "/file"), E.AlreadyExistsError),
        (lambda p: G.remove(p + "/folder"), E.FailedPreconditionError),
        (lambda p: G.remove(p + "/none"), E.NotFoundError),
        (lambda p: G.copy(p + "/file", p + "/other"), E.AlreadyExistsError),
        (lambda p: G.copy(p + "/none", p + "/new"), E.NotFoundError),
        (lambda p: G.rename(p + "/file", p + "/other"), E.AlreadyExistsError),
        (lambda p: G.rename(p + "/none", p + "/new"), E.NotFoundError),
        (lambda p: G.rmtree(p + "/none"), E.NotFoundError),
        (lambda p: G.stat(p + "/none"), E.NotFoundError),
    ],
)
def test_errors(tmp_path: Path, use: Any, error: Any) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "other").write_text("2")
    (tmp_path / "folder").mkdir()
    with pytest.raises(error):
        use(str(tmp_path))


def test_folders(tmp_path: Path) -> None:
    top = str(tmp_path)
    G.makedirs(G.join(top, "a", "b"))
    G.makedirs(G.join(top, "a", "b"))
    G.mkdir(G.join(top, "a"))
    for name in ("x.txt", "y.txt"):
        with G.GFile(G.join(top, "a", name), "w") as file:
            file.write(name)
    assert sorted(G.listdir(G.join(top, "a"))) == ["b", "x.txt", "y.txt"]
    found = [(d.removeprefix(top), sorted(s), sorted(f)) for d, s, f in G.walk(top)]
    assert found == [("", ["a"], []), ("/a", ["b"], ["x.txt", "y.txt"]), ("/a/b", [], [])]
    assert [d.removeprefix(top) for d, _, _ in G.walk(top, topdown=False)] == ["/a/b", "/a", ""]
    assert [Path(p).name for p in G.glob([top + "/a/y*", top + "/a/x*"])] == ["y.txt", "x.txt"]
    G.copy(top + "/a/x.txt", top + "/a/y.txt", overwrite=True)
    assert G.GFile(top + "/a/y.txt").read() == "x.txt"
    G.rename(top + "/a/x.txt", top + "/a/y.txt", overwrite=True)
    assert not G.exists(top + "/a/x.txt")
    assert G.stat(top + "/a").is_directory and G.isdir(top + "/a") and G.exists(top + "/a/b")
    G.rmtree(top + "/a")
    assert not G.exists(top + "/a")
    errors: list[Any] = []
    assert list(G.walk(top + "/none", onerror=errors.append)) == []
    assert isinstance(errors[0], E.NotFoundError)
