"""td.strings: what its functions give, eagerly and in functions, and what they refuse."""

from __future__ import annotations

import random

import numpy as np

from tests.facts_tf.registry import outcome, program, raised


def both(tf, function, *arguments, **options):
    """What a function of tensors gives eagerly and in a tf.function."""
    tensors = [tf.constant(a) for a in arguments]
    traced = tf.function(lambda *xs: function(*xs, **options))
    return outcome(function, *tensors, **options), outcome(traced, *tensors)


WORDS = ["Hello", "", "é", "aÉß", " a b\t\n", "x\0"]


@program
def lengths(tf):
    invalid = b"\xff\xc3\xa9\x80"
    return [
        both(tf, tf.strings.length, WORDS), both(tf, tf.strings.length, WORDS, unit="UTF8_CHAR"),
        tf.strings.length([invalid], unit="UTF8_CHAR"), tf.strings.length("abc"),
        raised(tf.strings.length, ["a"], unit="words"), raised(tf.strings.length, tf.constant([1])),
        raised(tf.strings.length, 1),
    ]  # fmt: skip


@program
def cases(tf):
    lower, upper = tf.strings.lower, tf.strings.upper
    return [
        both(tf, lower, WORDS), both(tf, upper, WORDS),
        both(tf, lower, WORDS[:-1], encoding="utf-8"),
        both(tf, upper, WORDS[:-1], encoding="utf-8"), raised(lower, ["a"], encoding="latin"),
    ]  # fmt: skip


@program
def strip(tf):
    return both(tf, tf.strings.strip, [*WORDS, "\x0b\x0cx\x00 ", "\xa0x"])


@program
def join(tf):
    s, m = tf.constant(["b", "a"]), tf.constant([["1", "2"]])
    return [
        tf.strings.join(["a", "b"]), tf.strings.join([]), tf.strings.join([s]),
        tf.strings.join([s, "x", ["1", "2"]], separator="-"), tf.strings.join([m, "é", m], " "),
        tf.function(lambda x: tf.strings.join([x, "x", x], separator=", "))(s),
        raised(tf.strings.join, [s, ["1", "2", "3"]]), raised(tf.strings.join, [s, m]),
        raised(tf.strings.join, [s, tf.constant(1)]),
    ]  # fmt: skip


@program
def substr(tf):
    f = tf.strings.substr
    return [
        both(tf, f, ["hello", "hi"], 1, 3), both(tf, f, ["hello", "hi"], -2, 5),
        both(tf, f, ["hello", "héé"], [1, 2], [1, 2]), both(tf, f, ["hello"], 5, 2),
        both(tf, f, [["hello"], ["world"]], [1, 2], [1, 2]), both(tf, f, "hello", [1, 2], [1, 2]),
        both(tf, f, ["héllo", "ßaé"], 1, 2, unit="UTF8_CHAR"),
        both(tf, f, ["héllo", "ßaé"], -2, 2, unit="UTF8_CHAR"), f(["abc"], 1, -1),
        raised(f, ["hello", "hi"], -3, 2), raised(f, ["hi"], 3, 2),
        raised(f, ["hi"], 0, 1, unit="x"),
        raised(tf.function(lambda s: f(s, 3, 1)), tf.constant(["hi"])),
    ]  # fmt: skip


def _split(tf, *args, **options):
    found = tf.strings.split(*args, **options)
    return found.to_tensor() if hasattr(found, "to_tensor") else found


@program
def split(tf):
    values = [
        (["a b  c", " d "],), ("a b c",), ([["a b", "c"], ["", "d e f"]],), (["a,b,,c", ""], ","),
        (["a--b-c"], "--"), (["abc"], ""), ([" ", ""],), ("", ","), ("",),
    ]  # fmt: skip
    limited = [(["a,b,,c"], ",", 1), ([" a b c "], None, 1), (["a b c d"], None, 2)]
    traced = tf.function(lambda s: _split(tf, s, sep=","))
    return [
        [_split(tf, *v) for v in [*values, *limited]],
        [traced(tf.constant(s)) for s in (["a,b", "c"], ["", "x,y,z"], ["a"])],
    ]


@program
def split_gives_rows_of_different_lengths(tf):
    return type(tf.strings.split(tf.constant(["a b", "c"]))).__name__


