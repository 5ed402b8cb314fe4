"""A classifier leaves Python: a C program trains it further and classifies with it.

The model and its training step become one shared object with a C header. The C program below is
compiled with `cc`, linked with it and run: it has the same weights at first, makes the same steps
on its own copy of the variables, and finds the same classes.
"""

import pathlib
import subprocess
import tempfile

import numpy as np

import treadle as tf

C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "flowers.h"

enum { ROWS = 120, FEATURES = 4, CLASSES = 3, STEPS = 400 };

static float features[ROWS * FEATURES];
static int32_t labels[ROWS];

static void check(int status)
{
    if (status != FLOWERS_OK) {
        fprintf(stderr, "%s\n", flowers_error());
        exit(1);
    }
}

int main(void)
{
    FILE *file = fopen("flowers.bin", "rb");
    if (!file || fread(features, sizeof features, 1, file) != 1 ||
        fread(labels, sizeof labels, 1, file) != 1)
        return 1;

    struct flowers_train step = FLOWERS_TRAIN_INIT;
    step.features.data = features;
    step.features.shape[0] = ROWS;
    step.labels.data = labels;
    step.labels.shape[0] = ROWS;
    for (int k = 0; k < STEPS; k++)
        check(flowers_train(&step));
    printf("%a\n", step.loss);

    struct flowers_classify call = FLOWERS_CLASSIFY_INIT;
    call.features.data = features;
    call.features.shape[0] = ROWS;
    check(flowers_classify(&call));
    int right = 0;
    for (int row = 0; row < ROWS; row++)
        right += call.kind.data[row] == labels[row];
    flowers_free(call.kind.data);
    printf("%d\n", right);

    float bias[CLASSES];
    check(flowers_get_variable(FLOWERS_B2, bias, sizeof bias));
    printf("%a %a %a\n", bias[0], bias[1], bias[2]);
    return 0;
}
"""


class Flowers(tf.Module):
    """Two dense layers, and a step of gradient descent."""

    def __init__(self) -> None:
        normal = np.random.default_rng(0).normal
        self.w1 = tf.Variable(normal(0, 0.5, (4, 16)).astype(np.float32), name="w1")
        self.b1 = tf.Variable(tf.zeros([16]), name="b1")
        self.w2 = tf.Variable(normal(0, 0.5, (16, 3)).astype(np.float32), name="w2")
        self.b2 = tf.Variable(tf.zeros([3]), name="b2")

    def logits(self, features):
        return tf.nn.relu(features @ self.w1 + self.b1) @ self.w2 + self.b2

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "features")])
    def classify(self, features):
        return {"kind": tf.argmax(self.logits(features), -1, output_type=tf.int32)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 4], tf.float32, "features"),
            tf.TensorSpec([None], tf.int32, "labels"),
        ]
    )
    def train(self, features, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=self.logits(features)
            )
            loss = tf.reduce_mean(losses)
        variables = [self.w1, self.b1, self.w2, self.b2]
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.1 * gradient)
        return {"loss": loss}


def flowers() -> tuple[np.ndarray, np.ndarray]:
    """Three kinds of flowers, each with lengths around its own."""
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(3, dtype=np.int32), 40)
    centers = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    return rng.normal(centers[labels], 0.25).astype(np.float32), labels


def main() -> None:
    model, (features, labels) = Flowers(), flowers()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = tf.shared_object.export(
            {"classify": model.classify, "train": model.train}, folder / "libflowers.so"
        )
        (folder / "main.c").write_text(C_PROGRAM)
        (folder / "flowers.bin").write_bytes(features.tobytes() + labels.tobytes())
        build = ["cc", "-O2", "-Wall", "main.c", "-L.", "-lflowers", "-Wl,-rpath,$ORIGIN"]
        subprocess.run([*build, "-o", "main"], cwd=folder, check=True)
        done = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True)
        print(f"{made.library.name} has {made.library.stat().st_size:,} bytes")
    loss, right, bias = done.stdout.splitlines()
    for _ in range(400):
        wanted = model.train(features, labels)["loss"]
    found = np.array([float.fromhex(x) for x in bias.split()], np.float32)
    print(f"in C: loss {float.fromhex(loss):.4f}, {right} of {len(labels)} right")
    assert float.fromhex(loss) == float(wanted)  # the same bits
    assert np.array_equal(found, model.b2.numpy())
    assert int(right) == int((model.classify(features)["kind"].numpy() == labels).sum()) > 110


if __name__ == "__main__":
    main()
