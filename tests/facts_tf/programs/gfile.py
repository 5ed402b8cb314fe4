"""td.io.gfile: all functions, on files of this machine; and files as tensors."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.facts_tf.registry import outcome, program, raised


@program
def files_and_folders(tf):
    g = tf.io.gfile
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        def here(*names):
            return str(root.joinpath(*names))

        g.mkdir(here("a"))
        g.makedirs(here("b", "c", "d"))
        with g.GFile(here("a", "one.txt"), "w") as file:
            file.write("text")
        g.copy(here("a", "one.txt"), here("b", "two.txt"))
        stat = g.stat(here("a", "one.txt"))
        found = [
            g.exists(here("a")),
            g.exists(here("no")),
            g.isdir(here("a")),
            g.isdir(here("b", "two.txt")),
            sorted(g.listdir(here("b"))),
            sorted(g.listdir(here())),
            sorted(Path(p).name for p in g.glob(here("*", "*.txt"))),
            sorted(Path(p).name for p in g.glob([here("a", "*"), here("b", "*")])),
            g.glob(here("q*")),
            stat.length,
            stat.mtime_nsec > 0,
            stat.is_directory,
            g.stat(here("b")).is_directory,
            g.join("a", "b"),
            g.join("a", "/b"),
            g.join("a/", "b"),
            g.join(b"a", b"b"),
            raised(g.mkdir, here("a")),
            raised(g.mkdir, here("x", "y")),
            raised(g.makedirs, here("b", "c")),
            raised(g.makedirs, here("a", "one.txt", "z")),
            raised(g.copy, here("a", "one.txt"), here("b", "two.txt")),
            raised(g.copy, here("no"), here("q")),
            raised(g.copy, here("a", "one.txt"), here("b", "two.txt"), True),
            raised(g.remove, here("no")),
            raised(g.remove, here("a")),
            raised(g.rmtree, here("no")),
            raised(g.rmtree, here("a", "one.txt")),
            raised(g.listdir, here("no")),
            raised(g.listdir, here("a", "one.txt")),
            raised(g.stat, here("no")),
            raised(g.rename, here("no"), here("z")),
            raised(g.rename, here("a", "one.txt"), here("b", "two.txt")),
        ]
        with g.GFile(here("a", "one.txt"), "w") as file:
            file.write("anew")
        g.rename(here("a", "one.txt"), here("b", "two.txt"), overwrite=True)
        g.rename(here("b"), here("moved"))
        found += [g.exists(here("a", "one.txt")), g.exists(here("moved", "two.txt"))]
        found += [[[Path(p).name, sorted(d), sorted(f)] for p, d, f in g.walk(here("moved"))]]
        found += [
            [
                [Path(p).name, sorted(d), sorted(f)]
                for p, d, f in g.walk(here("moved"), topdown=False)
            ]
        ]
        found += [list(g.walk(here("none"))), g.exists(root / "moved"), g.isdir(root)]
        g.remove(here("moved", "two.txt"))
        g.rmtree(here("moved"))
        found += [g.exists(here("moved")), g.get_registered_schemes() != []]
        return found


@program
def reading_and_writing(tf):
    g = tf.io.gfile
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "f")

        def opened(mode, use):
            with g.GFile(path, mode) as file:
                return use(file)

        found = [
            opened("w", lambda f: f.write("äb\ncd\n")),
            opened("r", lambda f: f.read()),
            opened("rb", lambda f: f.read()),
            opened("a", lambda f: f.write("ef")),
            opened("r", lambda f: f.readlines()),
            opened("r", lambda f: [f.read(2), f.tell(), f.read(1), f.tell()]),
            opened("rb", lambda f: f.readline()),
            opened("r", lambda f: list(f)),
            opened("rb", lambda f: [f.seek(3), f.read(2), f.tell()]),
            opened("r", lambda f: f.size()),
            opened("w+", lambda f: [f.write("xy")]),
            opened("rb", lambda f: f.read(100)),
            opened("rb", lambda f: f.read(0)),
            outcome(opened, "q", lambda f: f.read()),
            outcome(opened, "r", lambda f: f.write("x")),
            outcome(opened, "w", lambda f: f.read()),
            opened("wb", lambda f: f.write(b"\xff\x00")),
            opened("rb", lambda f: f.read()),
            outcome(opened, "r", lambda f: f.read()),
            outcome(opened, "wb", lambda f: f.write("text")),
            opened("r+", lambda f: f.mode),
            opened("a+", lambda f: f.name == path),
            raised(lambda: g.GFile(path + "/x", "r").read()),
            raised(lambda: g.GFile(path + "no").read()),
            raised(lambda: g.GFile(path + "no/x", "w").write("a")),
            raised(lambda: g.GFile(folder).read()),
            outcome(opened, "r", lambda f: f.seek(-1)),
            outcome(opened, "rb", lambda f: [f.seek(1), f.read()]),
        ]
        file = g.GFile(path, "w")
        file.write("held")
        file.flush()
        found.append(g.GFile(path).read())
        file.close()
        file.close()
        found += [
            outcome(lambda: opened("r", lambda f: [f.readline(), f.readline(), f.readline()])),
            raised(lambda: g.GFile(path).next()),
        ]
        return found


@program
def files_as_tensors(tf):
    io = tf.io
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        name = str(root / "t.bin")
        io.write_file(name, b"\x00bytes")
        traced = tf.function(lambda p: io.read_file(p))

        @tf.function
        def write(path, text):
            io.write_file(path, text)

        write(tf.constant(str(root / "deep" / "u.bin")), tf.constant("made"))
        return [
            io.read_file(name),
            traced(tf.constant(name)),
            raised(io.read_file, str(root / "no")),
            raised(traced, tf.constant(str(root / "no"))),
            io.read_file(str(root / "deep" / "u.bin")),
            [Path(p.decode()).name for p in io.matching_files(str(root / "*.bin")).numpy()],
            io.matching_files(str(root / "q*")),
            [
                Path(p.decode()).name
                for p in io.matching_files([str(root / "*"), str(root / "deep/*")]).numpy()
            ],
            raised(io.write_file, str(root), "x"),
            raised(io.read_file, [name]),
            raised(io.read_file, 3),
            raised(io.write_file, name, 3),
            raised(io.write_file, name, ["a"]),
            io.read_file(tf.constant(name)).dtype,
        ]


@program
def records_in_files(tf):
    io = tf.io
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        def written(name, options, *records):
            with io.TFRecordWriter(str(root / name), options) as writer:
                for record in records:
                    writer.write(record)
            return str(root / name)

        def read(path, *args, **kwargs):
            return outcome(
                lambda: [x.numpy() for x in tf.data.TFRecordDataset(path, *args, **kwargs)]
            )

        plain, gzip = written("p", None, b"a", b"", b"c" * 300), written("g", "GZIP", b"x", b"y")
        zlib = written("z", io.TFRecordOptions("ZLIB", compression_level=9), b"1", b"2")
        empty = written("e", None)
        data = bytearray((root / "p").read_bytes())
        data[20] ^= 1
        (root / "bit").write_bytes(bytes(data))
        (root / "cut").write_bytes((root / "p").read_bytes()[:-7])
        (root / "gcut").write_bytes((root / "g").read_bytes()[:-12])
        return [
            read(plain),
            read(gzip, "GZIP"),
            read(zlib, compression_type="ZLIB"),
            read(empty),
            read([plain, empty, plain]),
            read([plain, plain], num_parallel_reads=2),
            read(gzip),
            read(plain, "GZIP"),
            read(str(root / "bit")),
            read(str(root / "cut")),
            read(str(root / "gcut"), "GZIP"),
            read(str(root / "none")),
            read(plain, "BZ2"),
            read(Path(plain)),
            read([Path(plain), empty]),
            outcome(lambda: list(tf.data.TextLineDataset(Path(empty)))),
            outcome(lambda: list(tf.data.FixedLengthRecordDataset([Path(plain)], 9**9))),
            read(tf.data.Dataset.from_tensor_slices([plain, empty])),
            read(plain, buffer_size=10),
            outcome(tf.data.TFRecordDataset, 3),
            len((root / "p").read_bytes()),
            (root / "e").read_bytes(),
            (root / "p").read_bytes()[:17],
            raised(lambda: io.TFRecordWriter(str(root / "no" / "x"))),
            raised(lambda: written("q", "LZ")),
            raised(lambda: written("q", None, 3)),
            outcome(lambda: read(written("s", None, "ä"))),
            outcome(lambda: list(tf.data.TFRecordDataset(plain).batch(2))[0]),
            [
                int(tf.data.TFRecordDataset(plain).cardinality()),
                tf.data.TFRecordDataset(plain).element_spec.dtype,
            ],
        ]


@program
def texts_and_bytes_decoded(tf):
    io = tf.io
    return [
        io.decode_raw(tf.constant([b"\x01\x00\x02\x00"]), tf.uint16),
        io.decode_raw(b"\x00\x01", tf.uint16, little_endian=False),
        io.decode_raw(b"abc", tf.uint8),
        io.decode_raw([b"ab", b"c"], tf.uint8, fixed_length=3),
        outcome(io.decode_raw, b"abc", tf.uint16),
        outcome(io.decode_raw, [b"ab", b"c"], tf.uint8),
        io.decode_base64(io.encode_base64([b"any", b""])),
        io.encode_base64("abc", pad=True),
        io.encode_base64(b"a"),
        outcome(io.decode_base64, "a*"),
        io.decode_compressed(__import__("zlib").compress(b"text"), "ZLIB"),
        io.decode_compressed([__import__("gzip").compress(b"text")], compression_type="GZIP"),
        io.decode_compressed(b"same"),
        outcome(io.decode_compressed, b"no", "ZLIB"),
        outcome(io.decode_compressed, b"no", "LZ"),
        io.decode_csv(["1,2.5,x", "3,,"], [0, [1.5], "none"]),
        io.decode_csv("a;b", ["", ""], field_delim=";"),
        io.decode_csv('"a,b",2', ["", 0]),
        outcome(io.decode_csv, "1,2", [0]),
        outcome(io.decode_csv, "x", [0]),
        outcome(io.decode_csv, ",1", [[], 0]),
        io.decode_csv("1 2", [0, 0], " "),
        io.decode_csv("NA,2", [7, 0], na_value="NA"),
        io.decode_csv("1,2,3", [0, 0], select_cols=[0, 2]),
        io.decode_csv('"a""b"', [""], use_quote_delim=True),
        outcome(io.decode_csv, '"a', [""]),
        io.decode_csv('"a', [""], use_quote_delim=False),
        io.decode_csv(["5000000000"], [tf.constant([], tf.int64)]),
        io.decode_csv("1e3", [tf.constant(0.0, tf.float64)]),
        outcome(io.decode_csv, "1", [True]),
        io.parse_tensor(io.serialize_tensor([[1.5, 2.5]]), tf.float32),
        io.parse_tensor(io.serialize_tensor(["a", "b"]), tf.string),
        outcome(io.parse_tensor, io.serialize_tensor([1]), tf.float32),
        outcome(io.parse_tensor, "no", tf.int32),
        io.serialize_tensor(tf.constant([1, 2], tf.int16)),
    ]
