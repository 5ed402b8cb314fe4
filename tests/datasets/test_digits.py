import numpy as np

from treadle.datasets import digits


def test_shapes_and_ranges():
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    assert x_train.shape == (1437, 8, 8) and x_test.shape == (360, 8, 8)
    assert y_train.shape == (1437,) and y_test.shape == (360,)
    assert x_train.dtype == y_train.dtype == np.uint8
    assert x_train.max() == 16 and set(y_test) == set(range(10))


def test_same_images_as_scikit_learn():
    from sklearn.datasets import load_digits  # here: every worker would import it, for a second

    (x_train, y_train), (x_test, y_test) = digits.load_data()
    images, labels = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])
    original = load_digits()
    order = np.random.default_rng(0).permutation(1797)
    np.testing.assert_array_equal(images, original.images[order])
    np.testing.assert_array_equal(labels, original.target[order])


def test_no_image_is_in_both_parts():
    (x_train, _), (x_test, _) = digits.load_data()
    train = {image.tobytes() for image in x_train}
    assert not any(image.tobytes() in train for image in x_test)
