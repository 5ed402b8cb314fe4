"""Layers that prepare data, whose results are recorded from Keras and then expected of treadle.

A case takes ``keras.layers`` of the module under test (`tensorflow` or `treadle`) and gives a layer
and what to call it with. Random layers have ranges of one value, so that nothing is random.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def wave(*shape: int, phase: float = 0.0) -> Any:
    """Smooth numbers in [-1, 1] without ties."""
    return np.sin(1.7 * np.arange(np.prod(shape)) + phase).reshape(shape).astype("float32")


def pixels(*shape: int) -> Any:
    """Numbers from 0 to 255."""
    return np.round(127.5 * (wave(*shape) + 1)).astype("float32")


def adapted(layer: Any, data: Any) -> Any:
    layer.adapt(data)
    return layer


IMAGES, COLORS = (2, 5, 7, 2), (2, 5, 7, 3)
WORDS = np.array([["b", "a", "b"], ["c", "zz", ""], ["b", "a", "q"]])
NUMBERS = np.array([[5, 3, 5], [9, 0, 4], [5, 3, 7]])
NAMES = np.array(["a", "b", "", "a longer name of sixteen", "é"])
TEXTS = np.array(["The cat, the dog!", "A cat - it sat.", "Dogs & the cat's dogs"])

CASES: dict[str, Any] = {
    "rescaling": lambda k: (k.Rescaling(1 / 255.0, [0.5, -0.5]), pixels(*IMAGES)),
    "normalization": lambda k: (adapted(k.Normalization(), wave(6, 3) * 3), wave(4, 3)),
    "normalization axes": lambda k: (
        adapted(k.Normalization(axis=(1, 2)), wave(6, 3, 2)), wave(4, 3, 2)
    ),
    "normalization none": lambda k: (adapted(k.Normalization(axis=None), wave(6, 3)), wave(4, 3)),
    "normalization given": lambda k: (
        k.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 1.0, 0.25]), wave(4, 3)
    ),
    "normalization number": lambda k: (k.Normalization(mean=1.0, variance=4.0), wave(4, 3)),
    "normalization inverted": lambda k: (
        k.Normalization(mean=[1.0, 2.0, 3.0], variance=[4.0, 1.0, 0.0], invert=True), wave(4, 3)
    ),
    "category multi hot": lambda k: (k.CategoryEncoding(10), NUMBERS),
    "category one hot": lambda k: (k.CategoryEncoding(10, output_mode="one_hot"), NUMBERS[0]),
    "category one hot column": lambda k: (
        k.CategoryEncoding(10, output_mode="one_hot"), NUMBERS[:, :1]
    ),
    "category count": lambda k: (k.CategoryEncoding(10, output_mode="count"), NUMBERS),
    "category row": lambda k: (k.CategoryEncoding(10), NUMBERS[0]),
    "discretization": lambda k: (k.Discretization([-0.5, 0.0, 0.7]), wave(3, 4)),
    "discretization edges": lambda k: (
        k.Discretization([0.0, 1.0]), np.array([[-1.0, 0.0, 0.5, 1.0, 2.0]], "float32")
    ),
    "discretization adapted": lambda k: (
        adapted(k.Discretization(num_bins=4, epsilon=0.1), wave(50)), wave(3, 4)
    ),
    "discretization one hot": lambda k: (
        k.Discretization([-0.5, 0.5], output_mode="one_hot"), wave(3, 1)
    ),
    "hashing": lambda k: (k.Hashing(5), WORDS),
    "hashing ints": lambda k: (k.Hashing(7), NUMBERS),
    "hashing mask salt": lambda k: (k.Hashing(5, mask_value="", salt=(3, 4)), WORDS),
    "hashing multi hot": lambda k: (k.Hashing(5, output_mode="multi_hot"), NUMBERS),
    "integer lookup": lambda k: (k.IntegerLookup(vocabulary=[3, 5, 7]), NUMBERS),
    "integer lookup mask": lambda k: (
        k.IntegerLookup(vocabulary=[3, 5, 7], mask_token=0, num_oov_indices=2), NUMBERS
    ),
    "integer lookup adapted": lambda k: (adapted(k.IntegerLookup(), NUMBERS), NUMBERS + 1),
    "integer lookup inverted": lambda k: (
        k.IntegerLookup(vocabulary=[3, 5, 7], invert=True, mask_token=0),
        np.array([[0, 1, 2, 4, 9]]),
    ),
    "integer lookup count": lambda k: (
        k.IntegerLookup(vocabulary=[3, 5, 7], output_mode="count", mask_token=0), NUMBERS
    ),
    "integer lookup farm": lambda k: (
        k.IntegerLookup(vocabulary=[3], oov_method="farmhash", num_oov_indices=3), NUMBERS
    ),
    "string lookup": lambda k: (k.StringLookup(vocabulary=["b", "a"]), WORDS),
    "string lookup mask": lambda k: (
        k.StringLookup(vocabulary=["b", "a"], mask_token="", num_oov_indices=3), WORDS
    ),
    "string lookup adapted": lambda k: (adapted(k.StringLookup(max_tokens=4), WORDS), WORDS),
    "string lookup inverted": lambda k: (
        k.StringLookup(vocabulary=["b", "a"], invert=True), np.array([[0, 1, 2, 3]])
    ),
    "string lookup one hot": lambda k: (
        k.StringLookup(vocabulary=["b", "a"], output_mode="one_hot"), WORDS[:, :1]
    ),
    "string lookup multi hot": lambda k: (
        k.StringLookup(
            vocabulary=["b", "a"], output_mode="multi_hot", max_tokens=6, pad_to_max_tokens=True
        ),
        WORDS,
    ),
    "string lookup tf idf": lambda k: (
        adapted(k.StringLookup(output_mode="tf_idf"), WORDS), WORDS
    ),
    "string lookup tf idf given": lambda k: (
        k.StringLookup(vocabulary=["b", "a"], idf_weights=[0.5, 2.0], output_mode="tf_idf"), WORDS
    ),
    "text": lambda k: (adapted(k.TextVectorization(), TEXTS), TEXTS),
    "text length": lambda k: (
        adapted(k.TextVectorization(max_tokens=5, output_sequence_length=3), TEXTS), TEXTS[:, None]
    ),
    "text count": lambda k: (
        adapted(k.TextVectorization(output_mode="count", ngrams=2), TEXTS), TEXTS
    ),
    "text tf idf": lambda k: (
        adapted(k.TextVectorization(output_mode="tf_idf", standardize="lower"), TEXTS), TEXTS
    ),
    "text characters": lambda k: (
        k.TextVectorization(vocabulary=list("abcdt"), split="character"), TEXTS
    ),
    "text given": lambda k: (
        k.TextVectorization(vocabulary=["cat", "the cat"], ngrams=(2,), output_mode="multi_hot"),
        TEXTS,
    ),
    "resizing": lambda k: (k.Resizing(3, 4), wave(*IMAGES)),
    "resizing ints": lambda k: (k.Resizing(8, 9), pixels(*IMAGES).astype("uint8")),
    "resizing nearest": lambda k: (k.Resizing(8, 3, interpolation="nearest"), wave(*IMAGES)),
    "resizing cubic": lambda k: (k.Resizing(4, 9, interpolation="bicubic"), wave(*IMAGES)),
    "resizing antialias": lambda k: (k.Resizing(2, 3, antialias=True), wave(*IMAGES)),
    "resizing cropped": lambda k: (k.Resizing(4, 4, crop_to_aspect_ratio=True), wave(*IMAGES)),
    "resizing padded": lambda k: (
        k.Resizing(4, 4, pad_to_aspect_ratio=True, fill_value=2.0), wave(*IMAGES)
    ),
    "resizing one": lambda k: (k.Resizing(3, 4), wave(5, 7, 2)),
    "resizing first": lambda k: (k.Resizing(3, 4, data_format="channels_first"), wave(2, 2, 5, 7)),
    "center crop": lambda k: (k.CenterCrop(3, 4), wave(*IMAGES)),
    "center crop small": lambda k: (k.CenterCrop(6, 4), wave(*IMAGES)),
    "rotation": lambda k: (k.RandomRotation((0.1, 0.1)), wave(*IMAGES)),
    "rotation wrap": lambda k: (
        k.RandomRotation((-0.3, -0.3), fill_mode="wrap"), wave(*IMAGES)
    ),
    "rotation constant": lambda k: (
        k.RandomRotation((0.2, 0.2), fill_mode="constant", fill_value=0.5), wave(*IMAGES)
    ),
    "rotation nearest": lambda k: (
        k.RandomRotation((0.15, 0.15), fill_mode="nearest", interpolation="nearest"),
        wave(*IMAGES),
    ),
    "zoom": lambda k: (k.RandomZoom((0.3, 0.3)), wave(*IMAGES)),
    "zoom both": lambda k: (
        k.RandomZoom((-0.4, -0.4), (0.7, 0.7), fill_mode="reflect"), wave(*IMAGES)
    ),
    "translation": lambda k: (k.RandomTranslation((0.3, 0.3), (-0.4, -0.4)), wave(*IMAGES)),
    "translation far": lambda k: (
        k.RandomTranslation((1.0, 1.0), (0.9, 0.9), fill_mode="wrap"), wave(*IMAGES)
    ),
    "translation first": lambda k: (
        k.RandomTranslation(
            (0.3, 0.3), (-0.4, -0.4), fill_mode="constant", data_format="channels_first"
        ),
        wave(2, 2, 5, 7),
    ),
    "crop small": lambda k: (k.RandomCrop(6, 4), wave(*IMAGES)),
    "brightness": lambda k: (k.RandomBrightness((0.2, 0.2)), pixels(*IMAGES)),
    "brightness down": lambda k: (
        k.RandomBrightness((-0.2, -0.2), value_range=(-1, 1)), wave(*IMAGES)
    ),
    "color degeneration": lambda k: (k.RandomColorDegeneration((0.4, 0.4)), pixels(*COLORS)),
    "sharpness": lambda k: (k.RandomSharpness((0.8, 0.8)), pixels(*COLORS)),
    "saturation": lambda k: (
        k.RandomSaturation((0.6, 0.6), value_range=(0, 1)), pixels(*COLORS) / 255
    ),
    "hue half turn": lambda k: (
        k.RandomHue((1.0, 1.0), value_range=(0, 1)), pixels(*COLORS) / 255
    ),
    "posterization": lambda k: (k.RandomPosterization((3, 3)), pixels(*COLORS)),
    "grayscale": lambda k: (k.RandomGrayscale(1.0), pixels(*COLORS)),
    "grayscale never": lambda k: (k.RandomGrayscale(0.0), pixels(*COLORS)),
    "invert": lambda k: (k.RandomInvert((1.0, 1.0)), pixels(*COLORS)),
    "erasing everything": lambda k: (
        k.RandomErasing((1.0, 1.0), scale=(1.0, 1.0), fill_value=7.0), pixels(*COLORS)
    ),
    "solarization": lambda k: (k.Solarization(), pixels(*COLORS)),
    "auto contrast": lambda k: (k.AutoContrast(), pixels(*COLORS) * 0.5 + 20),
    "equalization": lambda k: (k.Equalization(), pixels(*COLORS) * 0.3 + 50),
    "equalization of few": lambda k: (
        k.Equalization((-1, 1), bins=8, data_format="channels_first"), wave(2, 3, 4, 5)
    ),
    "equalization of one value": lambda k: (k.Equalization(), np.full((1, 3, 4, 2), 9.0, "f")),
    "blur": lambda k: (
        k.RandomGaussianBlur((1.0, 1.0), kernel_size=(3, 5), sigma=(0.6, 0.6)), pixels(*COLORS)
    ),
    "color jitter": lambda k: (
        k.RandomColorJitter(
            (0, 1), brightness_factor=(0.1, 0.1), saturation_factor=(0.6, 0.6),
            hue_factor=(1.0, 1.0),
        ),
        pixels(*COLORS) / 255,
    ),
    "perspective none": lambda k: (k.RandomPerspective((1.0, 1.0), scale=0.0), pixels(*IMAGES)),
    "mix up of one": lambda k: (k.MixUp(), pixels(1, 4, 5, 3)),
    "cut mix of one": lambda k: (k.CutMix(), pixels(1, 4, 5, 3)),
    "elastic never": lambda k: (k.RandomElasticTransform(0.0, 0.3), pixels(*IMAGES)),
    "elastic by nothing": lambda k: (k.RandomElasticTransform(1.0, 0.0), pixels(*IMAGES)),
    "local equalization": lambda k: (
        k.ContrastLimitedAdaptiveHistogramEqualization(tile_grid_size=(2, 3)),
        pixels(*COLORS) * 0.5 + 20,
    ),
    "local equalization first": lambda k: (
        k.ContrastLimitedAdaptiveHistogramEqualization(
            (-1, 1), clip_limit=0, tile_grid_size=[2, 2], data_format="channels_first"
        ),
        wave(2, 3, 6, 8),
    ),
    "augment by nothing": lambda k: (k.RandAugment(num_ops=0), pixels(*COLORS)),
    "mix of nothing": lambda k: (k.AugMix(num_chains=1, chain_depth=0), pixels(*COLORS)),
    "height": lambda k: (k.RandomHeight((0.5, 0.5)), wave(2, 4, 6, 3)),
    "width": lambda k: (k.RandomWidth((-0.5, -0.5), "nearest"), wave(2, 4, 6, 3)),
    "crossing": lambda k: (k.HashedCrossing(1000), [NAMES, np.arange(5) - 2]),
    "crossing of three": lambda k: (
        k.HashedCrossing(7, "one_hot"),
        [x[:, None] for x in (np.arange(5) ** 9, np.arange(5), np.arange(5) % 2)],
    ),
    "mel spectrogram": lambda k: (
        k.MelSpectrogram(64, 32, num_mel_bins=9, sampling_rate=8000, min_freq=100.0),
        wave(2, 400) + 30 * np.sin(np.arange(400.0) ** 2).astype("f"),
    ),
    "mel powers": lambda k: (
        k.MelSpectrogram(
            64, 20, sequence_length=48, num_mel_bins=9, sampling_rate=8000, power_to_db=False,
            mag_exp=1.0, max_freq=3000.0,
        ),
        wave(300),
    ),
    "shear none": lambda k: (k.RandomShear((0.0, 0.0), (0.0, 0.0)), wave(*IMAGES)),
    "pipeline": lambda k: (k.Pipeline([k.Rescaling(0.5), k.CenterCrop(3, 4)]), wave(*IMAGES)),
    "adaptive average 1d": lambda k: (k.AdaptiveAveragePooling1D(3), wave(2, 8, 3)),
    "adaptive max 2d": lambda k: (k.AdaptiveMaxPooling2D((2, 3)), wave(*IMAGES)),
    "adaptive average 3d": lambda k: (k.AdaptiveAveragePooling3D(2), wave(1, 3, 4, 5, 2)),
    "adaptive max first": lambda k: (
        k.AdaptiveMaxPooling2D(2, data_format="channels_first"), wave(2, 3, 5, 4)
    ),
    **{
        f"stft {mode}": lambda k, mode=mode: (
            k.STFTSpectrogram(mode, frame_length=16, frame_step=6, padding="same"), wave(2, 40, 2)
        )
        for mode in ("log", "magnitude", "psd", "real", "imag", "stft")
    },
    "stft expanded": lambda k: (
        k.STFTSpectrogram("magnitude", 12, fft_length=32, scaling="spectrum", expand_dims=True),
        wave(2, 40, 2),
    ),
}  # fmt: skip


def plain(value: Any) -> Any:
    """A result as lists of numbers or texts."""
    found = np.asarray(value)
    if found.dtype == object or found.dtype.kind == "S":
        return [x.decode() if isinstance(x, bytes) else str(x) for x in found.reshape(-1).tolist()]
    return found.reshape(-1).tolist()


def described(layer: Any, result: Any) -> dict[str, Any]:
    """What is recorded of a case."""
    vocabulary = layer.get_vocabulary() if hasattr(layer, "get_vocabulary") else None
    return {
        "shape": [int(d) for d in result.shape],
        "dtype": "string" if np.asarray(result).dtype == object else str(np.asarray(result).dtype),
        "result": plain(result),
        "vocabulary": None if vocabulary is None else [
            int(v) if isinstance(v, np.integer) else v for v in vocabulary
        ],
        "config": sorted(layer.get_config()),
    }  # fmt: skip
