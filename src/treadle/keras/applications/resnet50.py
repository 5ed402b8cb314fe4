"""``td.keras.applications.resnet50``: ResNet with 50 layers of weights."""

from treadle.keras.applications.imagenet_utils import decode_predictions
from treadle.keras.applications.resnet import ResNet50, preprocess_input
from treadle.names import missing_in

__all__ = ["ResNet50", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
