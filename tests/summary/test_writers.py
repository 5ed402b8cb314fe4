"""Files of events: their form, threads, processes that end, disks that are full, no tensorboard."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import treadle as td
from tests.summary.reading import accumulated, entries, event_files, events

SCALARS = 1  # TensorBoard's class of data


def python(code, *arguments):
    """What a program of its own prints."""
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def writer(tmp_path):
    made = td.summary.create_file_writer(tmp_path)
    yield made
    made.close()


def test_tensorboard_reads_curves(tmp_path, writer):
    with writer.as_default():
        for step in range(5):
            td.summary.scalar("loss", 1.0 / (step + 1), step=step)
    found = accumulated(tmp_path)
    assert found.Tags()["tensors"] == ["loss"]
    assert [event.step for event in found.Tensors("loss")] == [0, 1, 2, 3, 4]
    read = [entry.value for entry in entries(tmp_path)]
    np.testing.assert_array_equal(read, 1 / np.arange(1, 6, dtype=np.float32))
    assert {(e.kind, e.data) for e in entries(tmp_path)} == {("scalars", SCALARS)}


def test_the_first_event_says_which_format_it_is(tmp_path, writer):
    first = events(tmp_path)[0]
    assert first.file_version == "brain.Event:2"
    assert abs(first.wall_time - event_files(tmp_path)[0].stat().st_mtime) < 60


def test_names_of_files(tmp_path, writer):
    td.summary.create_file_writer(tmp_path, filename_suffix=".other")
    names = [path.name for path in event_files(tmp_path)]
    assert len(set(names)) == 2 and all(str(os.getpid()) in name.split(".") for name in names)
    assert {name.rpartition(".")[2] for name in names} == {"v2", "other"}


def test_a_block_flushes_and_a_queue_waits(tmp_path, writer):
    path = event_files(tmp_path)[0]
    with writer.as_default(step=0):
        td.summary.scalar("a", 1.0)
        assert [e.tag for e in entries(tmp_path)] == []
        td.summary.flush()
        assert [e.tag for e in entries(tmp_path)] == ["a"]
        td.summary.scalar("b", 1.0)
    assert [e.tag for e in entries(tmp_path)] == ["a", "b"]
    assert path.stat().st_size > 0


def test_old_events_are_written_when_the_next_one_comes(tmp_path):
    with td.summary.create_file_writer(tmp_path, flush_millis=0).as_default(step=0):
        td.summary.scalar("a", 1.0)
        assert [e.tag for e in entries(tmp_path)] == ["a"]


def test_threads_write_into_one_file(tmp_path, writer):
    @td.function
    def step(x, i):
        return td.summary.scalar("compiled", x, step=i)

    def work(number):
        with writer.as_default():
            for i in range(50):
                td.summary.scalar(f"thread{number}", float(i), step=i)
                step(td.constant(1.0), td.constant(i, td.int64))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = entries(tmp_path)
    for n in range(4):
        assert [e.step for e in found if e.tag == f"thread{n}"] == list(range(50))
    assert sum(e.tag == "compiled" for e in found) == 200


def test_the_default_writer_belongs_to_a_thread(tmp_path, writer):
    seen = []
    with writer.as_default(step=3):
        thread = threading.Thread(
            target=lambda: seen.append(
                (bool(td.summary.should_record_summaries()), td.summary.experimental.get_step())
            )
        )
        thread.start()
        thread.join()
        assert bool(td.summary.should_record_summaries())
    assert seen == [(False, None)]


def test_a_process_that_ends_loses_nothing(tmp_path):
    code = """
import sys, treadle as td
writer = td.summary.create_file_writer(sys.argv[1])
writer.set_as_default(step=1)
td.summary.scalar("last", 2.0)
"""
    python(code, tmp_path)
    assert [(e.tag, float(e.value)) for e in entries(tmp_path)] == [("last", 2.0)]


def test_a_writer_that_nobody_holds_is_closed(tmp_path):
    writer = td.summary.create_file_writer(tmp_path)
    with writer.as_default(step=0):
        td.summary.scalar("a", 1.0)
    file = writer.file
    del writer
    opened = file._file
    del file
    assert opened.closed


def test_a_function_keeps_its_writer(tmp_path):
    @td.function
    def step(x):
        with td.summary.create_file_writer(tmp_path).as_default():
            return td.summary.scalar("a", x, step=0)

    assert bool(step(td.constant(1.0))) and bool(step(td.constant(2.0)))
    assert [float(e.value) for e in entries(tmp_path)] == [1.0, 2.0]
    assert len(event_files(tmp_path)) == 1


def test_a_full_disk_is_one_error(tmp_path, writer):
    """A limit on the sizes of files does what a full disk does."""
    code = """
import resource, sys, numpy as np, treadle as td
writer = td.summary.create_file_writer(sys.argv[1])
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    with writer.as_default(step=0):
        td.summary.write("a", np.zeros(100_000, np.uint8))
except td.errors.ResourceExhaustedError as error:
    print("refused", "tfevents" in str(error))
import os; os._exit(0)
"""
    assert "refused True" in python(code, tmp_path)


def test_a_folder_that_may_not_be_written(tmp_path):
    code = """
import os, sys, treadle as td
td.summary.create_file_writer(os.path.join(sys.argv[1], "others"))  # loads the modules
os.setuid(65534)
try:
    td.summary.create_file_writer(os.path.join(sys.argv[1], "closed", "logs"))
