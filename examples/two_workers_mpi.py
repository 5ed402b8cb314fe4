"""Two processes train one model, each on its half of every batch, and agree on the gradients.

MPI starts the workers: `mpiexec -n 2 python two_workers_mpi.py worker FOLDER`, which the program
does itself when it is run without arguments (`pip install mpi4py mpich`). The losses are those of
one worker that has the whole batch.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import treadle as tf
from treadle.datasets import digits

WORKERS, BATCH, STEPS = 2, 64, 60


def make_dataset(context):
    """Batches of the digits in a fixed order; a worker takes its share of each."""
    (images, labels), _ = digits.load_data()
    order = np.random.default_rng(0).permutation(len(images))
    x = (images[order] / 16).astype(np.float32).reshape(-1, 64)
    data = tf.data.Dataset.from_tensor_slices((x, labels[order].astype(np.int32)))
    data = data.repeat().shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.batch(context.get_per_replica_batch_size(BATCH))


def train():
    """Train under the strategy of this process's workers. Returns the loss of each step."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        tf.random.set_seed(1)
        model = tf.keras.Sequential([
            tf.keras.layers.Input(shape=(64,)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ])
        optimizer = tf.keras.optimizers.Adam(3e-3)

    def step_of_replica(x, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train_step(batch):
        losses = strategy.run(step_of_replica, args=batch)
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    batches = iter(strategy.distribute_datasets_from_function(make_dataset))
    losses = [float(train_step(next(batches))) for _ in range(STEPS)]
    resolver = strategy.cluster_resolver
    print(f"worker {resolver.task_id} of {strategy.num_replicas_in_sync}: {losses[-1]:.6f}")
    return losses, resolver.task_id


def worker(folder):
    """One of the workers: it leaves its losses in a file."""
    losses, number = train()
    with open(os.path.join(folder, f"{number}.json"), "w") as file:
        json.dump(losses, file)


def main():
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")  # that of the package mpich
    with tempfile.TemporaryDirectory() as folder:
        command = [mpiexec, "-n", str(WORKERS), sys.executable, __file__, "worker", folder]
        subprocess.run(command, check=True, timeout=200)
        found = []
        for number in range(WORKERS):
            with open(os.path.join(folder, f"{number}.json")) as file:
                found.append(json.load(file))
    alone, _ = train()
    assert found[0] == found[1], "the workers differ"
    np.testing.assert_allclose(found[0], alone, rtol=1e-4)
    assert alone[-1] < alone[0] / 3
    print(f"loss {alone[0]:.4f}, after {STEPS} steps {alone[-1]:.4f}, with one worker and with two")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        worker(sys.argv[2])
    else:
        main()
