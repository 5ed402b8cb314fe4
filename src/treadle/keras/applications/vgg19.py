"""``td.keras.applications.vgg19``: VGG with 19 layers of weights."""

from treadle.keras.applications.imagenet_utils import decode_predictions
from treadle.keras.applications.vgg import VGG19, preprocess_input
from treadle.names import missing_in

__all__ = ["VGG19", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