PATTERNS = [
    (["abab", "cb"], "a(b)", r"<\1>"), (["abc"], "", "-"), (["aéb"], "é", "."),
    (["aéb"], ".", "x"), (["a\nb"], ".", "x"), (["AaB"], "(?i)a", "x"), (["a b\tc"], r"\s", "_"),
    (["a1b22"], r"\d+", r"\0\0"), (["a1b"], "[[:digit:]]", "x"),
    (["a1B c"], "[[:upper:][:space:]]+", "x"), (["aaa", "baac"], "a*", "x"),
    (["ab"], "(a)(b)?", r"\2\1"), (["a"], "(a)|(b)", r"[\2]"), (["ab"], "a", r"\1"),
    (["ab"], "a", r"\\"), (["ab"], "a", "\\x"), (["a.b"], r"\.", r"\\"), (["a\n"], "a$", "x"),
    (["a\nb"], "(?m)^", "> "), (["a$b"], "[$]", "x"), (["a.b+c"], r"\Q.b+\E", "x"),
    (["abc"], r"c\z", "x"), (["aab"], "a{2}", "x"), (["aXbX"], "a.*?X", "x"),
    (["été"], r"\w+", "x"), (["[a]"], "[[]", "x"),
    (["12:34"], r"(?P<h>\d+):(?P<m>\d+)", r"\2-\1"),
]  # fmt: skip


@program
def regex_replace(tf):
    f = tf.strings.regex_replace
    return [
        [outcome(f, *p) for p in PATTERNS],
        both(tf, lambda s: f(s, "a|b", "x"), ["abab", "c"]),
        f(["abab"], "a", "x", replace_global=False), f(["ab"], tf.constant("a"), tf.constant("z")),
        tf.function(f)(tf.constant(["ab"]), tf.constant("a"), tf.constant("z")),
        raised(f, ["ab"], "(", "x"), raised(f, ["ab"], "(?=a)", "x"),
        raised(f, ["aa"], r"(a)\1", "x"),
        raised(f, ["ab"], "[[:word", "x"), raised(f, ["ab"], "a**", "x"),
    ]  # fmt: skip


@program
def regex_full_match(tf):
    f = tf.strings.regex_full_match
    return [
        both(tf, lambda s: f(s, "a.c"), ["abc", "ab", "aéc", "abcd"]), f("abc", "a"), f("a\n", "a"),
        f("a\n", "a$"), f(["foo.txt", "x"], r".*\.(txt|md)"), f("", ""), raised(f, ["abc"], "("),
    ]  # fmt: skip


@program
def to_number(tf):
    f = tf.strings.to_number
    texts = ["1.5", " 2 ", "\t-3e2\n", "nan", "inf", "-Infinity", "+1.5", ".5", "5.", "1e400",
             "1e39", "-1e39", "1e-50", "0x10", "0x1.8p1", "7"]  # fmt: skip
    wrong = ["abc", "", "1_0", "1 2", "1e", ".", "--1", "infin"]
    whole = ["1", " -2 ", "+5", "2147483647"]
    return [
        both(tf, f, texts), f(texts, tf.float64), both(tf, f, whole, out_type=tf.int32),
        f(whole, tf.int64), f(["5000000000"], tf.int64), f(["4294967295"], tf.uint32),
        f("7", tf.int32), [raised(f, [w]) for w in wrong],
        [raised(f, [w], tf.int32) for w in ("1.5", "0x10", "1_0", "5000000000", "", "a")],
        [raised(f, ["1"], d) for d in (tf.uint8, tf.float16)], raised(f, tf.constant([1])),
        raised(tf.function(f), tf.constant(["x"])),
    ]  # fmt: skip


@program
def formats(tf):
    f = tf.strings.format
    return [
        f("a {} b {}", (tf.constant([1, 2]), tf.constant(1.5))), f("{}", tf.constant("x")),
        f("{}", tf.constant(["x", "y"])), f("{}", tf.range(10)), f("{}", tf.range(10), summarize=2),
        f("{}", tf.range(10), summarize=-1), f("%t and {}", tf.constant(1), placeholder="%t"),
        f("no", ()), f("{}", tf.constant([[1, 2], [3, 4]])), f("{}", tf.constant([True, False])),
        f("{}", [tf.constant(1)]), tf.function(lambda x, s: f("{} is {}", (s, x)))(1.5, "x"),
        raised(f, "{} {}", tf.constant(1)), raised(f, "none", tf.constant(1)),
    ]  # fmt: skip


