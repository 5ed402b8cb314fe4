"""Saves checkpoints until it is killed: the program that test_files kills.

    python saver.py FOLDER

The variables of a checkpoint all have the same value, the number of the saving.
"""

import sys

import numpy as np

import treadle as td

step = td.Variable(0, dtype=td.int64)
weights = [td.Variable(np.zeros(size, np.float32)) for size in (10, 100_000, 1_000_000)]
checkpoint = td.train.Checkpoint(step=step, weights=weights)
manager = td.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)
manager.restore_or_initialize()
print("ready", flush=True)
while True:
    step.assign_add(1)
    for weight in weights:
        weight.assign(np.full(weight.shape, step.numpy(), np.float32))
    manager.save()
    checkpoint.write(f"{sys.argv[1]}/best")  # the same file again and again
