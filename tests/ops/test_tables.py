"""Tables of ``td.lookup``, eagerly, in functions, in graphs of TensorFlow 1 and in saved models.

The numbers of unknown tokens and the texts of errors are TensorFlow 2.21's.
"""

import re

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as v1

lookup = td.lookup
PAIRS = lookup.KeyValueTensorInitializer(["b", "a", "c"], [1, 2, 3])


def both(table, keys):
    """What a lookup gives eagerly and in a function, which must be equal."""
    eager = table.lookup(keys)
    staged = td.function(lambda k: table[k])(keys)
    assert eager.dtype is staged.dtype is table.value_dtype and eager.shape == staged.shape
    np.testing.assert_array_equal(eager.numpy(), staged.numpy())
    return eager.numpy().tolist()


def test_static_tables_of_strings_and_numbers():
    words = lookup.StaticHashTable(PAIRS, -1)
    assert both(words, td.constant([["a", "z"], ["c", ""]])) == [[2, -1], [3, -1]]
    assert both(words, td.constant("b")) == 1
    assert int(words.size()) == 3 and (words.key_dtype, words.value_dtype) == (td.string, td.int32)
    assert [x.numpy().tolist() for x in words.export()] == [[b"a", b"b", b"c"], [2, 1, 3]]
    names = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer([7, 3], ["seven", "three"], key_dtype=td.int64), "?"
    )
    assert both(names, td.constant([3, 4, 7], td.int64)) == [b"three", b"?", b"seven"]
    empty = lookup.StaticHashTable(
        lookup.KeyValueTensorInitializer([], [], td.string, td.float32), 0.5
    )
    assert both(empty, td.constant(["a", "b"])) == [0.5, 0.5]
    again = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 1]), 0)
    assert int(again.size()) == 1 and "1 keys, string -> int32" in repr(again)


def test_ragged_and_sparse_keys():
    words = lookup.StaticHashTable(PAIRS, -1)
    tokens = lookup.StaticVocabularyTable(
        lookup.KeyValueTensorInitializer(["a", "b"], td.constant([0, 1], td.int64)), 2
    )
    rows = td.ragged.constant([["a"], ["b", "z"]])
    places = td.SparseTensor([[0, 0], [1, 2]], ["a", "z"], [2, 3])
    for find in (words.lookup, td.function(lambda k: words[k])):
        assert find(rows).to_list() == [[2], [1, -1]]
        found = find(places)
        assert td.sparse.to_dense(found).numpy().tolist() == [[2, 0, 0], [0, 0, -1]]
    assert tokens.lookup(rows[:1]).to_list() == [[0]]
    assert tokens.lookup(places).values.numpy().tolist() == [0, 3]
    with pytest.raises(TypeError, match="Dtype of argument `keys`"):
        words.lookup(td.ragged.constant([[1]]))


def test_what_a_static_table_refuses():
    words = lookup.StaticHashTable(PAIRS, -1)
    with pytest.raises(TypeError, match="`keys` must be .*string.*, received: .*int32"):
        words.lookup(td.constant([1]))
    with pytest.raises(
        td.errors.FailedPreconditionError,
        match="different value for same key. Key b'a' has 1 and trying to add value 2",
    ):
        lookup.StaticHashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), 0)
    with pytest.raises(td.errors.InvalidArgumentError, match=r"Expected shape \[2\] for value"):
        lookup.KeyValueTensorInitializer(["a", "b"], [1])
    with pytest.raises(TypeError, match="scalar"):
        lookup.StaticHashTable(PAIRS, [-1, 0])
    with pytest.raises(NotImplementedError, match="make the table outside"):
        td.function(lambda k: lookup.KeyValueTensorInitializer(k, [1]))(td.constant(["a"]))


def test_unknown_tokens_have_buckets_behind_the_table():
    numbers = lookup.KeyValueTensorInitializer(
        ["emerson", "lake", "palmer"], td.constant([0, 1, 2], td.int64)
    )
    table = lookup.StaticVocabularyTable(numbers, 2)
    unknown = td.constant(["lake", "genesis", "king", "palmer"])
    hashes = 3 + td.strings.to_hash_bucket_fast(unknown, 2)
    assert both(table, unknown) == [1, int(hashes[1]), int(hashes[2]), 2]
    assert int(table.size()) == 5
    only = lookup.StaticVocabularyTable(None, 5, td.int64)
    texts = td.strings.to_hash_bucket_fast(["10", "-1"], 5).numpy().tolist()
    assert both(only, td.constant([10, -1], td.int64)) == texts
    with pytest.raises(ValueError, match="oov_buckets must be > 0"):
        lookup.StaticVocabularyTable(numbers, 0)
    with pytest.raises(TypeError, match="int64"):
        lookup.StaticVocabularyTable(PAIRS, 1)
    with pytest.raises(TypeError, match="strings or integers"):
        lookup.StaticVocabularyTable(None, 1, td.float32)


