"""Augmentation as programs for TensorFlow write it: eager, in functions, and in Dataset.map."""

import sys

import numpy as np
import pytest

import treadle as td

RNG = np.random.default_rng(0)
PHOTOS = RNG.integers(0, 256, (6, 24, 32, 3)).astype(np.uint8)
SIZE = 16


@pytest.fixture(autouse=True)
def no_interpreter(monkeypatch):
    monkeypatch.setenv("TREADLE_STRICT", "1")


def resized_and_rescaled(image, label):
    image = td.cast(image, td.float32)
    return td.image.resize(image, [SIZE, SIZE]) / 255.0, label


def augmented(image_and_label, seed):
    """Stateless, as in TensorFlow's tutorial of data augmentation."""
    image, label = resized_and_rescaled(*image_and_label)
    image = td.image.resize_with_crop_or_pad(image, SIZE + 6, SIZE + 6)
    new_seed = td.random.split(seed, num=1)[0, :]
    image = td.image.stateless_random_crop(image, size=[SIZE, SIZE, 3], seed=seed)
    image = td.image.stateless_random_brightness(image, max_delta=0.5, seed=new_seed)
    return td.clip_by_value(image, 0, 1), label


def test_stateless_augmentation_is_the_same_everywhere():
    labels = np.arange(6)
    seeds = np.stack([labels, labels], 1)
    eager = [augmented((td.constant(p), n), s)[0] for p, n, s in zip(PHOTOS, labels, seeds)]
    compiled = td.function(augmented)
    for photo, label, seed, expected in zip(PHOTOS, labels, seeds, eager):
        found, same = compiled((photo, label), td.constant(seed))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert same == label
    photos = td.data.Dataset.from_tensor_slices((PHOTOS, labels))
    both = td.data.Dataset.zip((photos, td.data.Dataset.from_tensor_slices(seeds)))
    [(images, found_labels)] = both.map(augmented, num_parallel_calls=2).batch(6)
    np.testing.assert_allclose(images, np.stack(eager), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found_labels, labels)


def random_crop_of(image, seed):
    """A part of random size and shape, as networks for ImageNet are trained with."""
    whole = td.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])
    begin, size, _ = td.image.stateless_sample_distorted_bounding_box(
        td.shape(image), whole, seed, min_object_covered=0.1, area_range=(0.1, 1.0)
    )
    top, left, _ = td.unstack(begin)
    height, width, _ = td.unstack(size)
    part = td.image.crop_to_bounding_box(image, top, left, height, width)
    return td.image.resize([part], [SIZE, SIZE], td.image.ResizeMethod.BICUBIC)[0]


def jittered(image, seed):
    """Four changes of colour in random order."""
    order = td.argsort(td.random.stateless_uniform([4], seed))

    def change(number, x):
        return td.switch_case(
            number,
            [
                lambda: td.image.stateless_random_brightness(x, 0.4, seed),
                lambda: td.image.stateless_random_contrast(x, 0.6, 1.4, seed),
                lambda: td.image.stateless_random_saturation(x, 0.6, 1.4, seed),
                lambda: td.image.stateless_random_hue(x, 0.1, seed),
            ],
        )

    for place in range(4):
        image = td.clip_by_value(change(order[place], image), 0.0, 1.0)
    return image


def trained_on(image, seed):
    image = td.image.convert_image_dtype(image, td.float32)
    image = td.image.stateless_random_flip_left_right(random_crop_of(image, seed), seed)
    if td.random.stateless_uniform([], seed + 1) < 0.8:
        image = jittered(image, seed)
    if td.random.stateless_uniform([], seed + 2) < 0.3:
        image = td.image.grayscale_to_rgb(td.image.rgb_to_grayscale(image))
    return td.image.per_image_standardization(image)


def test_crops_of_random_sizes_and_colours_in_random_order():
    signature = [td.TensorSpec([None, None, 3], td.uint8), td.TensorSpec([2], td.int32)]
    compiled = td.function(trained_on, input_signature=signature)
    seeds = np.stack([np.arange(6), np.arange(6) + 7], 1).astype(np.int32)
    eager = [trained_on(td.constant(p), td.constant(s)) for p, s in zip(PHOTOS, seeds)]
    for photo, seed, expected in zip(PHOTOS, seeds, eager):
        np.testing.assert_allclose(compiled(photo, seed), expected, rtol=1e-3, atol=1e-4)
    dataset = td.data.Dataset.from_tensor_slices((PHOTOS, seeds)).map(trained_on).batch(3)
    found = np.concatenate(list(dataset))
    np.testing.assert_allclose(found, np.stack(eager), rtol=1e-3, atol=1e-4)


def test_files_of_images(tmp_path):
    """Photos of different sizes and kinds, read while a model would be trained."""
    for number, photo in enumerate(PHOTOS):
        part = photo[: 12 + 2 * number]
        kind = td.io.encode_png if number % 2 else td.io.encode_jpeg
        td.io.write_file(str(tmp_path / f"{number}.img"), kind(part))

    def loaded(path):
        image = td.io.decode_image(td.io.read_file(path), 3, td.float32, expand_animations=False)
        return td.image.resize_with_pad(image, SIZE, SIZE), td.shape(image)[0]

    paths = td.io.matching_files(str(tmp_path / "*.img"))
    dataset = td.data.Dataset.from_tensor_slices(paths).map(loaded).batch(6)
    [(images, heights)] = dataset
    np.testing.assert_array_equal(heights, [12, 14, 16, 18, 20, 22])
    assert images.shape == (6, SIZE, SIZE, 3)
    exact = td.image.resize_with_pad(PHOTOS[1, :14] / np.float32(255), SIZE, SIZE)
    np.testing.assert_allclose(images[1], exact, rtol=1e-4, atol=1e-5)


def test_a_dtype_of_no_numbers_is_refused_before_the_file_is_read():
    """Eagerly as in functions, where the file is not there yet."""
    for call in (td.io.decode_image, td.function(td.io.decode_image)):
        with pytest.raises(TypeError, match="dtype must be either floating point or integer"):
            call("no image", dtype=td.bool)


def test_pillow_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    for call in (
        lambda: td.io.encode_png(PHOTOS[0]), lambda: td.io.decode_jpeg(b""),
        lambda: td.image.adjust_jpeg_quality(PHOTOS[0], 50), lambda: td.io.decode_image(b""),
        td.function(lambda: td.io.decode_png(b"")),
    ):  # fmt: skip
        with pytest.raises(ImportError, match=r"pip install 'treadle\[image\]'"):
            call()
