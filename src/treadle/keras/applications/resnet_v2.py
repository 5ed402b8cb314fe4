"""``td.keras.applications.resnet_v2``: the second version of ResNet."""

from treadle.keras.applications.imagenet_utils import decode_predictions, preprocessing
from treadle.keras.applications.resnet import ResNet50V2, ResNet101V2, ResNet152V2
from treadle.names import missing_in

preprocess_input = preprocessing("tf")

__all__ = ["ResNet50V2", "ResNet101V2", "ResNet152V2", "decode_predictions", "preprocess_input"]

__getattr__ = missing_in(__name__)