def test_lines_of_files(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("a\t5\nb\t6\nc\t7\n")
    whole, number = lookup.TextFileIndex.WHOLE_LINE, lookup.TextFileIndex.LINE_NUMBER
    columns = lookup.TextFileInitializer(str(path), td.string, 0, td.int64, 1)
    assert both(lookup.StaticHashTable(columns, -1), td.constant(["c", "x"])) == [7, -1]
    lines = lookup.TextFileInitializer(
        path, td.int64, number, td.string, whole, vocab_size=2, value_index_offset=0
    )
    found = both(lookup.StaticHashTable(lines, "?"), td.constant([1, 2], td.int64))
    assert found == [b"b\t6", b"?"]
    offset = lookup.TextFileInitializer(path, td.string, 0, td.int64, number, value_index_offset=10)
    assert both(lookup.StaticHashTable(offset, -1), td.constant(["a", "c"])) == [10, 12]
    path.write_text("42\n1\n-1000\n")
    numbers = lookup.TextFileInitializer(path, td.int64, whole, td.int64, number)
    assert both(lookup.StaticHashTable(numbers, -1), td.constant([1, 42, 7], td.int64)) == [
        1,
        0,
        -1,
    ]
    path.write_text("a\t5\nb\t6\nc\t7\n")
    for arguments, text in (
        ((td.string, 0, td.int64, 2), "line 0 has 2 columns"),
        ((td.string, 0, td.int64, 0), "'a' in line 0 is no number"),
    ):
        with pytest.raises(td.errors.InvalidArgumentError, match=text):
            lookup.StaticHashTable(lookup.TextFileInitializer(path, *arguments), -1)
    with pytest.raises(td.errors.InvalidArgumentError, match="vocab_size is 4, but there are 3"):
        lookup.TextFileInitializer(path, td.string, 0, td.int64, 1, vocab_size=4).pairs()
    with pytest.raises(td.errors.NotFoundError, match="no such file"):
        lookup.TextFileInitializer(tmp_path / "none", td.string, 0, td.int64, 1).pairs()
    for file in ("", td.constant(1), td.constant(["a"])):
        with pytest.raises(ValueError, match=r"filename is empty|path of a file is a string"):
            lookup.TextFileInitializer(file, td.string, 0, td.int64, 1)
    with pytest.raises(ValueError, match="numbers of lines are int64"):
        lookup.TextFileInitializer(path, td.int32, number, td.string, whole)


def test_tables_in_datasets_and_saved_models(tmp_path):
    table = lookup.StaticHashTable(PAIRS, -1)
    data = td.data.Dataset.from_tensor_slices(["c", "q", "a"]).map(table.lookup)
    assert [int(x) for x in data] == [3, -1, 2]

    class Numbers(td.Module):
        def __init__(self):
            self.table = table

        @td.function(input_signature=[td.TensorSpec([None], td.string)])
        def __call__(self, words):
            return self.table.lookup(words)

    td.saved_model.save(Numbers(), str(tmp_path / "model"))
    loaded = td.saved_model.load(str(tmp_path / "model"))
    assert loaded(td.constant(["a", "x"])).numpy().tolist() == [2, -1]


def test_tables_of_graphs():
    with v1.Graph().as_default():
        keys = v1.placeholder(v1.string, [None])
        table = v1.lookup.StaticHashTable(PAIRS, -1)
        numbers = v1.lookup.StaticVocabularyTable(
            lookup.KeyValueTensorInitializer(["a"], np.array([0])), 1
        )
        found, known = table.lookup(keys), numbers.lookup(keys)
        with v1.Session() as session:
            session.run([table.initializer, v1.tables_initializer()])
            values = session.run([found, known], {keys: ["b", "a", "z"]})
    assert [v.tolist() for v in values] == [[1, 2, -1], [1, 0, 1]]
    assert re.match("hash_table_Lookup", found.op.name)
