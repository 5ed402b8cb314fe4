"""JPEG files: simplejpeg and Pillow give the same pixels, and what they refuse is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import treadle as td
from treadle.ops.image import codecs

KINDS: dict[str, dict[str, Any]] = {
    "420": {"subsampling": 2}, "422": {"subsampling": 1}, "444": {"subsampling": 0},
    "progressive": {"progressive": True}, "coarse": {"quality": 20},
}  # fmt: skip


def file_of(mode: str, **options: Any) -> bytes:
    """A JPEG file of 37 x 53 pixels of noise."""
    shape = (53, 37) if mode == "L" else (53, 37, len(mode))
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    file = io.BytesIO()
    Image.frombytes(mode, (37, 53), pixels.tobytes()).save(file, "JPEG", **options)
    return file.getvalue()


def by_pillow(contents: bytes, channels: int, monkeypatch: Any) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(codecs, "_simplejpeg", lambda: None)
        return np.asarray(td.image.decode_jpeg(contents, channels=channels))


@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_pixels(kind: str, mode: str, channels: int, monkeypatch: Any) -> None:
    contents = file_of(mode, **KINDS[kind])
    found = td.image.decode_jpeg(contents, channels=channels)
    assert found.shape == (53, 37, channels or (1 if mode == "L" else 3))
    np.testing.assert_array_equal(found, by_pillow(contents, channels, monkeypatch))


def test_simplejpeg_decodes(monkeypatch: Any) -> None:
    monkeypatch.setattr(codecs, "pillow", lambda: None)
    assert td.image.decode_jpeg(file_of("RGB")).shape == (53, 37, 3)


def test_a_part_of_the_size() -> None:
    assert td.image.decode_jpeg(file_of("RGB"), ratio=2).shape == (27, 19, 3)


@pytest.mark.parametrize("end", [20, 300, -200])
def test_truncated_files(end: int) -> None:
    with pytest.raises(td.errors.InvalidArgumentError, match="JPEG"):
        td.image.decode_jpeg(file_of("RGB")[:end])


def test_bytes_behind_the_picture(monkeypatch: Any) -> None:
    contents = file_of("RGB") + b"more"
    found = td.image.decode_jpeg(contents)
    np.testing.assert_array_equal(found, by_pillow(contents, 0, monkeypatch))
