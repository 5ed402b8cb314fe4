"""Files of images decoded and encoded, by Pillow: compiled programs call it.

Pillow is an extra (``pip install 'treadle[image]'``), loaded when the first of these is called.
The same extra brings simplejpeg, which decodes JPEG files by the same library (libjpeg-turbo) as
Pillow, straight into an array, in half of the time. Pillow decodes those that simplejpeg refuses.
"""

from __future__ import annotations

import functools
import importlib
import io
from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.origin import at, user_origin
from treadle.core.spec import Spec, TensorSpec
from treadle.core.tensor import NDArray, Tensor
from treadle.ops.conversion import convert_to_tensor
from treadle.ops.elementwise.casting import cast
from treadle.ops.elementwise.comparison import equal
from treadle.ops.image import png
from treadle.ops.registry import Op, register, run
from treadle.ops.shaping.unknown_rank import of_parts, specs_of_parts
from treadle.ops.strings.parts import substr
from treadle.ops.strings.texts import STRINGS, invalid, string_tensor

_STARTS = {
    "jpeg": (b"\xff\xd8\xff",), "png": (b"\x89PNG\r\n",), "gif": (b"GIF87a", b"GIF89a"),
    "bmp": (b"BM",), "webp": (b"RIFF",),
}  # fmt: skip
# What a function for one kind of file takes beside it, as in TensorFlow.
_TAKES = {
    "jpeg": {"jpeg", "png", "gif"}, "png": {"jpeg", "png", "gif"}, "gif": {"jpeg", "png", "gif"},
    "bmp": {"bmp"}, "webp": {"webp"}, "image": set(_STARTS),
}  # fmt: skip
_CHANNELS = {
    "jpeg": (0, 1, 3), "png": (0, 1, 3, 4), "gif": (0, 3), "bmp": (0, 3, 4), "webp": (0, 3, 4),
}  # fmt: skip


def pillow() -> Any:
    """The module PIL.Image.

    Raises:
        ImportError: it is not installed; the text has the command that brings it.
    """
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        text = "files of images are read and written by Pillow, which is not installed: "
        raise ImportError(f"{text}pip install 'treadle[image]'{at(user_origin())}") from None


# -- decoding --------------------------------------------------------------------------------------


@functools.cache
def _simplejpeg() -> Any:
    """The module simplejpeg, or None where it is not installed."""
    try:
        return importlib.import_module("simplejpeg")
    except ImportError:
        return None


_SPACES = {"Gray": "GRAY", "YCbCr": "RGB", "RGB": "RGB"}  # of a file -> of its pixels
_SPACE_OF = {1: "GRAY", 3: "RGB"}  # channels that are wanted -> the space of the pixels


def _plain_jpeg(contents: bytes, channels: int) -> NDArray | None:
    """The pixels of a JPEG file; None where Pillow has to look at it: it is damaged, or its colors
    are others than gray and RGB."""
    jpeg = _simplejpeg()
    if jpeg is None:
        return None
    try:
        space = _SPACES.get(jpeg.decode_jpeg_header(contents)[2])
        if space is None:
            return None
        found: NDArray = jpeg.decode_jpeg(contents, _SPACE_OF.get(channels, space))
        return found
    except ValueError:
        return None


def _kind_of(contents: bytes) -> str:
    for kind, starts in _STARTS.items():
        if contents.startswith(starts):
            return kind
    raise invalid(
        "empty contents" if not contents else
        "unknown image file format: one of JPEG, PNG, GIF, BMP and WebP is needed"
    )  # fmt: skip


def _frames(image: Any) -> list[Any]:
    """The pictures of an animation, or the one that there is."""
    found = []
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        found.append(image.copy())
    return found


def _pixels(image: Any, channels: int, kind: str) -> NDArray:
    """A picture as [height, width, channels], uint8 or (of a PNG) uint16."""
    mode = image.mode
    if mode not in ("L", "LA", "RGB", "RGBA", "I;16", "I"):
        clear = "transparency" in image.info or mode == "PA"
        mode = "L" if mode == "1" else "RGBA" if clear else "RGB"
        image = image.convert(mode)
    pixels = np.asarray(image)
    if mode == "I":
        pixels = pixels.astype(np.uint16)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return _with_channels(pixels, channels or pixels.shape[2])


def _with_channels(pixels: NDArray, channels: int) -> NDArray:
    colors = pixels[:, :, : 3 if pixels.shape[2] >= 3 else 1]
    if channels == 2 or channels == pixels.shape[2]:
        return pixels
    if channels == 1:
        return _gray(colors) if colors.shape[2] == 3 else colors
    colors = np.broadcast_to(colors, (*colors.shape[:2], 3))
    if channels == 3:
        return colors
    opaque = pixels[:, :, -1:] if pixels.shape[2] in (2, 4) else None
    if opaque is None:
        opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([colors, opaque], 2)


