"""td.io and td.image: files of images decoded and encoded; bytes and tables in strings."""

from __future__ import annotations

import base64
import gzip
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import outcome, program, raised

RGB = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAIAAADJUWIXAAAAS0lEQVR4nAFAAL//AHmDwfMIJNLyP0/ebEXTQQTvIcsi"
    "/7mr5KyCfur4ywwBH3T6A+5txdIZXNFAzEK/AXwd+0PZHPpVczP7Lz0MPy8cH8kcgHXdAAAAAElFTkSuQmCC"
)
RGBA = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAYAAABGM/VAAAAAX0lEQVR4nAFUAKv/AHmDwXnzCCTz0vI/0k/ebE9F00FF"
    "BO8hy+8i/7kiq+Ssq4J+6oL4ywz4AR90+h8D7m0DxdIZxVzRQFzMQr/MAXwd+3xD2RxD+lVz+jP7LzM9DD89S4MqCeM6"
    "NOAAAAAASUVORK5CYII="
)
GRAY = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAAAAABjWKqcAAAAIUlEQVR4nGOo/HzJ35XlvdLqph8M8krPnfkZa5x/GdsC"
    "AIC2CbGZZ56nAAAAAElFTkSuQmCC"
)
GRAY_ALPHA = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAQAAADsOj3LAAAAN0lEQVR4nAEsANP/AId5UfPU0qZPmEUECO/TIvOr14La"
    "+AFqH+UDI8W7XBDMAuldfZ0B0lipHBr0+xUvSBh+OQAAAABJRU5ErkJggg=="
)
DEEP = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAEEAAAAAAzyHbfAAAANUlEQVR4nGOorPn87dJV/yBXD5b375WUVq9uavrxg0Fe"
    "SUn1+StnN34hxpp6Z+dfv4yNbW0B2uwTfZfTDPMAAAAASUVORK5CYII="
)
PALETTE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAEBAMAAAC0HehzAAAAGFBMVEWo51NXvGd8Y7kha7HZQpbeFDk1JMhDBcBynteo"
    "AAAAGElEQVR4nGNQZRRg+sjswGgs8pLJ9q8BABlFBAoIBb4lAAAAAElFTkSuQmCC"
)
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsL"
    "EBYQERMUFRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFBQUFBQUFBQUFBQUFBQUFBT/wAARCAAIAAoDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcI"
    "CQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRol"
    "JicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ip"
    "qrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAA"
    "AAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLR"
    "ChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaX"
    "mJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEA"
    "PwDf/wCFF/8ACV/6J/bf2XZ+93/ZN+ccYxvH979KP+GTP+pq/wDKd/8AbaKK9fhDE1f7LWv2n2PzSVOOKftKyu/67H//"
    "2Q=="
)
GRAY_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYW"
    "ICwgIyYnKSopGR8tMC0oMCUoKSj/wAALCAAIAAoBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QA"
    "tRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0"
    "NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2"
    "t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AOf1Dwx/wkkK2f2v7Nsbzd/l"
    "b84BGMZH979Kof8ACo/+o3/5Kf8A2df/2Q=="
)
GIF = base64.b64decode(
    "R0lGODdhBQAEAIMAAMn0K8DWiU/ebFe8Z3mDwdFUcylS+B90+iJiZ+o9nblLiskfTfMIJEYyvRUH3UMFwCwAAAAABQAE"
    "AAAIGQAJMAAgQMAABwEKLDiAIMEDBA0AKEhgICAAIfkEAQAADgAsAAAAAAUABACD0/kx8LiA1q0HZcs9DPfbNuCyGMt/"
    "E7lGLquMhnw+l1tzuiy+Pyl2LQ3AAAAAAAAACBkAExBosGCBAgAMEBQQEMAAgAADGiA4ICAgADs="
)
BMP = base64.b64decode(
    "Qk12AAAAAAAAADYAAAAoAAAABQAAAAQAAAABABgAAAAAAEAAAADEDgAAxA4AAAAAAAAAAAAA+x18F/a/iku5uUbs+FIp"
    "APp0H2diIoA058AFQ39HDwCMpGjdBxWJ1sBzVNFNH8kAwYN5JAjzP/LSbN5PQdNFAA=="
)
WEBP = base64.b64decode(
    "UklGRpYAAABXRUJQVlA4TIoAAAAvBMAAAJ+gNrZt6NvFhCr4BehTrA+FCHcxuZGpg20k22nEzCpBMkSqzcU6d8oRZZ5h"
    "FNtWGxm0LYODbgF52EADGnrZlyQKskzmP/RNn4Xg14RK8IJ5K7Dby44/lx/md6b6pPP4bSnGu1+Ti7UiF7GBUxDmCArb"
    "NlJDx/j8Ef2PAzjX7i+cYcMv6Ss="
)
PNGS = (RGB, RGBA, GRAY, GRAY_ALPHA, DEEP, PALETTE)
PIXELS = np.random.default_rng(9).integers(0, 256, (5, 4, 4)).astype(np.uint8)
EXACT = {"dct_method": "INTEGER_ACCURATE"}


