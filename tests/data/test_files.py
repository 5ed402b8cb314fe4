"""Datasets of files: where errors are, what workers leave behind, elements that are kept."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td

Dataset = td.data.Dataset
E = td.errors


def recorded(path: Path, *items: bytes) -> str:
    with td.io.TFRecordWriter(path) as writer:
        for item in items:
            writer.write(item)
    return str(path)


def numbers(dataset: Any) -> list[Any]:
    return [x.tolist() if isinstance(x, np.ndarray) else x for x in dataset.as_numpy_iterator()]


# -- errors ----------------------------------------------------------------------------------------


def test_a_corrupt_record_names_file_and_offset(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a", b"one", b"two", b"three")
    data = bytearray(Path(path).read_bytes())
    data[19 + 12] ^= 4
    Path(path).write_bytes(data)
    dataset = td.data.TFRecordDataset([path, recorded(tmp_path / "b", b"four")])
    with pytest.raises(E.DataLossError, match=f"{path}: corrupted record at 19"):
        numbers(dataset)
    assert numbers(dataset.ignore_errors()) == [b"one", b"four"]
    for files in (1, 2):
        names = td.data.TFRecordDataset([path, path], num_parallel_reads=files)
        with pytest.raises(E.DataLossError, match=f"{path}: corrupted record at 19"):
            numbers(names.map(td.strings.length, num_parallel_calls=2).batch(2).prefetch(2))


def test_errors_name_the_stage() -> None:
    def checked(x: Any) -> Any:
        td.debugging.assert_less(x, td.constant(2, td.int64))
        return x

    for calls in (None, 2, td.data.AUTOTUNE):
        mapped = Dataset.range(4).map(checked, num_parallel_calls=calls)
        kind = "Map" if calls is None else "ParallelMap"
        with pytest.raises(
            E.InvalidArgumentError, match=rf"in the stage {kind} made at .*test_files.py:\d+"
        ):
            numbers(mapped.batch(2).prefetch(1))
    kept = Dataset.range(4).filter(lambda x: checked(x) >= 0)
    with pytest.raises(E.InvalidArgumentError, match=r"in the stage Filter made at"):
        numbers(kept)


def test_errors_of_stages_without_functions_name_them(tmp_path: Path) -> None:
    def rows() -> Any:
        yield [1]
        yield [1, 2]

    spec = td.TensorSpec([None], td.int32)
    choice = td.constant([0, 2], td.int64)
    names = Dataset.from_tensors(str(tmp_path / "none"))
    cases = {
        "Batch": Dataset.from_generator(rows, output_signature=spec).batch(2).prefetch(1),
        "FromGenerator": Dataset.from_generator(rows, output_signature=td.TensorSpec([1], td.int32))
        .batch(2),
        "Choose": Dataset.choose_from_datasets(
            [Dataset.range(3)] * 2, Dataset.from_tensor_slices(choice)
        ).batch(2),
        "Files": td.data.TFRecordDataset(names).map(td.strings.length).prefetch(1),
    }  # fmt: skip
    for stage, dataset in cases.items():
        with pytest.raises(E.OpError, match=rf"in the stage {stage} made at .*test_files.py:\d+$"):
            numbers(dataset)


def test_an_iterator_goes_on_behind_an_error() -> None:
    def checked(x: Any) -> Any:
        td.debugging.assert_none_equal(x, td.constant(1, td.int64))
        return x

    for dataset in (
        Dataset.range(3).map(checked), Dataset.range(3).map(checked, num_parallel_calls=2),
        Dataset.range(3).map(checked).prefetch(2),
    ):  # fmt: skip
        iterator = iter(dataset)
        assert int(next(iterator)) == 0
        with pytest.raises(E.InvalidArgumentError):
            next(iterator)
        assert int(next(iterator)) == 2
        with pytest.raises(StopIteration):
            next(iterator)


def test_warnings_of_what_is_left_out(tmp_path: Path) -> None:
    names = [str(tmp_path / "none"), recorded(tmp_path / "a", b"x")]
    with pytest.warns(RuntimeWarning, match="none; No such file"):
        assert numbers(td.data.TFRecordDataset(names).ignore_errors(log_warning=True)) == [b"x"]


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda: td.data.TFRecordDataset("a", "LZ4"), E.InvalidArgumentError, "LZ4"),
        (lambda: td.data.TFRecordDataset("a", num_parallel_reads=0), E.InvalidArgumentError, "0"),
        (lambda: td.data.FixedLengthRecordDataset("a", 2, -1), E.InvalidArgumentError, "-1"),
        (lambda: Dataset.load("/none", wait=True), NotImplementedError, "wait"),
        (lambda: Dataset.range(3).save("/a", shard_func=lambda x: 0.5), ValueError, "int64 scalar"),
        (lambda: Dataset.range(3).rejection_resample(lambda x: 0.5, [1.0]), ValueError, "integer"),
        (lambda: Dataset.range(3).rejection_resample(lambda x: x, 1.0), ValueError, "vectors"),
    ],
)  # fmt: skip
def test_refusals(use: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        use()


def test_classes_that_have_not_come_yet_are_not_taken_for_none() -> None:
    elements = Dataset.from_tensor_slices(np.repeat([0, 1], [900, 100]))
    balanced = elements.rejection_resample(lambda x: x, [0.5, 0.5], seed=1)
    found = numbers(balanced.map(lambda c, x: x))
    assert found.count(0) < 150 and found.count(1) == 100


def test_a_class_without_share() -> None:
    with pytest.raises(E.InvalidArgumentError, match="class 2 of 2"):
        numbers(Dataset.range(3).rejection_resample(lambda x: x, [0.5, 0.5]).map(lambda c, x: x))


# -- threads ---------------------------------------------------------------------------------------


def threads() -> int:
    """How many threads of datasets there are; others, such as the learner's, stay."""
    names = ("treadle-prefetch", "treadle-map")
    return sum(t.name.startswith(names) for t in threading.enumerate())