@program
def reduce_join(tf):
    f, m = tf.strings.reduce_join, [["a", "b", "c"], ["d", "e", "f"]]
    return [
        both(tf, f, m), both(tf, f, m, axis=0), both(tf, f, m, axis=1, separator="-"),
        f(m, axis=[0, 1]), f(m, axis=[1, 0]), both(tf, f, m, axis=-1, keepdims=True),
        f(m, keepdims=True), f("a"), f(tf.constant([], tf.string)),
        f(tf.zeros([2, 0], tf.string), axis=1, separator=","),
    ]  # fmt: skip


def _bytes():
    """Strings of all lengths that hashes treat differently."""
    numbers = random.Random(1)
    sizes = [
        *range(20),
        24,
        31,
        32,
        33,
        40,
        48,
        63,
        64,
        65,
        66,
        100,
        127,
        128,
        129,
        191,
        192,
        193,
        300,
    ]
    return np.array([bytes(numbers.randrange(256) for _ in range(n)) for n in sizes], object)


@program
def hash_buckets(tf):
    strings, most = _bytes(), 2**63 - 1
    key = [123456789, 987654321]
    return [
        tf.strings.to_hash_bucket_fast(strings, most), tf.strings.to_hash_bucket(strings, most),
        tf.strings.to_hash_bucket_strong(strings, most, key),
        both(tf, tf.strings.to_hash_bucket_fast, ["a", "b", "hello world", "é"], num_buckets=10),
        both(tf, tf.strings.to_hash_bucket, ["a", "b", "hello world", "é"], num_buckets=10),
        raised(tf.strings.to_hash_bucket_fast, ["a"], 0),
    ]  # fmt: skip


@program
def as_string(tf):
    f, c = tf.as_string, tf.constant
    floats = [
        1.5,
        2.0,
        -0.0,
        1e-7,
        1e20,
        123456.789,
        1 / 3,
        float("nan"),
        float("inf"),
        -float("inf"),
    ]
    ints = [0, -5, 2**31 - 1]
    return [
        both(tf, f, floats), f(c(floats, tf.float64)), f(c([1.5, 0.1], tf.float16)),
        [f(floats, **o) for o in (
            {"precision": 2}, {"precision": 0}, {"scientific": True}, {"shortest": True},
            {"scientific": True, "precision": 3}, {"width": 12}, {"width": 12, "fill": "0"},
            {"width": 12, "fill": "-"}, {"width": 12, "fill": " "}, {"width": 9, "precision": 1},
            {"fill": "+"}, {"shortest": True, "precision": 3},
        )],
        both(tf, f, ints), [f(ints, **o) for o in (
            {"width": 4}, {"width": 4, "fill": "0"}, {"width": 4, "fill": " "},
            {"width": 4, "fill": "-"}, {"fill": "+"},
        )],
        f(c([2**63 - 1, -(2**63)], tf.int64)), f(c([200], tf.uint8)), f(c([True, False])),
        f(c([True]), width=6), f(c([1 + 2j, -1.5j])), f(c([1 + 2j]), precision=1), f(["a", "b"]),
        raised(f, [1.5], scientific=True, shortest=True), raised(f, [5], fill="xx"),
        raised(f, [5], fill="x"), raised(f, [5], scientific=True), raised(f, [5], precision=2),
    ]  # fmt: skip


@program
def in_a_loop(tf):
    @tf.function
    def f(lines):
        total, longest = tf.constant(0.0), tf.constant("")
        for line in lines:
            parts = tf.strings.split(line, ",")
            total += tf.strings.to_number(parts[1])
            if tf.strings.length(parts[0]) > tf.strings.length(longest):
                longest = tf.strings.upper(parts[0])
        return tf.strings.join([longest, tf.as_string(total, precision=2)], ": ")

    return f(tf.constant(["a,1.5", "ccc,2", "bb,3e1"]))
