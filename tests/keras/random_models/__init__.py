"""Models that are made at random, run by treadle and by Keras on TensorFlow, and compared.

    python -m tests.keras.random_models.run tensorflow 0 40 --out /tmp/tf.pkl
    python -m tests.keras.random_models.run treadle 0 40 --out /tmp/td.pkl
    python -m tests.keras.random_models.run treadle 0 40 --read /tmp/tf.pkl
    python -m tests.keras.random_models.compare /tmp/tf.pkl /tmp/td.pkl

The third of these reads the files that the other library saved. A number is a model: the same
layers, weights and data in both libraries.
"""