def _gray(colors: NDArray) -> NDArray:
    """The brightness as libpng computes it, in 32768ths; that of 16 bits is rounded."""
    weights = np.array([9797, 19234, 3737], np.int64)
    half = 16384 if colors.dtype == np.uint16 else 0
    found: NDArray = ((colors * weights).sum(2, keepdims=True) + half) >> 15
    return found.astype(colors.dtype)


def _in_dtype(pixels: NDArray, dtype: DType, kind: str) -> NDArray:
    """Integers of 8 or 16 bits in the wanted dtype."""
    if dtype is dtypes.float32:
        return pixels.astype(np.float32) / np.float32(np.iinfo(pixels.dtype).max)
    if dtype.np_dtype == pixels.dtype:
        return np.ascontiguousarray(pixels)
    if dtype is dtypes.uint8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257 if kind == "png" else 256)


def _decoded(
    contents: bytes, wanted: str, channels: int, dtype: DType, ratio: int, frames: bool
) -> NDArray:
    kind = _kind_of(contents)
    if kind not in _TAKES[wanted]:
        raise invalid(f"{kind.upper()} contents are not for decode_{wanted}: use decode_{kind}")
    if channels not in _CHANNELS[kind]:
        raise invalid(f"channels must be one of {_CHANNELS[kind]} for {kind.upper()}: {channels}")
    if kind == "webp" and dtype is not dtypes.uint8:
        raise invalid("WebP files are decoded to uint8")
    plain = _plain_jpeg(contents, channels) if kind == "jpeg" and ratio == 1 else None
    if plain is not None:
        return _in_dtype(plain, dtype, kind)
    try:
        if kind == "png" and png.is_deep(contents):
            pixels = png.read_deep(contents)
            return _in_dtype(_with_channels(pixels, channels or pixels.shape[2]), dtype, kind)
        with pillow().open(io.BytesIO(contents)) as image:
            if kind == "jpeg":
                mode = "L" if channels == 1 else image.mode
                smaller = max(image.width // ratio, 1), max(image.height // ratio, 1)
                image.draft(mode, smaller)
            pictures = _frames(image) if kind in ("gif", "webp") else [image]
            if kind == "jpeg" and channels == 1:
                pictures = [image.convert("L")]
            channels = 3 if kind == "gif" else channels
            found = [_in_dtype(_pixels(p, channels, kind), dtype, kind) for p in pictures]
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise invalid(f"invalid {kind.upper()} data: {error}") from None
    animated = kind in ("gif", "webp") and wanted == "image"
    return np.stack(found) if frames and (animated or wanted in ("gif", "webp")) else found[0]


def _infer_decode(
    contents: Spec, *, wanted: str, channels: int, dtype: DType, ratio: int, frames: bool
) -> Any:
    if contents.dims:
        raise invalid(f"decode_{wanted}: contents must be a scalar string")
    if wanted == "image" and frames:
        parts = specs_of_parts(dtype)
        return tuple(spec.with_fresh_symbols("decoded") for spec in parts)
    channels = 3 if wanted == "gif" else channels
    dims = [None] * (wanted in ("gif", "webp")) + [None, None, channels or None]
    return TensorSpec(dims, dtype).with_fresh_symbols("decoded")


def _decode(contents: NDArray, *, wanted: str, **attrs: Any) -> Any:
    if contents.ndim:
        raise invalid(f"decode_{wanted}: contents must be a scalar string")
    found = _decoded(contents.item(), wanted, **attrs)
    if wanted == "image" and attrs["frames"]:
        return found.reshape(-1), np.array(found.shape, np.int64)
    return found


DECODE = register(
    Op("decode_image", _infer_decode, _decode, tags=STRINGS | {"gives_own_arrays"})
)


def _run_decode(
    wanted: str, contents: Any, channels: int, dtype: Any, *allowed: DType, ratio: int = 1,
    frames: bool = True,
) -> Any:  # fmt: skip
    pillow()
    kind = dtypes.as_dtype(dtype)
    if kind not in allowed:
        names = " or ".join(d.name for d in allowed)
        raise invalid(f"decode_{wanted} gives {names}, not {kind.name}{at(user_origin())}")
    if channels not in (0, 1, 3, 4):
        raise invalid(f"channels must be 0, 1, 3 or 4, not {channels}{at(user_origin())}")
    return run(
        DECODE, string_tensor(contents), wanted=wanted, channels=int(channels), dtype=kind,
        ratio=ratio, frames=frames,
    )  # fmt: skip


def decode_pixels(contents: Any, channels: Any, dtype: Any, expand_animations: bool) -> Tensor:
    """`decode_image` for uint8, uint16 and float32."""
    found = _run_decode(
        "image", contents, channels or 0, dtype, dtypes.uint8, dtypes.uint16, dtypes.float32,
        frames=bool(expand_animations),
    )  # fmt: skip
    return of_parts(*found) if expand_animations else found  # type: ignore[no-any-return]


def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1, dct_method: str = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The image of a JPEG file, [height, width, channels] uint8; PNG and GIF files do as well.

    Pillow must be installed: ``pip install 'treadle[image]'``. The transform is the accurate one,
    TensorFlow's with ``dct_method="INTEGER_ACCURATE"``.

    Args:
        contents: a scalar string.
        channels: 1 for gray, 3 for RGB, 0 for what the file has.
        ratio: 1, 2, 4 or 8: height and width are divided by it.
        fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method: accepted for
            TensorFlow programs.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    if ratio not in (1, 2, 4, 8):
        raise invalid(f"decode_jpeg: ratio must be 1, 2, 4 or 8, not {ratio}{at(user_origin())}")
    return _run_decode("jpeg", contents, channels, dtypes.uint8, dtypes.uint8, ratio=ratio)  # type: ignore[no-any-return]


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The image of a PNG file, [height, width, channels]; JPEG and GIF files do as well.

    Args:
        contents: a scalar string.
        channels: 1 for gray, 3 for RGB, 4 for RGBA, 0 for what the file has.
        dtype: uint8 or uint16.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    return _run_decode("png", contents, channels, dtype, dtypes.uint8, dtypes.uint16)  # type: ignore[no-any-return]


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The pictures of a GIF file, [pictures, height, width, 3] uint8.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    return _run_decode("gif", contents, 0, dtypes.uint8, dtypes.uint8)  # type: ignore[no-any-return]


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The image of a BMP file, [height, width, channels] uint8.

    Args:
        channels: 3 for RGB, 4 for RGBA, 0 for what the file has.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    return _run_decode("bmp", contents, channels, dtypes.uint8, dtypes.uint8)  # type: ignore[no-any-return]


def decode_webp(
    contents: Any, channels: int = 0, dtype: Any = dtypes.uint8, name: str | None = None
) -> Tensor:
    """The pictures of a WebP file, [pictures, height, width, channels] uint8.

    Args:
        channels: 3 for RGB, 4 for RGBA, 0 for what the file has.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    return _run_decode("webp", contents, channels, dtype, dtypes.uint8)  # type: ignore[no-any-return]


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Whether strings begin as JPEG files do; bools of their shape."""
    return equal(substr(contents, 0, 3), b"\xff\xd8\xff")


def _jpeg_shape(contents: NDArray, *, dtype: DType) -> NDArray:
    if contents.ndim or not contents.item().startswith(_STARTS["jpeg"]):
        raise invalid("extract_jpeg_shape: contents must be a scalar string, a JPEG file")
    try:
        with pillow().open(io.BytesIO(contents.item())) as image:
            return np.array([image.height, image.width, len(image.getbands())], dtype.np_dtype)
    except OSError as error:
        raise invalid(f"invalid JPEG data: {error}") from None


JPEG_SHAPE = register(
    Op("jpeg_shape", lambda x, *, dtype: TensorSpec((3,), dtype), _jpeg_shape, tags=STRINGS)
)


def extract_jpeg_shape(
    contents: Any, output_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """(height, width, channels) of a JPEG file, whose image is not decoded.

    Raises:
        InvalidArgumentError: contents that are no such file.
        ImportError: there is no Pillow.
    """
    pillow()
    return run(JPEG_SHAPE, string_tensor(contents), dtype=dtypes.as_dtype(output_type))  # type: ignore[no-any-return]


# -- encoding --------------------------------------------------------------------------------------


def _encoded(pixels: NDArray, kind: str, **options: Any) -> bytes:
    shown = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    file = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(shown)).save(file, kind, **options)
    return file.getvalue()


def _strings_of(x: Spec, *rest: Spec, **attrs: Any) -> TensorSpec:
    if x.dtype not in (dtypes.uint8, dtypes.uint16):
        raise TypeError(f"images are uint8 or uint16, not {x.dtype.name}")
    if len(x.dims) < 3:
        raise invalid(f"images must be at least rank 3, the shape is {x.shape}")
    return TensorSpec(x.dims[:-3], dtypes.string)


def _encode_png(x: NDArray, *, compression: int) -> NDArray:
    if x.ndim < 3 or x.dtype not in (np.uint8, np.uint16):
        raise invalid("images are [..., height, width, channels], uint8 or uint16")
    if not 1 <= x.shape[-1] <= 4 or 0 in x.shape[-3:-1]:
        raise invalid(f"a PNG file has 1 to 4 channels and some pixels, not {x.shape[-3:]}")
    images = x.reshape(-1, *x.shape[-3:])
    level = {} if compression < 0 else {"compress_level": compression}
    found = np.empty(len(images), object)
    if x.dtype == np.uint16 and x.shape[-1] > 1:
        found[:] = [png.write_deep(image, compression) for image in images]
    else:
        found[:] = [_encoded(image, "PNG", **level) for image in images]
    return found.reshape(x.shape[:-3])


ENCODE_PNG = register(Op("encode_png", _strings_of, _encode_png, tags=STRINGS))


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """Images as PNG files.

    Args:
        image: [..., height, width, channels] of 1 to 4 channels; uint8 or uint16.
        compression: 0 to 9; -1 for what the library thinks best.

    Returns:
        strings of the outer shape.

    Raises:
        InvalidArgumentError: another rank or number of channels.
        TypeError: another dtype.
        ImportError: there is no Pillow.
    """
    pillow()
    if not -1 <= compression <= 9:
        text = f"encode_png: compression must be in [-1, 9], not {compression}"
        raise invalid(f"{text}{at(user_origin())}")
    return run(ENCODE_PNG, convert_to_tensor(image), compression=int(compression))  # type: ignore[no-any-return]


def _encode_jpeg(
    x: NDArray, quality: NDArray, *, mode: str, progressive: bool, optimize: bool, smooth: bool,
    density: tuple[int, int],
) -> NDArray:  # fmt: skip
    if x.ndim != 3 or x.dtype != np.uint8:
        raise invalid(f"an image is [height, width, channels] uint8, not {x.dtype}{list(x.shape)}")
    if x.shape[2] not in ({"grayscale": (1,), "rgb": (3,)}.get(mode, (1, 3))):
        raise invalid(f"a JPEG file has 1 or 3 channels, as its format says, not {x.shape[2]}")
    if not 0 <= quality <= 100:
        raise invalid(f"quality must be in [0,100], got {quality}")
    # Pillow takes 0 for its own choice; the library that both use takes it for 1.
    options = {"quality": max(int(quality), 1), "progressive": progressive, "optimize": optimize}
    found = np.empty((), object)
    found[()] = _encoded(x, "JPEG", dpi=density, subsampling=2 if smooth else 0, **options)
    return found


def _infer_jpeg(x: Spec, quality: Spec, **attrs: Any) -> TensorSpec:
    if x.dtype is not dtypes.uint8:
        raise TypeError(f"images are uint8, not {x.dtype.name}")
    if len(x.dims) != 3:
        raise invalid(f"image must be 3-dimensional, the shape is {x.shape}")
    return TensorSpec((), dtypes.string)


ENCODE_JPEG = register(Op("encode_jpeg", _infer_jpeg, _encode_jpeg, tags=STRINGS))


def encode_jpeg(
    image: Any, format: str = "", quality: Any = 95, progressive: bool = False,
    optimize_size: bool = False, chroma_downsampling: bool = True, density_unit: str = "in",
    x_density: int = 300, y_density: int = 300, xmp_metadata: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """An image as a JPEG file.

    Args:
        image: [height, width, 1 or 3] uint8.
        format: "grayscale", "rgb" or "", what the number of channels says.
        quality: 0 to 100, an int or an integer scalar.
        progressive, optimize_size: other orders of the file.
        chroma_downsampling: whether colours have half the resolution.
        density_unit, x_density, y_density: pixels per inch ("in") or centimetre ("cm").
        xmp_metadata: accepted if empty.

    Returns:
        a scalar string.

    Raises:
        InvalidArgumentError: another shape, format or quality.
        TypeError: another dtype.
        ImportError: there is no Pillow.
    """
    pillow()
    if format not in ("", "grayscale", "rgb") or density_unit not in ("in", "cm") or xmp_metadata:
        raise invalid(
            f"encode_jpeg: format {format!r} is '', 'grayscale' or 'rgb'; density_unit "
            f"{density_unit!r} 'in' or 'cm'; xmp_metadata empty{at(user_origin())}"
        )
    inches = 1 if density_unit == "in" else 2.54
    return run(  # type: ignore[no-any-return]
        ENCODE_JPEG, convert_to_tensor(image), cast(quality, dtypes.int32), mode=format,
        progressive=bool(progressive), optimize=bool(optimize_size),
        smooth=bool(chroma_downsampling),
        density=(round(float(x_density) * inches), round(float(y_density) * inches)),
    )  # fmt: skip