@program
def png_files(tf):
    # TensorFlow's fourth channel of a palette is 15.
    found = [tf.io.decode_png(f, channels) for f in PNGS for channels in (0, 1, 3)]
    return found + [tf.io.decode_png(f, 4) for f in PNGS[:-1]]


@program
def png_files_of_16_bits(tf):
    return [tf.io.decode_png(f, channels, tf.uint16) for f in PNGS for channels in (0, 3)]


def deep_png(pixels, color, interlaced):
    """A file of 16 bits, whose rows have the five filters in turn, a byte after the other."""

    def lines(part):
        rows = np.ascontiguousarray(part, ">u2").view(np.uint8).astype(int)
        height, width, size = rows.shape
        padded = np.zeros((height + 1, width + 1, size), int)
        padded[1:, 1:] = rows
        for y in range(height):
            yield bytes([y % 5])
            for place in np.ndindex(width, size):
                x, k = place
                left, above, corner = padded[y + 1, x, k], padded[y, x + 1, k], padded[y, x, k]
                near = min((left, above, corner), key=lambda v, p=left + above - corner: abs(p - v))
                guess = [0, left, above, (left + above) // 2, near][y % 5]
                yield bytes([(padded[y + 1, x + 1, k] - guess) % 256])

    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
                  (1, 0, 2, 2), (0, 1, 1, 2)]  # fmt: skip
    parts = [pixels[y::down, x::across] for x, y, across, down in passes]
    data = b"".join(b"".join(lines(part)) for part in parts if part.size)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 16, color, 0, 0, interlaced)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d))
        for kind, d in chunks
    )


@program
def coloured_png_files_of_16_bits(tf):
    slopes = np.add.outer(np.arange(11) * 5000, np.arange(6) * 3000)[..., None]
    noise = np.random.default_rng(3).integers(0, 3000, (11, 6, 4))
    pixels = (slopes + noise).astype(np.uint16)
    files = [
        deep_png(pixels[..., :n], color, interlaced)
        for n, color in ((3, 2), (4, 6))
        for interlaced in (0, 1)
    ]
    broken = bytearray(files[0])
    broken[60] ^= 1
    written = [tf.io.encode_png(pixels[..., :n]) for n in (2, 3, 4)]
    return (
        [tf.io.decode_png(f, dtype=tf.uint16) for f in files],
        [tf.io.decode_png(f, channels, tf.uint16) for f in files[::2] for channels in (1, 3, 4)],
        [tf.io.decode_png(f, channels) for f in files[::2] for channels in (0, 3)],
        tf.io.decode_image(files[0], dtype=tf.float32),
        [tf.io.decode_png(f, 4, tf.uint16) for f in written],
        tf.function(lambda p: tf.io.decode_png(tf.io.encode_png(p, 9), dtype=tf.uint16))(
            tf.constant(pixels[..., :3])
        ),
        raised(tf.io.decode_png, bytes(broken), dtype=tf.uint16),
        raised(tf.io.decode_png, files[0][:90], dtype=tf.uint16),
    )


