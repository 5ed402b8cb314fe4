"""What all applications share: their arguments, the image's shape, what follows the features, and
the files of weights."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.keras import activations, layers
from treadle.keras.config import image_data_format
from treadle.keras.datasets.files import found
from treadle.keras.layers.symbolic import KerasTensor, get_source_inputs
from treadle.keras.models import Model

_STORE = "https://storage.googleapis.com/tensorflow/keras-applications/"

# The arguments of most applications, with their defaults, in order.
COMMON: Mapping[str, Any] = {
    "include_top": True, "weights": "imagenet", "input_tensor": None, "input_shape": None,
    "pooling": None, "classes": 1000, "classifier_activation": "softmax",
}  # fmt: skip


class Wanted(NamedTuple):
    """What a program asks of an application.

    Args:
        include_top: the classifier, too.
        weights: None, ``"imagenet"`` or the path of a file.
        input_tensor: what ``keras.Input`` or calls of layers on it gave, instead of a new input.
        input_shape: of one image.
        pooling: without classifier: ``"avg"`` or ``"max"`` over the positions, None for features.
        classes: that the classifier tells apart.
        classifier_activation: of the classifier; None for logits.
        name: of the model.
    """

    include_top: bool
    weights: Any
    input_tensor: Any
    input_shape: Any
    pooling: str | None
    classes: int
    classifier_activation: Any
    name: str | None

    @property
    def trained(self) -> bool:
        """Whether the weights are those of ImageNet."""
        return isinstance(self.weights, str) and self.weights == "imagenet"

    def check(self) -> None:
        """Raises:
        ValueError: an argument is none of the possible ones, or they contradict one another.
        """
        if not (self.weights is None or self.trained or os.path.exists(self.weights)):
            raise ValueError(
                "The `weights` argument should be either `None` (random initialization), "
                "'imagenet' (pre-training on ImageNet), or the path to the weights file to be "
                f"loaded. Received: weights={self.weights}"
            )
        if self.trained and self.include_top and self.classes != 1000:
            raise ValueError(
                "If using `weights='imagenet'` with `include_top=True`, `classes` should be 1000. "
                f"Received classes={self.classes}"
            )
        if self.pooling not in (None, "avg", "max"):
            raise ValueError(f"`pooling` is None, 'avg' or 'max', got {self.pooling!r}")
        if self.include_top and self.weights is not None:
            given = activations.get(self.classifier_activation)
            if given not in (activations.get("softmax"), activations.get(None)):
                raise ValueError(
                    "Only `None` and `softmax` activations are allowed for the "
                    "`classifier_activation` argument when using pretrained weights, with "
                    "`include_top=True`; Received: "
                    f"classifier_activation={self.classifier_activation}"
                )


def application(
    title: str, name: str | None, build: Callable[..., Model], text: str,
    parameters: Mapping[str, Any] = COMMON,
) -> Callable[..., Model]:  # fmt: skip
    """The public function of a model.

    Args:
        title, name: of the function, and of its models by default.
        build: makes a model of what is `Wanted` and the arguments of this kind of model.
        text: what the function gives, for its docstring.
        parameters: names and defaults of the arguments, in order; ``name`` is the last.
    """
    defaults = {**parameters, "name": name}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(key, kind, default=default) for key, default in defaults.items()]
    )

    def make(*args: Any, **kwargs: Any) -> Model:
        try:
            given = {**defaults, **signature.bind(*args, **kwargs).arguments}
        except TypeError as error:
            raise TypeError(f"{title}() {error}") from None
        wanted = Wanted(**{key: given.pop(key) for key in Wanted._fields})
        wanted.check()
        return build(wanted, **given)

    make.__name__ = make.__qualname__ = title
    make.__doc__ = _DOCUMENT.format(text=text, names=", ".join(defaults))
    make.__signature__ = signature  # type: ignore[attr-defined]
    return make


_DOCUMENT = """{text}

    Args:
        {names}: see `treadle.keras.applications`.

    Raises:
        ValueError: an argument is none of the possible ones, or they contradict one another.
        FileNotFoundError: ``weights="imagenet"``, and the file is not there.
    """


def channel_axis(last: int = -1) -> int:
    """The axis of channels of a batch: `last`, or 1 where they come first."""
    return 1 if image_data_format() == "channels_first" else last


def image_shape(wanted: Wanted, size: int, smallest: int = 32) -> tuple[Any, ...]:
    """The shape of one image.

    Args:
        size: of the images that the model was made for.
        smallest: that can be given.

    Raises:
        ValueError: the shape that is wanted cannot be.
    """
    shape = tuple(wanted.input_shape or ())
    first = image_data_format() == "channels_first"
    at = 0 if first else -1
    channels = 3
    if not wanted.trained and len(shape) == 3:
        channels = shape[at]
        if channels not in (1, 3):
            warnings.warn(
                "This model usually expects 1 or 3 input channels. However, it was passed an "
                f"input_shape with {channels} input channels.", stacklevel=4,
            )  # fmt: skip
    usual = _shape(size, size, channels)
    if wanted.trained and wanted.include_top:
        if shape and shape != usual:
            raise ValueError(
                "When setting `include_top=True` and loading `imagenet` weights, `input_shape` "
                f"should be {usual}. Received: input_shape={shape}"
            )
        return usual
    if not shape:
        return usual if wanted.include_top else _shape(None, None, 3)
    if len(shape) != 3:
        raise ValueError(f"`input_shape` must be a tuple of three integers, got {shape}")
    if wanted.trained and shape[at] != 3:
        raise ValueError(f"The input must have 3 channels; Received `input_shape={shape}`")
    _check_size(shape, smallest)
    if wanted.include_top and None in shape:
        raise ValueError(
            "If `include_top` is True, you should specify a static `input_shape`. Received: "
            f"input_shape={shape}"
        )
    return shape


def _shape(rows: Any, columns: Any, channels: Any) -> tuple[Any, ...]:
    first = image_data_format() == "channels_first"
    return (channels, rows, columns) if first else (rows, columns, channels)


def _check_size(shape: tuple[Any, ...], smallest: int) -> None:
    if any(extent is not None and extent < smallest for extent in extents(shape)):
        raise ValueError(
            f"Input size must be at least {smallest}x{smallest}; Received: input_shape={shape}"
        )


def extents(shape: Sequence[Any]) -> tuple[Any, Any]:
    """Rows and columns of the shape of an image, or of a batch of them."""
    if image_data_format() == "channels_first":
        return shape[-2], shape[-1]
    return shape[-3], shape[-2]


def correct_pad(x: KerasTensor, kernel_size: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Zeros around images, so that a convolution without padding takes every other position as it
    did where these weights were trained."""
    half = kernel_size // 2
    rows, columns = extents(x.shape.as_list())
    if rows is None:
        return (half - 1, half), (half - 1, half)
    return (half - 1 + rows % 2, half), (half - 1 + columns % 2, half)