def test_workers_stop_with_the_iterator(tmp_path: Path) -> None:
    before = threads()
    names = [recorded(tmp_path / str(i), *[b"x"] * 500) for i in range(3)]
    dataset = (
        td.data.TFRecordDataset(names, num_parallel_reads=3)
        .map(td.strings.length, num_parallel_calls=2)
        .prefetch(2)
    )
    iterator = iter(dataset)
    next(iterator)
    assert threads() > before
    del iterator
    until = time.time() + 60
    while threads() > before and time.time() < until:
        time.sleep(0.02)
    assert threads() <= before


# -- elements that are kept ------------------------------------------------------------------------


def test_a_cache_of_a_part_is_none(tmp_path: Path) -> None:
    dataset = Dataset.range(5).cache(str(tmp_path / "c"))
    iterator = iter(dataset)
    next(iterator)
    assert numbers(dataset) == [0, 1, 2, 3, 4]  # another pass writes a file of its own
    del iterator
    assert os.listdir(tmp_path) == ["c.elements"]
    assert numbers(dataset.take(2)) == [0, 1]


def test_a_damaged_cache(tmp_path: Path) -> None:
    dataset = Dataset.range(5).cache(tmp_path / "c")
    numbers(dataset)
    path = tmp_path / "c.elements"
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(E.DataLossError, match=r"c\.elements: corrupted record at \d+"):
        numbers(dataset)
    path.write_bytes(b"")
    with pytest.raises(E.DataLossError, match="not a file of elements"):
        numbers(dataset)


def test_what_was_saved_is_valid_until_all_is_written(tmp_path: Path) -> None:
    path = str(tmp_path / "saved")
    Dataset.range(3).save(path)

    def failing(x: Any) -> Any:
        td.debugging.assert_less(x, td.constant(2, td.int64))
        return x

    with pytest.raises(E.InvalidArgumentError):
        Dataset.range(5).map(failing).save(path)
    assert numbers(Dataset.load(path)) == [0, 1, 2]
    assert len(os.listdir(path)) == 2


