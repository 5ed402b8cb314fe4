"""Resizing and cropping of images, and what layers of images share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import treadle as td
from treadle.keras.layers.base import Layer
from treadle.keras.layers.preprocessing.draws import Draws
from treadle.keras.layers.spatial import format_name, size_of
from treadle.keras.utils.bounding_boxes import clip_to_image_size, convert_format


class Size(NamedTuple):
    """The sizes of a batch of images: ints, and scalars where only the run knows them.

    Attributes:
        shape: those of what the layer was given, in its order of axes.
    """

    shape: tuple[Any, ...]
    batch: Any
    height: Any
    width: Any
    channels: Any


class OfImages(Layer):
    """A layer of images [batch, height, width, channels], of one image, or with the channels first.

    A dict is given back with its "images" changed, and what belongs to them as much: "labels",
    "segmentation_masks", which are images, too, and "bounding_boxes", a dict of "boxes"
    [batch, N, 4] and their "labels" [batch, N]. `get_random_transformation` gives what is drawn for
    a call; the methods that begin with ``transform_`` change each of these parts by it.

    Args:
        data_format: "channels_last" or "channels_first".
        bounding_box_format: that of boxes, see `keras.utils.bounding_boxes.convert_format`.
    """

    has_shape_rule: ClassVar[bool] = False
    _config_names: ClassVar[tuple[str, ...]] = ("data_format",)
    # Whether the layer does something while training only.
    _while_training: ClassVar[bool] = False

    def __init__(
        self, data_format: str | None = None, bounding_box_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = format_name(data_format)
        self.bounding_box_format = bounding_box_format
        self._build_at_init()

    def _setting_names(self) -> list[str]:
        own = [] if self.bounding_box_format is None else ["bounding_box_format"]
        return super()._setting_names() + own

    def call(self, inputs: Any, training: Any = True) -> Any:
        if isinstance(training, td.Tensor):
            raise TypeError(
                f'Layer "{self.name}" ({type(self).__name__}): training must be a Python bool'
            )
        given = inputs if isinstance(inputs, Mapping) else {"images": inputs}
        if "images" not in given:
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) takes a dict with images, got '
                f"{sorted(given)}"
            )
        drawn = self.get_random_transformation(given, training)
        found = dict(given)
        found["images"] = self.transform_images(given["images"], drawn, training)
        if not isinstance(inputs, Mapping):
            return found["images"]
        single = len(given["images"].shape) == 3
        if "bounding_boxes" in given:
            boxes = self._dense(given["bounding_boxes"])
            change = self.transform_single_bounding_box if single else self.transform_bounding_boxes
            found["bounding_boxes"] = change(boxes, drawn, training)
        if "labels" in given:
            of_labels = self.transform_single_label if single else self.transform_labels
            found["labels"] = of_labels(given["labels"], drawn, training)
        if "segmentation_masks" in given:
            masks = given["segmentation_masks"]
            found["segmentation_masks"] = self.transform_segmentation_masks(masks, drawn, training)
        return found

    # -- what subclasses do: images have the channels last here -----------------------------------

    def _drawn(self, size: Size, draws: Draws) -> Any:
        """What is drawn for a batch of images of a size; None where nothing is."""
        return None

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        """Images, changed by what was drawn."""
        raise NotImplementedError

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        """Masks, changed by what was drawn for their images."""
        return masks

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        """Boxes, changed by what was drawn for their images: a dict of "boxes" [batch, N, 4] and
        "labels" [batch, N]."""
        return boxes

    # -- what programs may call ------------------------------------------------------------------

    def get_random_transformation(self, data: Any, training: bool = True, seed: Any = None) -> Any:
        """What is drawn for a call.

        Args:
            data: an image, a batch of them, or a dict with such "images".
            training: False: None, where the layer does something while training only.
            seed: instead of that of the layer: an int, a `keras.random.SeedGenerator`, or two ints
                as a tensor, from which the same comes each time.
        """
        if self._while_training and not training:
            return None
        seed = getattr(self, "seed", None) if seed is None else seed
        return self._drawn(self._size(data), Draws(seed))

    def transform_images(
        self, images: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """Images, changed by what `get_random_transformation` gave.

        Args:
            images: an image or a batch of them.
            transformation: what was drawn.
            training: False: they stay, where the layer does something while training only.
        """
        images = td.convert_to_tensor(images)
        if not self._while_training:
            return self._of(images, lambda x: self._changed(x, transformation))
        images = td.cast(images, self.compute_dtype)
        if not training:
            return self._of(images, lambda x: x)
        return self._of(images, lambda x: self._changed(x, transformation))

    def transform_segmentation_masks(
        self, segmentation_masks: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """Masks, changed as their images are, without numbers between those of two classes.

        Args:
            segmentation_masks: [batch, height, width, channels], or those of one image.
            transformation, training: as for `transform_images`.
        """
        masks = td.convert_to_tensor(segmentation_masks)
        if self._while_training and not training:
            return masks
        return self._of(masks, lambda x: self._changed_masks(x, transformation))

    def transform_labels(
        self, labels: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """Labels of images, changed as these are.

        Args:
            labels: [batch, ...].
            transformation, training: as for `transform_images`.
        """
        return labels

    def transform_bounding_boxes(
        self, bounding_boxes: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """Boxes, changed as their images are.

        Args:
            bounding_boxes: a dict of "boxes" [batch, N, 4] and "labels" [batch, N].
            transformation, training: as for `transform_images`.
        """
        if self._while_training and not training:
            return bounding_boxes
        return self._changed_boxes(bounding_boxes, transformation)

    def transform_single_image(
        self, image: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """`transform_images` of one image."""
        return self.transform_images(td.convert_to_tensor(image)[None], transformation, training)[0]

    def transform_single_label(
        self, label: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """`transform_labels` of the label of one image."""
        labels = td.convert_to_tensor(label)[None]
        return self.transform_labels(labels, transformation, training)[0]

    def transform_single_bounding_box(
        self, bounding_box: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """`transform_bounding_boxes` of the boxes [N, 4] of one image."""
        parts = ("boxes", "labels")
        given = {name: td.convert_to_tensor(bounding_box[name])[None] for name in parts}
        found = self.transform_bounding_boxes(
            {**bounding_box, **given}, transformation, training
        )
        return {**found, **{name: found[name][0] for name in parts}}

    def transform_single_segmentation_mask(
        self, segmentation_mask: Any, transformation: Any = None, training: bool = True
    ) -> Any:
        """`transform_segmentation_masks` of the mask of one image."""
        masks = td.convert_to_tensor(segmentation_mask)[None]
        return self.transform_segmentation_masks(masks, transformation, training)[0]

    # -- shapes and formats ----------------------------------------------------------------------

    @property
    def _last(self) -> bool:
        return self.data_format == "channels_last"

    def _of(self, images: td.Tensor, change: Callable[[td.Tensor], td.Tensor]) -> td.Tensor:
        """What `change` makes of batches of images with the channels last."""
        rank = self._rank(images)
        batch = images if rank == 4 else images[None]
        changed = self._own_format(change(self._channels_last(batch)))
        return changed if rank == 4 else changed[0]

    def _channels_last(self, images: td.Tensor) -> td.Tensor:
        """A batch in the layer's format with the channels last."""
        return images if self._last else td.transpose(images, [0, 2, 3, 1])

    def _own_format(self, images: td.Tensor) -> td.Tensor:
        """A batch with the channels last in the layer's format."""
        return images if self._last else td.transpose(images, [0, 3, 1, 2])

    def _rank(self, images: Any) -> int:
        rank = len(images.shape)
        if rank not in (3, 4):
            raise ValueError(
                f'Layer "{self.name}" ({type(self).__name__}) takes an image or a batch of them, '
                f"got inputs of shape {images.shape}"
            )
        return rank

    def _size(self, data: Any) -> Size:
        images = td.convert_to_tensor(data["images"] if isinstance(data, Mapping) else data)
        rank = self._rank(images)
        return self._size_of_shape(tuple(size_of(images, axis) for axis in range(rank)))

    def _size_of_shape(self, shape: Any) -> Size:
        """The sizes of images of a shape, whose sizes may be scalars."""
        sizes = tuple(shape)
        batch, *own = sizes if len(sizes) == 4 else (1, *sizes)
        height, width, channels = own if self._last else (*own[1:], own[0])
        return Size(sizes, batch, height, width, channels)

    def _height_and_width(self, shape: Any) -> tuple[Any, Any]:
        """Those of images of a shape."""
        size = self._size_of_shape(shape)
        return size.height, size.width

    def _dense(self, given: Any) -> dict[str, Any]:
        """Boxes and their labels as tensors: ragged ones get boxes of zeros with the label -1."""
        if self.bounding_box_format is None:
            name = type(self).__name__
            raise ValueError(
                "You passed an input with a 'bounding_boxes' key, but you didn't specify a "
                f"bounding box format. Pass a `bounding_box_format` argument to your {name} layer, "
                "e.g. `bounding_box_format='xyxy'`."
            )
        if not isinstance(given, Mapping) or not {"boxes", "labels"} <= set(given):
            raise ValueError(
                "Expected `bounding_boxes` argument to be a dict with keys 'boxes' and 'labels'. "
                f"Received: bounding_boxes={given}"
            )
        boxes, labels = given["boxes"], given["labels"]
        ragged = [isinstance(part, td.RaggedTensor) for part in (boxes, labels)]
        if any(ragged):
            if not all(ragged):
                raise ValueError(
                    "If `bounding_boxes['boxes']` is a Ragged tensor, `bounding_boxes['labels']` "
                    f"must also be a Ragged tensor. Received: boxes={boxes}, labels={labels}"
                )
            boxes = boxes.to_tensor(0, shape=[None] * (len(boxes.shape) - 1) + [4])
            labels = labels.to_tensor(-1)
        boxes, labels = td.cast(boxes, td.float32), td.convert_to_tensor(labels)
        rank = len(boxes.shape)
        if rank not in (2, 3) or len(labels.shape) not in (rank - 1, rank):
            raise ValueError(
                "Expected `bounding_boxes['boxes']` to have the shape (num_boxes, 4) or "
                "(batch_size, num_boxes, 4) and the labels one axis less, or one for the classes. "
                f"Received: boxes.shape={boxes.shape} and labels.shape={labels.shape}"
            )
        return {**given, "boxes": boxes, "labels": labels}

    def _moved(
        self, given: Mapping[str, Any], size: tuple[Any, Any],
        move: Callable[[list[td.Tensor]], list[Any]], form: str = "xyxy",
        new_size: tuple[Any, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Boxes that are moved and lose what lies outside of the image.

        Args:
            size: the height and width of the images.
            move: makes new numbers of the four, each [..., 1].
            form: the format of the numbers, "xyxy" or "rel_xyxy".
            new_size: the height and width of the changed images, where these differ.
        """
        after = size if new_size is None else new_size
        near = convert_format(given, self.bounding_box_format or "xyxy", form, *size)
        near["boxes"] = td.concat(move(list(td.split(near["boxes"], 4, axis=-1))), -1)
        found: Any = clip_to_image_size(near, *after, bounding_box_format=form)
        found = convert_format(found, form, self.bounding_box_format or "xyxy", *after)
        assert isinstance(found, dict)
        return found


class _ToSize(OfImages):
    """A layer that gives images of one size."""

    _config_names: ClassVar[tuple[str, ...]] = ("height", "width")

    def __init__(self, height: int, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.height, self.width = height, width

    def compute_output_shape(self, input_shape: Any) -> Any:
        shape = list(input_shape)
        first = -3 if self.data_format == "channels_last" else -2
        shape[first : first + 2 or None] = [self.height, self.width]
        return tuple(shape)


def _share(size: Any, times: int, parts: int) -> Any:
    """``size * times / parts`` without its fraction, of an int or a tensor."""
    if isinstance(size, int):
        return int(float(size * times) / parts)
    return td.cast(td.cast(size * times, td.float32) / parts, td.int32)


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else td.minimum(a, b)


def _most(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else td.maximum(a, b)


def middle(rows: Any, columns: Any, height: int, width: int) -> tuple[Any, Any, Any, Any]:
    """The largest part in the middle of images that has the aspect ratio of height and width: where
    its rows begin, where its columns begin, and its size.

    Args:
        rows, columns: how many the images have.
    """
    tall = _most(_least(rows, _share(columns, height, width)), 1)
    wide = _most(_least(columns, _share(rows, width, height)), 1)
    return (rows - tall) // 2, (columns - wide) // 2, tall, wide


def cropped_to_aspect(images: td.Tensor, height: int, width: int) -> td.Tensor:
    """The part that `middle` describes."""
    top, left, tall, wide = middle(size_of(images, 1), size_of(images, 2), height, width)
    return images[:, top : top + tall, left : left + wide]


def padded_to_aspect(images: td.Tensor, height: int, width: int, value: float) -> td.Tensor:
    """Images with margins of `value`, so that they have the aspect ratio of height and width."""
    rows, columns = size_of(images, 1), size_of(images, 2)
    top = (_most(rows, _share(columns, height, width)) - rows) // 2
    left = (_most(columns, _share(rows, width, height)) - columns) // 2
    return td.pad(images, [[0, 0], [top, top], [left, left], [0, 0]], constant_values=value)


def resized(
    images: td.Tensor, height: int, width: int, interpolation: str = "bilinear",
    antialias: bool = False,
) -> td.Tensor:  # fmt: skip
    """Images of another size and the same dtype; ints are rounded."""
    result = td.image.resize(images, [height, width], interpolation, antialias=antialias)
    if result.dtype == images.dtype:
        return result
    if images.dtype.is_integer:
        result = td.round(result)
    return td.saturate_cast(result, images.dtype)


def in_window(numbers: list[td.Tensor], window: Any, height: Any, width: Any) -> list[td.Tensor]:
    """Boxes as corners, in a part of the image that becomes an image of height and width.

    Args:
        numbers: the four of the boxes, each [..., 1].
        window: where the part begins, down and across, and its size.
    """
    top, left, tall, wide = (td.cast(part, numbers[0].dtype) for part in window)
    x1, y1, x2, y2 = numbers
    down, across = height / tall, width / wide
    return [(x1 - left) * across, (y1 - top) * down, (x2 - left) * across, (y2 - top) * down]


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")


class Resizing(_ToSize):
    """Images of another size.

    Args:
        height, width: the size.
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
        crop_to_aspect_ratio: cut margins off instead of distorting the images.
        pad_to_aspect_ratio: add margins of `fill_value` instead of distorting the images.
        fill_mode: "constant".
        antialias: average where images become smaller.
        data_format: "channels_last" or "channels_first".
    """

    _config_names: ClassVar[tuple[str, ...]] = (
        "interpolation", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "fill_mode", "fill_value",
        "antialias",
    )  # fmt: skip

    def __init__(
        self, height: int, width: int, interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant", fill_value: float = 0.0, antialias: bool = False,
        data_format: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(height, width, data_format=data_format, **kwargs)
        if interpolation not in _INTERPOLATIONS:
            raise ValueError(
                f"Resizing: interpolation is one of {_INTERPOLATIONS}, got {interpolation!r}"
            )
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError("Resizing: crop_to_aspect_ratio or pad_to_aspect_ratio, not both")
        if fill_mode != "constant":
            raise ValueError(f'Resizing: fill_mode is "constant", got {fill_mode!r}')
        self.interpolation = interpolation
        self.crop_to_aspect_ratio = crop_to_aspect_ratio
        self.pad_to_aspect_ratio = pad_to_aspect_ratio
        self.fill_mode, self.fill_value, self.antialias = fill_mode, fill_value, bool(antialias)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return size.height, size.width

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return self._resized(images, self.interpolation)

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._resized(masks, "nearest")

    def _resized(self, images: td.Tensor, interpolation: str) -> td.Tensor:
        size = self.height, self.width
        if self.crop_to_aspect_ratio:
            images = cropped_to_aspect(images, *size)
        elif self.pad_to_aspect_ratio:
            images = padded_to_aspect(images, *size, self.fill_value)
        return resized(images, *size, interpolation, self.antialias)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        given = td.cast(boxes["boxes"], td.float32)
        # Boxes that stand for none stay so: they are filled with zeros or with -1.
        none = td.reduce_all(given == -1, -1) | td.reduce_all(given == 0, -1)
        height, width = drawn
        rows, columns = (td.cast(size, td.float32) for size in (height, width))
        down, across = self.height / rows, self.width / columns
        above = beside = td.zeros([])
        if self.pad_to_aspect_ratio:
            down = across = td.minimum(down, across)
            above = td.maximum((self.height - rows * down) // 2, 0.0)
            beside = td.maximum((self.width - columns * across) // 2, 0.0)
        elif self.crop_to_aspect_ratio:
            down = across = td.maximum(down, across)
            above = -td.maximum((rows * down - self.height) // 2, 0.0)
            beside = -td.maximum((columns * across - self.width) // 2, 0.0)

        def scaled(parts: list[td.Tensor]) -> list[td.Tensor]:
            x1, y1, x2, y2 = parts
            return [x1 * across + beside, y1 * down + above,
                    x2 * across + beside, y2 * down + above]  # fmt: skip

        size = self.height, self.width
        found = self._moved(boxes, drawn, scaled, new_size=size)
        boxes = found["boxes"]
        return {**found, "boxes": td.where(none[..., None], td.zeros_like(boxes), boxes)}


class CenterCrop(_ToSize):
    """The middle of images; smaller ones are cut to the aspect ratio and resized.

    Args:
        height, width: the size.
        data_format: "channels_last" or "channels_first".
    """

    def __init__(
        self, height: int, width: int, data_format: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(height, width, data_format=data_format, **kwargs)

    def _drawn(self, size: Size, draws: Draws) -> Any:
        return {"input_shape": size.shape}

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        images = td.cast(images, self.compute_dtype)
        more = [size_of(images, 1) - self.height, size_of(images, 2) - self.width]
        shape = [images.shape[0], self.height, self.width, images.shape[3]]

        def cut_and_resized() -> td.Tensor:
            part = cropped_to_aspect(images, self.height, self.width)
            return td.ensure_shape(resized(part, self.height, self.width), shape)

        def middle_of() -> td.Tensor:
            top, left = (m // 2 for m in more)
            part = images[:, top : top + self.height, left : left + self.width]
            return td.ensure_shape(part, shape)

        if any(isinstance(m, int) and m < 0 for m in more):
            return cut_and_resized()
        unknown = [m for m in more if not isinstance(m, int)]
        if not unknown:
            return middle_of()
        small = td.reduce_any(td.stack(unknown) < 0)
        found: td.Tensor = td.cond(small, cut_and_resized, middle_of)
        return found

    def _changed_masks(self, masks: td.Tensor, drawn: Any) -> td.Tensor:
        return self._changed(masks, drawn)

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        size = self._height_and_width(drawn["input_shape"])
        target = self.height, self.width
        window = self._window(*size)
        return self._moved(
            boxes, size, lambda parts: in_window(parts, window, *target), new_size=target
        )

    def _window(self, rows: Any, columns: Any) -> tuple[Any, ...]:
        """The part of images that becomes the result: where it begins, and its size."""
        down, across = rows - self.height, columns - self.width
        whole = down // 2, across // 2, self.height, self.width
        cut = middle(rows, columns, self.height, self.width)
        if all(isinstance(more, int) for more in (down, across)):
            return cut if down < 0 or across < 0 else whole
        small = td.minimum(down, across) < 0
        return tuple(td.where(small, a, b) for a, b in zip(cut, whole, strict=True))


class MaxNumBoundingBoxes(OfImages):
    """As many boxes for each image: some are left out, or boxes of `fill_value` are added.

    Args:
        max_number: how many.
        fill_value: the numbers and the labels of those that are added.
    """

    _config_names: ClassVar[tuple[str, ...]] = ("max_number", "fill_value")

    def __init__(self, max_number: int, fill_value: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_number, self.fill_value = int(max_number), int(fill_value)

    def _changed(self, images: td.Tensor, drawn: Any) -> td.Tensor:
        return images

    def _changed_boxes(self, boxes: Any, drawn: Any) -> Any:
        parts = {name: td.convert_to_tensor(boxes[name]) for name in ("boxes", "labels")}
        return {**boxes, **{name: self._filled(part) for name, part in parts.items()}}

    def _filled(self, part: td.Tensor) -> td.Tensor:
        """The first numbers along the second axis, as many as there are to be."""
        kept = part[:, : self.max_number]
        missing = self.max_number - size_of(kept, 1)
        around = [[0, 0], [0, missing], *([0, 0] for _ in part.shape[2:])]
        fill = td.cast(self.fill_value, part.dtype)
        known = [part.shape[0], self.max_number, *part.shape[2:]]
        return td.ensure_shape(td.pad(kept, around, constant_values=fill), known)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if not isinstance(input_shape, Mapping) or "bounding_boxes" not in input_shape:
            return input_shape
        boxes = {
            name: (shape[0], self.max_number, *shape[2:])
            for name, shape in input_shape["bounding_boxes"].items()
        }
        return {**input_shape, "bounding_boxes": boxes}
