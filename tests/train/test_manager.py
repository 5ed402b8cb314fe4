"""CheckpointManager and the file that lists the checkpoints of a directory."""

import os
import threading
import time

import pytest

import treadle as td
from treadle.train.state_file import update_checkpoint_state


def names(folder):
    return sorted(p for p in os.listdir(folder) if p != "checkpoint")


def managed(folder, **options):
    v = td.Variable(0)
    return v, td.train.CheckpointManager(td.train.Checkpoint(v=v), folder, **options)


def test_the_oldest_checkpoints_are_deleted(tmp_path):
    v, manager = managed(tmp_path, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == []
    for step in range(1, 5):
        v.assign(step)
        path = manager.save()
        assert path == str(tmp_path / f"ckpt-{step}") == manager.latest_checkpoint
        assert path == td.train.latest_checkpoint(tmp_path)
    assert names(tmp_path) == ["ckpt-3.safetensors", "ckpt-4.safetensors"]
    assert manager.checkpoints == [str(tmp_path / f"ckpt-{step}") for step in (3, 4)]
    w, other = managed(tmp_path, max_to_keep=2)
    assert other.checkpoints == manager.checkpoints
    assert other.restore_or_initialize() == str(tmp_path / "ckpt-4")
    assert w.numpy() == 4
    other.save()
    assert names(tmp_path) == ["ckpt-4.safetensors", "ckpt-5.safetensors"]


def test_own_numbers_and_names(tmp_path):
    _, manager = managed(tmp_path, max_to_keep=3, checkpoint_name="model.ckpt")
    assert manager.save(checkpoint_number=100).endswith("model.ckpt-100")
    assert manager.save(checkpoint_number=td.Variable(7)).endswith("model.ckpt-7")
    assert manager.checkpoint.save_counter.numpy() == 2
    assert [os.path.basename(p) for p in manager.checkpoints] == ["model.ckpt-100", "model.ckpt-7"]


def test_all_are_kept_without_a_number(tmp_path):
    _, manager = managed(tmp_path, max_to_keep=None)
    for _ in range(4):
        manager.save()
    assert len(names(tmp_path)) == 4 == len(manager.checkpoints)
    with pytest.raises(ValueError, match="Expected a positive integer or `None`"):
        managed(tmp_path, max_to_keep=0)


def test_some_are_kept_for_good(tmp_path, monkeypatch):
    now = [time.time()]
    monkeypatch.setattr("treadle.train.management.time.time", lambda: now[0])
    _, manager = managed(tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2)
    for _ in range(6):
        now[0] += 3600
        manager.save()
    assert names(tmp_path) == [f"ckpt-{n}.safetensors" for n in (2, 4, 6)]
    _, other = managed(tmp_path, max_to_keep=1)
    assert [os.path.basename(p) for p in other.checkpoints] == ["ckpt-6"]


def test_nothing_is_saved_within_an_interval(tmp_path):
    step = td.Variable(0)
    _, manager = managed(tmp_path, max_to_keep=None, step_counter=step, checkpoint_interval=3)
    saved = []
    for _ in range(8):
        step.assign_add(1)
        saved.append(manager.save() is not None)
    assert saved == [True, False, False, True, False, False, True, False]
    assert manager.save(check_interval=False) is not None
    assert manager.save(check_interval=False) is None
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        managed(tmp_path, max_to_keep=1, checkpoint_interval=3)


def test_the_first_start_is_the_users(tmp_path):
    called = []
    v, manager = managed(tmp_path, max_to_keep=1, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None and called == [1]
    manager.save()
    assert manager.restore_or_initialize() == manager.latest_checkpoint and called == [1]


def test_a_checkpoint_that_cannot_be_written_costs_no_other(tmp_path, monkeypatch):
    _, manager = managed(tmp_path, max_to_keep=1)
    first = manager.save()

    def full(file, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("treadle.train.atomic.os.write", full)
    with pytest.raises(td.errors.ResourceExhaustedError):
        manager.save()
    monkeypatch.undo()
    assert manager.checkpoint.save_counter.numpy() == 1
    assert names(tmp_path) == ["ckpt-1.safetensors"]
    assert td.train.latest_checkpoint(tmp_path) == first == manager.latest_checkpoint


def test_the_file_is_tensorflows(tmp_path):
    (tmp_path / "checkpoint").write_text(
        'model_checkpoint_path: "k\\303\\251 \\"x\\"-2"\n'
        'all_model_checkpoint_paths: "ck-1"\n'
        'all_model_checkpoint_paths: "k\\303\\251 \\"x\\"-2"\n'
        "all_model_checkpoint_timestamps: 1.5\nall_model_checkpoint_timestamps: 2.5e3\n"
        "last_preserved_timestamp: 0.5\n"
    )
    state = td.train.get_checkpoint_state(tmp_path)
    assert state.model_checkpoint_path == str(tmp_path / 'ké "x"-2')
    assert state.all_model_checkpoint_paths == [str(tmp_path / "ck-1"), str(tmp_path / 'ké "x"-2')]
    assert state.all_model_checkpoint_timestamps == [1.5, 2500.0]
    assert td.train.latest_checkpoint(tmp_path) is None  # its files are not there
    (tmp_path / 'ké "x"-2.index').write_text("")
    assert td.train.latest_checkpoint(tmp_path) == str(tmp_path / 'ké "x"-2')
    assert td.train.get_checkpoint_state(tmp_path / "none") is None
    (tmp_path / "checkpoint").write_text("nothing")
    with pytest.raises(ValueError, match="Invalid checkpoint state loaded from"):
        td.train.latest_checkpoint(tmp_path)


def test_names_with_marks_are_written_and_read(tmp_path):
    path = td.train.Checkpoint(v=td.Variable(1)).save(tmp_path / 'a "b" \\ é')
    assert td.train.latest_checkpoint(tmp_path) == path


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert td.train.Checkpoint(v=td.Variable(1)).save("./save/model.ckpt") == "./save/model.ckpt-1"
    assert td.train.latest_checkpoint("./save") == "./save/model.ckpt-1"
    td.train.Checkpoint(v=td.Variable(1)).save("plain")
    assert td.train.latest_checkpoint("") == "plain-1"
    assert td.train.latest_checkpoint(".") == "./plain-1"


def test_a_checkpoint_cannot_be_named_as_the_list(tmp_path):
    with pytest.raises(RuntimeError, match="conflicts with path used for checkpoint state"):
        update_checkpoint_state(str(tmp_path), str(tmp_path / "checkpoint"))


def test_new_checkpoints_are_met_as_they_come(tmp_path):
    _, manager = managed(tmp_path, max_to_keep=None)
    manager.save()
    found = td.train.checkpoints_iterator(tmp_path, timeout=5)
    assert next(found).endswith("ckpt-1")
    late = threading.Timer(0.2, manager.save)
    late.start()
    assert next(found).endswith("ckpt-2")
    late.join()
    assert list(td.train.checkpoints_iterator(tmp_path, timeout=0.05)) == [
        manager.latest_checkpoint
    ]
    answers = [False, True]
    again = td.train.checkpoints_iterator(tmp_path, timeout=0.02, timeout_fn=lambda: answers.pop(0))
    assert list(again) == [manager.latest_checkpoint] and answers == []