@program
def jpeg_files(tf):
    return [
        tf.io.decode_jpeg(JPEG, **EXACT), tf.io.decode_jpeg(JPEG, 3, **EXACT),
        tf.io.decode_jpeg(JPEG, 1, **EXACT),
        tf.io.decode_jpeg(GRAY_JPEG, **EXACT), tf.io.decode_jpeg(GRAY_JPEG, 3, **EXACT),
        [tf.io.decode_jpeg(JPEG, ratio=r, **EXACT).shape for r in (1, 2, 4, 8)],
        tf.io.decode_jpeg(RGB), tf.io.decode_png(GRAY_JPEG).shape,
        tf.io.extract_jpeg_shape(JPEG), tf.io.extract_jpeg_shape(GRAY_JPEG, tf.int64),
        tf.io.decode_and_crop_jpeg(JPEG, [2, 3, 4, 5], **EXACT).shape,
        tf.io.is_jpeg(JPEG), tf.io.is_jpeg(RGB), tf.io.is_jpeg([JPEG, GIF]), tf.io.is_jpeg(b"a"),
    ]  # fmt: skip


@program
def other_files(tf):
    return [
        tf.io.decode_gif(GIF), tf.io.decode_gif(RGB), tf.io.decode_bmp(BMP),
        tf.io.decode_bmp(BMP, 4),
        tf.io.decode_webp(WEBP), tf.io.decode_webp(WEBP, 3),
    ]  # fmt: skip


@program
def files_of_any_kind(tf):
    files = (RGB, GRAY, DEEP, GIF, BMP, WEBP, PALETTE)
    return [
        [outcome(tf.io.decode_image, f, dtype=d) for d in (tf.uint8, tf.float32, tf.uint16)]
        for f in files
    ] + [
        tf.io.decode_image(GIF, expand_animations=False), tf.io.decode_image(GIF, 3, tf.float32),
        tf.io.decode_image(RGB, 1), tf.io.decode_image(RGB, 4), tf.io.decode_image(RGBA, 3),
        tf.io.decode_image(RGB, dtype=tf.int32), tf.io.decode_image(BMP, 3, tf.float64),
        tf.io.decode_image(JPEG).shape, tf.io.decode_image(JPEG, 1, expand_animations=False).shape,
    ]  # fmt: skip


@program
def refusals(tf):
    io = tf.io
    return [
        raised(io.decode_png, b"abc"), raised(io.decode_png, b""), raised(io.decode_image, b"abc"),
        raised(io.decode_jpeg, JPEG[:200]), raised(io.decode_png, RGB[:50]),
        raised(io.decode_png, BMP),
        raised(io.decode_bmp, RGB), raised(io.decode_gif, BMP), raised(io.decode_png, RGB, 2),
        raised(io.decode_png, RGB, 3, tf.float32), raised(io.decode_image, GIF, 1),
        raised(io.decode_image, JPEG, 4),
        raised(io.decode_bmp, BMP, 1), raised(io.decode_jpeg, JPEG, ratio=3),
        raised(io.decode_png, [RGB]),
        raised(io.encode_jpeg, PIXELS[..., :2]),
        raised(io.encode_jpeg, PIXELS[..., :3], quality=200),
        raised(io.encode_jpeg, PIXELS[..., :3], format="abc"), raised(io.encode_jpeg, PIXELS[0]),
        raised(io.encode_jpeg, PIXELS[..., :1], "rgb"), raised(io.encode_png, PIXELS[0]),
        raised(io.encode_png, PIXELS[..., :3].astype(np.float32)),
        raised(io.extract_jpeg_shape, RGB),
        raised(io.decode_and_crop_jpeg, JPEG, [2, 3, 40, 5]), raised(io.read_file, "/no/such/file"),
    ]  # fmt: skip


@program
def images_encoded(tf):
    def through_jpeg(x, **options):
        return tf.io.decode_jpeg(tf.io.encode_jpeg(x, **options), **EXACT)

    x = PIXELS[..., :3].repeat(3, 0).repeat(3, 1)
    return [tf.io.decode_png(tf.io.encode_png(PIXELS[..., :n])) for n in (1, 2, 3, 4)] + [
        tf.io.encode_png(np.stack([PIXELS, PIXELS])).shape,
        tf.io.decode_png(tf.io.encode_png(PIXELS[..., :1].astype(np.uint16) * 200, 9),
            dtype=tf.uint16),
        through_jpeg(x), through_jpeg(x, quality=30), through_jpeg(x[..., :1], quality=70),
        through_jpeg(x, chroma_downsampling=False),
        through_jpeg(x, progressive=True, optimize_size=True),
        through_jpeg(x, quality=0), through_jpeg(x, quality=100),
    ]  # fmt: skip


