"""Training that is killed in the middle and resumed: the losses are those of a run left alone.

A checkpoint has the weights, the optimizer's averages, the state of the random numbers and the
place in the data. Run without arguments, the program starts itself three times: once from beginning
to end, once to be killed after 133 steps, and once to go on from the last checkpoint.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np

import treadle as tf

STEPS, EVERY, KILLED_AT = 200, 20, 133


class Training(tf.Module):
    """A regression with noise on its inputs and everything that it needs to go on."""

    def __init__(self):
        super().__init__()
        self.model = tf.keras.Sequential([
            tf.keras.layers.Dense(32, activation="tanh"),
            tf.keras.layers.Dense(1),
        ])
        self.optimizer = tf.keras.optimizers.Adam(learning_rate=0.02)
        self.generator = tf.random.Generator.from_seed(7)
        self.step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train_step(self, x, y):
        noisy = x + self.generator.normal(tf.shape(x), stddev=0.05)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.model(noisy) - y))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        self.step.assign_add(1)
        return loss


def make_iterator():
    """Batches in a random order that is another one in every epoch."""
    x = np.random.default_rng(0).uniform(-1, 1, size=(200, 3)).astype(np.float32)
    y = np.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:]
    dataset = tf.data.Dataset.from_tensor_slices((x, y))
    return iter(dataset.shuffle(200, seed=3).repeat().batch(16))


def train(folder, killed_at):
    """Train from the last checkpoint on, and write each loss into a file of lines."""
    tf.random.set_seed(5)
    training, iterator = Training(), make_iterator()
    checkpoint = tf.train.Checkpoint(training=training, iterator=iterator)
    manager = tf.train.CheckpointManager(checkpoint, os.path.join(folder, "saved"), max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    if manager.latest_checkpoint:
        print(f"restored from {os.path.basename(manager.latest_checkpoint)}")
    with open(os.path.join(folder, "losses.jsonl"), "a") as log:
        while training.step < STEPS:
            loss = training.train_step(*next(iterator))
            step = int(training.step)
            print(json.dumps([step, float(loss)]), file=log, flush=True)
            if step % EVERY == 0:
                manager.save(checkpoint_number=step)
            if step == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)


def run(folder, killed_at=0):
    """Run `train` in a process of its own; its exit code."""
    return subprocess.run([sys.executable, __file__, folder, str(killed_at)]).returncode


def read_losses(folder):
    """The loss of each step; of one that was done twice, because it came after the last checkpoint,
    that of the second time."""
    with open(os.path.join(folder, "losses.jsonl")) as log:
        return dict(json.loads(line) for line in log)


def main():
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        assert run(whole) == 0
        assert run(broken, KILLED_AT) == -signal.SIGKILL
        assert len(read_losses(broken)) == KILLED_AT
        assert run(broken) == 0
        expected, found = read_losses(whole), read_losses(broken)
    print(f"loss of the first step {found[1]:.4f}, of the last {found[STEPS]:.4f}")
    assert list(found) == list(expected) == list(range(1, STEPS + 1))
    assert found == expected, "the losses differ"
    assert found[STEPS] < found[1] / 4


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(sys.argv[1], int(sys.argv[2]))
    else:
        main()