def normalized(x: Any, name: str | None, last: int = -1, **settings: Any) -> Any:
    """Batch normalization over the channels."""
    return layers.BatchNormalization(axis=channel_axis(last), name=name, **settings)(x)


def classifier(x: Any, wanted: Wanted, pool: str | None = "avg_pool", **settings: Any) -> Any:
    """The mean over the positions, and a dense layer called predictions."""
    return prediction(layers.GlobalAveragePooling2D(name=pool)(x), wanted, **settings)


def prediction(x: Any, wanted: Wanted, **settings: Any) -> Any:
    """A dense layer called predictions."""
    kind = wanted.classifier_activation
    return layers.Dense(wanted.classes, activation=kind, name="predictions", **settings)(x)


def pooled(x: Any, wanted: Wanted, named: bool = False) -> Any:
    """The mean or the largest over the positions, or the features as they are."""
    if wanted.pooling == "avg":
        return layers.GlobalAveragePooling2D(name="avg_pool" if named else None)(x)
    if wanted.pooling == "max":
        return layers.GlobalMaxPooling2D(name="max_pool" if named else None)(x)
    return x


def image_input(wanted: Wanted, shape: tuple[Any, ...]) -> Any:
    """The images: a new input, or what the program gives.

    Raises:
        ValueError: it gives something else than what ``keras.Input`` and layers give.
    """
    if wanted.input_tensor is None:
        return layers.Input(shape)
    if not isinstance(wanted.input_tensor, KerasTensor):
        raise ValueError(
            "`input_tensor` is what keras.Input(...) and calls of layers on it give, got "
            f"{wanted.input_tensor!r}"
        )
    return wanted.input_tensor


class File(NamedTuple):
    """A file of weights of ImageNet.

    Args:
        name: among Keras's models.
        place: of its folder in the store of Keras.
        origin: its name there, where that is another one.
    """

    name: str
    place: str
    origin: str = ""

    def path(self) -> str:
        """Where it is.

        Raises:
            FileNotFoundError: it is not there.
        """
        place = self.place if self.place.startswith("http") else _STORE + self.place
        return str(found(self.name, f"{place}/{self.origin or self.name}", cache="models"))


def usual_file(stem: str, place: str, top: bool) -> File:
    """The file of weights of most models."""
    end = "" if top else "_notop"
    return File(f"{stem}_weights_tf_dim_ordering_tf_kernels{end}.h5", place)


def finished(image: Any, outputs: Any, wanted: Wanted, file: Callable[[], File]) -> Model:
    """The model from the images to the outputs, with the weights that are wanted."""
    inputs: Any = image
    if wanted.input_tensor is not None:
        sources = get_source_inputs(image)
        inputs = sources[0] if len(sources) == 1 else sources
    model = Model(inputs, outputs, name=wanted.name)
    if wanted.trained:
        model.load_weights(file().path())
    elif wanted.weights is not None:
        model.load_weights(wanted.weights)
    return model
