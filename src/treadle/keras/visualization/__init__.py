"""``td.keras.visualization``: boxes and classes drawn on images, and images side by side."""

from __future__ import annotations

from treadle.keras.visualization.drawing import draw_bounding_boxes, draw_segmentation_masks
from treadle.keras.visualization.galleries import (
    plot_bounding_box_gallery,
    plot_image_gallery,
    plot_segmentation_mask_gallery,
)
from treadle.names import missing_in

__all__ = [
    "draw_bounding_boxes", "draw_segmentation_masks", "plot_bounding_box_gallery",
    "plot_image_gallery", "plot_segmentation_mask_gallery",
]  # fmt: skip

__getattr__ = missing_in(__name__)
