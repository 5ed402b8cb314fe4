"""Images are resized as TensorFlow 1 does (`resized.py` has what it gave)."""

import json

import numpy as np
import pytest

import treadle as td
import treadle.compat.v1 as tf
from tests.compat import resized


def test_resized_images():
    wanted = json.loads(resized.FILE.read_text())
    for case, found, right in zip(resized.CASES, resized.results(tf), wanted, strict=True):
        np.testing.assert_allclose(found, right, atol=2e-5, err_msg=str(case))


def test_sizes_that_a_run_tells():
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.placeholder(tf.float32, [None, None, None, 1])
        size = tf.placeholder(tf.int32, [2])
        small = tf.image.resize_bilinear(images, size)
        (slope,) = tf.gradients(tf.reduce_sum(small), [images])
        feed = {images: resized.IMAGE, size: [2, 3]}
        found, slopes = session.run([small, slope], feed)
    wanted = json.loads(resized.FILE.read_text())[0]
    np.testing.assert_allclose(found[0, :, :, 0], wanted, atol=2e-5)
    np.testing.assert_allclose(slopes.sum(), 6.0, 1e-6)


def test_images_without_a_batch_and_of_the_size_already():
    with tf.Graph().as_default(), tf.Session() as session:
        single = tf.image.resize_images(resized.IMAGE[0], [6, 8])
        same = tf.image.resize_images(resized.IMAGE, [3, 4])
        found, whole = session.run([single, same])
    np.testing.assert_allclose(found[:, :, 0], json.loads(resized.FILE.read_text())[2], atol=2e-5)
    np.testing.assert_array_equal(whole, resized.IMAGE)
    with pytest.raises(NotImplementedError, match="preserve_aspect_ratio"):
        tf.image.resize_images(resized.IMAGE, [2, 2], preserve_aspect_ratio=True)


def test_other_names_are_those_of_td_image():
    with tf.Graph().as_default(), tf.Session() as session:
        flipped = tf.image.flip_left_right(resized.IMAGE)
        cropped = tf.image.resize_image_with_crop_or_pad(resized.IMAGE, 2, 2)
        found = session.run([flipped, cropped])
    np.testing.assert_array_equal(found[0], td.image.flip_left_right(resized.IMAGE))
    assert found[1].shape == (1, 2, 2, 1)