@program
def qualities(tf):
    x = np.full((8, 8, 3), 100, np.uint8)
    i = tf.image
    return [
        i.adjust_jpeg_quality(x, 60), i.adjust_jpeg_quality(x / np.float32(255), 60),
        i.adjust_jpeg_quality(x[..., :1], 5),
        i.stateless_random_jpeg_quality(x, 20, 90, (1, 2)), i.random_jpeg_quality(x, 20, 90).shape,
    ]  # fmt: skip


@program
def files(tf):
    with tempfile.TemporaryDirectory() as folder:
        inner = Path(folder) / "a" / "b"
        done = tf.io.write_file(str(inner / "one.bin"), b"\x00abc")
        tf.io.write_file(str(inner / "two.bin"), "")

        @tf.function
        def copied(source, target):
            tf.io.write_file(target, tf.io.read_file(source))
            return tf.io.read_file(target)

        found = copied(str(inner / "one.bin"), str(inner / "c" / "three.bin"))
        names = tf.io.matching_files(str(inner / "*.bin"))
        return [
            done, found, tf.io.read_file(str(inner / "two.bin")), names.shape, names.dtype,
            tf.strings.substr(names, -7, 7),
            tf.io.matching_files([str(inner / "*" / "*"), "/no/*"]).shape,
            raised(tf.io.read_file, str(inner)), raised(tf.io.read_file, ["a", "b"]),
        ]  # fmt: skip


@program
def base64_and_compressed(tf):
    io = tf.io
    return [
        io.encode_base64([b"hi\xff\xfe", b"a", b""]), io.encode_base64("hi", pad=True),
        io.decode_base64("aGk"),
        io.decode_base64(["aGk=", "YQ", "-_8"]), raised(io.decode_base64, "!!"),
        io.decode_compressed(zlib.compress(b"hello"), "ZLIB"),
        io.decode_compressed([gzip.compress(b"hello")], "GZIP"),
        io.decode_compressed(b"x"), raised(io.decode_compressed, b"x", "ABC"),
        io.decode_compressed(b"x", "ZLIB"),
    ]  # fmt: skip


@program
def raw_numbers(tf):
    raw = tf.io.decode_raw
    return [
        raw([b"\1\2\3\4", b"\1\0\0\0"], tf.int16), raw(b"\1\2\3\4", tf.uint16, little_endian=False),
        raw(np.arange(3, dtype=np.float32).tobytes(), tf.float32), raw(b"", tf.uint8),
        raw([[b"ab"], [b"cd"]], tf.uint8),
        raw(b"abc", tf.int16, fixed_length=4), raw([b"abcdef", b"a"], tf.uint8, fixed_length=3),
        raised(raw, [b"a", b"bc"], tf.uint8), raised(raw, b"abc", tf.int16),
        raised(raw, b"abc", tf.int16, fixed_length=3),
    ]  # fmt: skip


@program
def tables(tf):
    csv = tf.io.decode_csv
    return [
        csv(["1,2.5,abc", ',7,"x,y"'], [[0], [0.5], ["z"]]), csv("3|4", [[0], [1]], "|"),
        csv(["NA,1"], [[5], [6]], na_value="NA"), csv("a,b,c", [[""], [""]], select_cols=[0, 2]),
        csv('a"b,c', [[""], [""]], use_quote_delim=False),
        csv([["1", "2"]], [tf.constant([], tf.int64)]), csv("1", [tf.constant([7.0])]),
        raised(csv, ["1,2"], [[0]]), raised(csv, ["a"], [[0]]), raised(csv, ["1"], [[True]]),
        raised(csv, [""], [tf.constant([], tf.int32)]), outcome(csv, "1.5", [tf.float64]),
    ]  # fmt: skip


@program
def in_functions(tf):
    @tf.function
    def read(contents):
        image = tf.io.decode_png(contents, channels=3)
        return tf.image.convert_image_dtype(image, tf.float32), tf.shape(image)

    ranks = []

    @tf.function
    def unknown(contents):
        image = tf.io.decode_image(contents, channels=3)
        ranks.append(image.shape.rank)
        image.set_shape([None, None, 3])
        ranks.append(image.shape.rank)
        return tf.cast(image, tf.int32) + 1

    found = [read(RGB), read(GRAY), unknown(RGB), raised(read, b"abc")]
    return [*found, ranks, raised(unknown, GIF)]
