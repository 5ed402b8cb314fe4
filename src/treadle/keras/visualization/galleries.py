"""Images side by side, by matplotlib."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.keras.visualization.drawing import (
    as_array,
    channels_last,
    check_images,
    draw_bounding_boxes,
    draw_segmentation_masks,
)


def _matplotlib(function: str) -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError(
            f"{function} needs matplotlib: pip install 'treadle[plot]' brings it"
        ) from error
    return matplotlib


def plot_image_gallery(
    images: Any, y_true: Any = None, y_pred: Any = None,
    label_map: Mapping[int, str] | None = None, rows: int | None = None, cols: int | None = None,
    value_range: tuple[float, float] = (0, 255), scale: float = 2, path: Any = None,
    show: bool | None = None, transparent: bool = True, dpi: int = 60, legend_handles: Any = None,
    data_format: str | None = None,
) -> None:  # fmt: skip
    """Show images side by side, or write the picture of them to a file.

    Args:
        images: [batch, height, width, channels] (or channels first).
        y_true, y_pred: classes [batch], whose names are written above the images.
        label_map: the names of classes.
        rows, cols: how many there are; about as many of each when omitted.
        value_range: the smallest and the largest number of images.
        scale: the size of an image, in inches.
        path: the file to be written.
        show: whether to show the picture; when omitted, where there is no path.
        transparent, dpi: of the file.
        legend_handles: matplotlib's handles of a legend.
        data_format: "channels_last" or "channels_first"; that of `keras.config` when omitted.

    Raises:
        ValueError: both a path and `show`, classes without names, or images of other shapes.
        ImportError: matplotlib is missing.
    """
    pyplot = _matplotlib("plot_image_gallery").pyplot
    if path is not None and show:
        raise ValueError(
            "plot_gallery() expects either `path` to be set, or `show` to be true."
        )
    if (y_true is not None or y_pred is not None) and label_map is None:
        raise ValueError(
            "If `y_true` or `y_pred` are provided, a `label_map` must also be provided."
        )
    array = channels_last(check_images(images), data_format)
    rows = rows or math.ceil(math.sqrt(len(array)))
    cols = cols or math.ceil(len(array) / rows)
    low, high = value_range
    shown = np.clip((array.astype("float32") - low) / (high - low) * 255, 0, 255).astype("uint8")
    figure, axes = pyplot.subplots(
        nrows=rows, ncols=cols, figsize=(cols * scale, rows * scale), frameon=False,
        layout="tight", squeeze=False, sharex="row", sharey="col",
    )  # fmt: skip
    if legend_handles is not None:
        figure.legend(handles=legend_handles, loc="lower center")
    for number, axis in enumerate(axes.flat):
        axis.axis("off")
        if number >= len(shown):
            continue
        axis.imshow(shown[number].squeeze(-1) if shown.shape[-1] == 1 else shown[number])
        axis.margins(x=0, y=0)
        title = [
            f"{what}: {(label_map or {}).get(as_array(classes)[number].item(), 'Unknown')}"
            for what, classes in (("Label", y_true), ("Pred", y_pred))
            if classes is not None and number < len(classes)
        ]
        if title:
            axis.set_title("  ".join(title), fontsize=8)
    if path is not None:
        figure.savefig(
            path, pad_inches=0, bbox_inches="tight", transparent=transparent, dpi=dpi
        )
    elif show is None or show:
        pyplot.show()
    pyplot.close(figure)


def plot_bounding_box_gallery(
    images: Any, bounding_box_format: str, y_true: Mapping[str, Any] | None = None,
    y_pred: Mapping[str, Any] | None = None, value_range: tuple[float, float] = (0, 255),
    true_color: Sequence[int] = (0, 188, 212), pred_color: Sequence[int] = (255, 235, 59),
    line_thickness: int = 2, font_scale: float = 1.0, text_thickness: int | None = None,
    class_mapping: Mapping[int, str] | None = None,
    ground_truth_mapping: Mapping[int, str] | None = None,
    prediction_mapping: Mapping[int, str] | None = None, legend: bool = False,
    legend_handles: Any = None, rows: int | None = None, cols: int | None = None,
    data_format: str | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Show images with the boxes that are right and those that a model found.

    Args:
        images, value_range, rows, cols, data_format: as for `plot_image_gallery`.
        bounding_box_format, line_thickness, font_scale, text_thickness: as for
            `draw_bounding_boxes`.
        y_true, y_pred: boxes as `draw_bounding_boxes` takes them.
        true_color, pred_color: of either kind of boxes.
        class_mapping: names of classes; `ground_truth_mapping` and `prediction_mapping` are those
            of one kind of boxes.
        legend: whether to say which color is which.
        legend_handles: matplotlib's handles of another legend.
        kwargs: for `plot_image_gallery`.

    Raises:
        ValueError: two legends, or images of other shapes.
        ImportError: matplotlib or Pillow is missing.
    """
    if legend and legend_handles:
        raise ValueError(
            "Only pass `legend` OR `legend_handles` to "
            "`keras.visualization.plot_bounding_box_gallery()`."
        )
    library = _matplotlib("plot_bounding_box_gallery")
    plotted = channels_last(check_images(images), data_format)
    kinds = [
        ("Ground Truth", y_true, true_color, ground_truth_mapping or class_mapping),
        ("Prediction", y_pred, pred_color, prediction_mapping or class_mapping),
    ]
    for _, boxes, color, names in kinds:
        if boxes is not None:
            plotted = draw_bounding_boxes(
                plotted, boxes, bounding_box_format, names, color, line_thickness,
                text_thickness or line_thickness, font_scale, "channels_last",
            )  # fmt: skip
    if legend:
        legend_handles = [
            library.patches.Patch(color=np.asarray(color) / 255, label=what)
            for what, _, color, _ in kinds
        ]
    plot_image_gallery(
        plotted, value_range=value_range, legend_handles=legend_handles, rows=rows, cols=cols,
        data_format="channels_last", **kwargs,
    )  # fmt: skip


def plot_segmentation_mask_gallery(
    images: Any, num_classes: int, value_range: tuple[float, float] = (0, 255),
    y_true: Any = None, y_pred: Any = None,
    color_mapping: Mapping[int, Sequence[int]] | None = None, blend: bool = True,
    alpha: float = 0.8, ignore_index: int = -1, data_format: str | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Show images, and beside each what its pixels are and what a model says they are.

    Args:
        images, value_range, data_format: as for `plot_image_gallery`.
        num_classes, color_mapping, blend, alpha, ignore_index: as for `draw_segmentation_masks`.
        y_true, y_pred: classes of pixels, as for `draw_segmentation_masks`.
        kwargs: for `plot_image_gallery`.

    Raises:
        ValueError: images of other shapes.
        ImportError: matplotlib is missing.
    """
    array = channels_last(check_images(images), data_format)
    draw = functools.partial(
        draw_segmentation_masks, array, num_classes=num_classes, color_mapping=color_mapping,
        alpha=alpha, blend=blend, ignore_index=ignore_index, data_format="channels_last",
    )  # fmt: skip
    columns = [array]
    for given in (y_true, y_pred):
        if given is not None:
            classes = as_array(given)
            if classes.ndim == 4:
                classes = channels_last(classes, data_format)
            columns.append(draw(classes.astype("int32")))
    beside = np.stack(columns, 1).reshape(-1, *array.shape[1:])
    plot_image_gallery(
        beside, value_range=value_range, rows=len(array), cols=len(columns),
        data_format="channels_last", **kwargs,
    )  # fmt: skip