def test_a_folder_with_a_file_missing(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    Dataset.range(6).save(path, shard_func=lambda x: x % 3)
    (missing,) = path.glob("shard-00001.*")
    missing.unlink()
    with pytest.raises(E.NotFoundError, match="shard-00001"):
        numbers(Dataset.load(path))
    (path / "dataset.json").write_text("{")
    with pytest.raises(E.DataLossError, match="not a description"):
        Dataset.load(path)


def test_structures_are_saved(tmp_path: Path) -> None:
    given = {"a": np.arange(3), "b": (np.ones([3, 2]), [b"x", b"", b"yy"])}
    dataset = Dataset.from_tensor_slices(given)
    dataset.save(tmp_path / "s", compression="GZIP")
    found = Dataset.load(tmp_path / "s")
    assert found.element_spec == dataset.element_spec
    for one, two in zip(found, dataset, strict=True):
        td.nest.map_structure(lambda x, y: np.testing.assert_array_equal(x, y), one, two)
    with pytest.raises(E.InvalidArgumentError, match="another dataset"):
        Dataset.load(tmp_path / "s", element_spec=td.TensorSpec([], td.int64))


def test_nothing_is_saved(tmp_path: Path) -> None:
    Dataset.range(0).save(tmp_path / "s")
    assert numbers(Dataset.load(tmp_path / "s")) == []
    read = Dataset.load(tmp_path / "s", reader_func=lambda files: files.flat_map(lambda f: f))
    assert numbers(read) == []


def test_a_changed_pipeline_has_another_snapshot(tmp_path: Path) -> None:
    def kept(factor: int) -> Any:
        return Dataset.range(4).map(lambda x: x * factor).snapshot(tmp_path)

    assert numbers(kept(2)) == numbers(kept(2)) == [0, 2, 4, 6]
    assert numbers(kept(3)) == [0, 3, 6, 9]
    assert len(os.listdir(tmp_path)) == 2
    sharded = Dataset.range(4).snapshot(
        tmp_path, shard_func=lambda x: x % 2, reader_func=lambda f: f.flat_map(lambda part: part)
    )
    assert numbers(sharded) == [0, 1, 2, 3] and numbers(sharded) == [0, 2, 1, 3]


def test_files_in_functions(tmp_path: Path) -> None:
    @td.function
    def total(pattern: Any) -> Any:
        size = 0
        for name in Dataset.list_files(pattern):
            for record in td.data.TFRecordDataset(name):
                size += td.strings.length(record)
        return size

    recorded(tmp_path / "a", b"xx", b"y")
    recorded(tmp_path / "b", b"zzz")
    assert int(total(str(tmp_path / "*"))) == 6
    with pytest.raises(E.InvalidArgumentError, match="No files matched"):
        total(str(tmp_path / "none*"))


def test_interleaved_files(tmp_path: Path) -> None:
    for name in "ab":
        recorded(tmp_path / name, *(f"{name}{i}".encode() for i in range(3)))
    names = Dataset.list_files(str(tmp_path / "*"), shuffle=False)
    found = names.interleave(td.data.TFRecordDataset, cycle_length=2, num_parallel_calls=2)
    assert numbers(found) == [b"a0", b"b0", b"a1", b"b1", b"a2", b"b2"]


# -- iterators that are saved ----------------------------------------------------------------------


def pipelines(folder: Path) -> dict[str, Any]:
    files = [recorded(folder / str(i), *[b"x" * k for k in range(i, 9)]) for i in range(3)]
    r = Dataset.range
    return {
        "range": lambda: r(20).batch(3),
        "shuffled": lambda: r(20).shuffle(7).repeat(3).batch(4),
        "mapped": lambda: r(20).map(lambda x: x * 2).shuffle(5).repeat(2).prefetch(2),
        "parallel": lambda: r(20).shuffle(20).map(lambda x: -x, num_parallel_calls=2).repeat(3),
        "filtered": lambda: r(30).filter(lambda x: x % 3 > 0).enumerate().map(lambda i, x: i * x),
        "joined": lambda: r(5).map(lambda x: x).concatenate(r(9).map(lambda x: x * x)).skip(2),
        "zipped": lambda: Dataset.zip((r(20).map(lambda x: x), r(20).shuffle(4))).take(11),
        "files": lambda: td.data.TFRecordDataset(files).map(td.strings.length).repeat(2),
        "sampled": lambda: Dataset.sample_from_datasets(
            [r(9), r(9)], rerandomize_each_iteration=True
        ),
        "random": lambda: Dataset.random(rerandomize_each_iteration=True).take(9),
        "padded": lambda: r(15).map(lambda x: td.ones([x])).padded_batch(2).cache(),
        "flat": lambda: r(5).flat_map(lambda x: Dataset.from_tensors(x).repeat(3)).shuffle(4),
        "resampled": lambda: r(40).rejection_resample(lambda x: x % 2, [0.8, 0.2]),
        "reshuffled": lambda: r(6).shuffle(6).repeat(2).map(lambda x: x).repeat(2),
    }


def plain(iterator: Any, count: int | None = None) -> list[Any]:
    found = []
    while count is None or len(found) < count:
        element = next(iterator, None)
        if element is None:
            break
        found.append([np.asarray(x).tolist() for x in td.nest.flatten(element)])
    return found


PIPELINES = (
    "range", "shuffled", "mapped", "parallel", "filtered", "joined", "zipped", "files", "sampled",
    "random", "padded", "flat", "resampled", "reshuffled",
)  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("taken", [0, 1, 5])
def test_an_iterator_goes_on_where_it_was(tmp_path: Path, name: str, taken: int) -> None:
    make = pipelines(tmp_path)[name]
    dataset = make()
    plain(iter(dataset))  # a pass before: the iterator is the dataset's second
    iterator, other = iter(dataset), iter(dataset)
    plain(iterator, taken)
    state = iterator._state_dict()
    plain(other)
    rest = plain(iterator)
    assert rest
    again = iter(make())  # another program: without a seed its order would be another
    plain(again, 2)
    again._load_state_dict(state)
    assert plain(again) == rest
    assert again._state_dict()["taken"] == taken + len(rest)


def test_elements_before_are_not_made() -> None:
    calls = []

    def counted(x: Any) -> Any:
        def count(value: Any) -> Any:
            calls.append(int(value))
            return value

        return td.numpy_function(count, [x], td.int64)

    def make() -> Any:
        return Dataset.range(1000).shuffle(1000, 3).map(counted).batch(10).repeat(2).prefetch(1)

    iterator = iter(make())
    plain(iterator, 150)
    state = iterator._state_dict()
    del iterator
    calls.clear()
    again = iter(make())
    again._load_state_dict(state)
    next(again)
    assert len(calls) <= 100


def test_has_next_in_functions_is_no_element_taken() -> None:
    iterator = iter(Dataset.range(10))

    @td.function
    def three(iterator: Any) -> Any:
        total = td.constant(0, td.int64)
        for _ in td.range(3):
            total += next(iterator)
        return total

    assert int(three(iterator)) == 3
    state = iterator._state_dict()
    assert state["taken"] == 3
    again = iter(Dataset.range(10))
    again._load_state_dict(state)
    assert int(three(again)) == 3 + 4 + 5


def test_a_state_of_another_pipeline_is_refused() -> None:
    state = iter(Dataset.range(5).shuffle(2))._state_dict()
    with pytest.raises(ValueError, match="Shuffle < Range, than this one: Range"):
        iter(Dataset.range(5))._load_state_dict(state)



def test_an_iterator_in_a_checkpoint(tmp_path: Path) -> None:
    def make() -> Any:
        return Dataset.range(20).shuffle(20).batch(3)

    iterator = iter(make())
    plain(iterator, 2)
    path = td.train.Checkpoint(iterator=iterator, step=td.Variable(2)).save(tmp_path / "c")
    rest = plain(iterator)
    again, step = iter(make()), td.Variable(0)
    td.train.Checkpoint(iterator=again, step=step).restore(path).assert_consumed()
    assert plain(again) == rest and len(rest) == 5 and int(step) == 2
    other = iter(Dataset.range(20))
    with pytest.raises(ValueError, match="over other stages"):
        td.train.Checkpoint(iterator=other, step=step).restore(path)


def test_a_table_without_the_header_that_it_should_have(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "named.csv").write_text("a\n")
    table = td.data.experimental.CsvDataset
    assert list(table(str(tmp_path / "named.csv"), [td.int32], header=True)) == []
    assert list(table(str(tmp_path / "empty.csv"), [td.int32])) == []
    with pytest.raises(td.errors.InvalidArgumentError, match="no header"):
        list(table(str(tmp_path / "empty.csv"), [td.int32], header=True))


def test_texts_are_values_of_empty_fields_also_where_numpy_has_a_dtype_of_that_name(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("1,,x\n2,a,\n")
    rows = td.data.experimental.CsvDataset(str(file), ["int32", "d", "missing"])
    found = [[v.numpy() for v in row] for row in rows]
    assert found == [[1, b"d", b"x"], [2, b"a", b"missing"]]