except td.errors.PermissionDeniedError as error:
    print("refused", sys.argv[1] in str(error))
"""
    if os.getuid():
        code = code.replace("os.setuid(65534)", "")
    (tmp_path / "closed").mkdir(mode=0o500)
    assert "refused True" in python(code, tmp_path)


def test_without_tensorboard_one_line_says_what_to_install(tmp_path):
    code = """
import sys
sys.modules["tensorboard"] = None
import treadle as td
assert not bool(td.summary.scalar("a", 1.0, step=0))
try:
    td.summary.create_file_writer(sys.argv[1])
except ImportError as error:
    print(error)
"""
    assert "pip install 'treadle[summary]'" in python(code, tmp_path)
    assert not list(tmp_path.iterdir())


def test_importing_treadle_does_not_import_tensorboard():
    code = "import sys, treadle as td; td.summary.scalar; td.keras.callbacks.TensorBoard; " \
        "print('tensorboard' in sys.modules, 'google.protobuf' in sys.modules)"
    assert python(code).split() == ["False", "False"]


def test_events_of_others_are_taken_over(tmp_path, writer):
    from tensorboard.compat.proto import event_pb2

    event = event_pb2.Event(step=7, wall_time=5.0)
    event.summary.value.add(tag="old", simple_value=2.5)
    with writer.as_default(), td.summary.record_if(False):
        td.summary.import_event(event.SerializeToString())
    found = events(tmp_path)[-1]
    assert (found.step, found.wall_time, found.summary.value[0].tag) == (7, 5.0, "old")
    with pytest.raises(td.errors.DataLossError, match="Event"), writer.as_default():
        td.summary.import_event(b"\xff\xff")
    with pytest.raises(ValueError, match="no default writer"):
        td.summary.import_event(b"")


def test_seeds(tmp_path):
    """The program of a book: summaries of a loop of batches under a tape."""
    writer = td.summary.create_file_writer(str(tmp_path))
    weights = td.Variable([1.0, 2.0])
    optimizer = td.keras.optimizers.Adam(0.1)
    losses = []
    for batch in range(4):
        with td.GradientTape() as tape:
            loss = td.reduce_mean(weights**2)
            with writer.as_default():
                td.summary.scalar("loss", loss, step=batch)
                td.summary.scalar("MyScalar", batch * 2, step=batch)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        losses.append(float(loss))
    found = entries(tmp_path)
    np.testing.assert_allclose([float(e.value) for e in found if e.tag == "loss"], losses)
    assert [float(e.value) for e in found if e.tag == "MyScalar"] == [0, 2, 4, 6]


def test_events_that_a_full_disk_refused_are_written_when_it_has_room(tmp_path):
    printed = python(
        """
import resource, sys, numpy as np, treadle as td
writer = td.summary.create_file_writer(sys.argv[1])
with writer.as_default():
    td.summary.text("kept", "first", step=0)
    writer.flush()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        td.summary.text("large", "x" * 3000, step=1)
        writer.flush()
    except td.errors.ResourceExhaustedError as error:
        print("full:", error.message)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    td.summary.text("later", "last", step=2)
writer.close()
""",
        tmp_path,
    )
    (path,) = event_files(tmp_path)
    assert printed.startswith("full:") and f"{path}; " in printed
    assert [entry.tag for entry in entries(tmp_path)] == ["kept", "large", "later"]


@pytest.mark.parametrize("way", [lambda f: f, td.function])
def test_a_condition_may_change_the_step(tmp_path, writer, way):
    step = td.Variable(-1, dtype=td.int64)

    @way
    def second_time():
        step.assign_add(1)
        return step % 2 == 0

    @way
    def write():
        return [td.summary.write("x", 1.0, step=step) for _ in range(2)]

    with writer.as_default(), td.summary.record_if(second_time):
        found = [bool(x) for _ in range(2) for x in write()]
    assert found == [True, False, True, False]
    assert [event.step for event in events(tmp_path)[1:]] == [0, 2]
    with writer.as_default(), td.summary.record_if(False):
        assert not td.summary.write("x", 1.0)  # nothing is written, so no step is missing


def test_several_messages_are_one_and_metadata_may_be_a_tensor(tmp_path, writer):
    metadata = b"\n\x05\n\x03foo"
    with writer.as_default(step=3):
        td.summary.write("x", 1.0, metadata=td.constant(metadata))
        writer.flush()
        kind = type(events(tmp_path)[1].summary)
        texts = [kind(value=[kind.Value(tag=tag)]).SerializeToString() for tag in "ab"]
        assert bool(td.summary.experimental.write_raw_pb(texts))
    first, second = events(tmp_path)[1:]
    assert first.summary.value[0].metadata.plugin_data.plugin_name == "foo"
    assert [value.tag for value in second.summary.value] == ["a", "b"] and second.step == 3


def test_a_writer_that_fails_is_not_the_default_one_any_more(tmp_path, monkeypatch):
    writer = td.summary.create_file_writer(str(tmp_path))

    def full(*args):
        raise td.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(writer.file, "flush", full)
    with pytest.raises(td.errors.ResourceExhaustedError), writer.as_default(step=3):
        pass
    assert not td.summary.scalar("a", 1.0, step=0)
    assert td.summary.experimental.get_step() is None
    monkeypatch.undo()
    writer.close()
