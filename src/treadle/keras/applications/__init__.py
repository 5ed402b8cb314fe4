"""``td.keras.applications``: models whose weights were trained on ImageNet.

Their functions take, in the order that each has (``inspect.signature``):

- ``include_top``: with the classifier.
- ``weights``: None for new ones; the path of a file; ``"imagenet"`` for those that Keras offers,
  from its file in ``~/.keras/models``. Nothing is fetched: without the file the error says which
  file to put where.
- ``input_tensor``: what ``keras.Input`` or layers gave, instead of a new input.
- ``input_shape``: of one image; None stands for the usual one, or for any without classifier.
- ``pooling``: without classifier ``"avg"`` or ``"max"`` over the positions.
- ``classes``, ``classifier_activation``: of the classifier; None for logits.
- ``name``: of the model.

Layers, their names, the order of weights and the descriptions are those of Keras, so files of its
weights fit.
"""

from typing import TYPE_CHECKING

from treadle.names import provided

__all__ = [
    "ConvNeXtBase", "ConvNeXtLarge", "ConvNeXtSmall", "ConvNeXtTiny", "ConvNeXtXLarge",
    "DenseNet121", "DenseNet169", "DenseNet201", "EfficientNetB0", "EfficientNetB1",
    "EfficientNetB2", "EfficientNetB3", "EfficientNetB4", "EfficientNetB5", "EfficientNetB6",
    "EfficientNetB7", "EfficientNetV2B0", "EfficientNetV2B1", "EfficientNetV2B2",
    "EfficientNetV2B3", "EfficientNetV2L", "EfficientNetV2M", "EfficientNetV2S",
    "InceptionResNetV2", "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Large",
    "MobileNetV3Small", "NASNetLarge", "NASNetMobile", "ResNet101", "ResNet101V2", "ResNet152",
    "ResNet152V2", "ResNet50", "ResNet50V2", "VGG16", "VGG19", "Xception", "convnext",
    "densenet", "efficientnet", "efficientnet_v2", "imagenet_utils", "inception_resnet_v2",
    "inception_v3", "mobilenet", "mobilenet_v2", "mobilenet_v3", "nasnet", "resnet", "resnet50",
    "resnet_v2", "vgg16", "vgg19", "xception",
]  # fmt: skip

if TYPE_CHECKING:
    from treadle.keras.applications import convnext as convnext
    from treadle.keras.applications import densenet as densenet
    from treadle.keras.applications import efficientnet as efficientnet
    from treadle.keras.applications import efficientnet_v2 as efficientnet_v2
    from treadle.keras.applications import imagenet_utils as imagenet_utils
    from treadle.keras.applications import inception_resnet_v2 as inception_resnet_v2
    from treadle.keras.applications import inception_v3 as inception_v3
    from treadle.keras.applications import mobilenet as mobilenet
    from treadle.keras.applications import mobilenet_v2 as mobilenet_v2
    from treadle.keras.applications import mobilenet_v3 as mobilenet_v3
    from treadle.keras.applications import nasnet as nasnet
    from treadle.keras.applications import resnet as resnet
    from treadle.keras.applications import resnet50 as resnet50
    from treadle.keras.applications import resnet_v2 as resnet_v2
    from treadle.keras.applications import vgg16 as vgg16
    from treadle.keras.applications import vgg19 as vgg19
    from treadle.keras.applications import xception as xception
    from treadle.keras.applications.convnext import ConvNeXtBase as ConvNeXtBase
    from treadle.keras.applications.convnext import ConvNeXtLarge as ConvNeXtLarge
    from treadle.keras.applications.convnext import ConvNeXtSmall as ConvNeXtSmall
    from treadle.keras.applications.convnext import ConvNeXtTiny as ConvNeXtTiny
    from treadle.keras.applications.convnext import ConvNeXtXLarge as ConvNeXtXLarge
    from treadle.keras.applications.densenet import DenseNet121 as DenseNet121
    from treadle.keras.applications.densenet import DenseNet169 as DenseNet169
    from treadle.keras.applications.densenet import DenseNet201 as DenseNet201
    from treadle.keras.applications.efficientnet import EfficientNetB0 as EfficientNetB0
    from treadle.keras.applications.efficientnet import EfficientNetB1 as EfficientNetB1
    from treadle.keras.applications.efficientnet import EfficientNetB2 as EfficientNetB2
    from treadle.keras.applications.efficientnet import EfficientNetB3 as EfficientNetB3
    from treadle.keras.applications.efficientnet import EfficientNetB4 as EfficientNetB4
    from treadle.keras.applications.efficientnet import EfficientNetB5 as EfficientNetB5
    from treadle.keras.applications.efficientnet import EfficientNetB6 as EfficientNetB6
    from treadle.keras.applications.efficientnet import EfficientNetB7 as EfficientNetB7
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2B0 as EfficientNetV2B0
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2B1 as EfficientNetV2B1
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2B2 as EfficientNetV2B2
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2B3 as EfficientNetV2B3
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2L as EfficientNetV2L
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2M as EfficientNetV2M
    from treadle.keras.applications.efficientnet_v2 import EfficientNetV2S as EfficientNetV2S
    from treadle.keras.applications.inception_resnet_v2 import (
        InceptionResNetV2 as InceptionResNetV2,
    )
    from treadle.keras.applications.inception_v3 import InceptionV3 as InceptionV3
    from treadle.keras.applications.mobilenet import MobileNet as MobileNet
    from treadle.keras.applications.mobilenet_v2 import MobileNetV2 as MobileNetV2
    from treadle.keras.applications.mobilenet_v3 import MobileNetV3Large as MobileNetV3Large
    from treadle.keras.applications.mobilenet_v3 import MobileNetV3Small as MobileNetV3Small
    from treadle.keras.applications.nasnet import NASNetLarge as NASNetLarge
    from treadle.keras.applications.nasnet import NASNetMobile as NASNetMobile
    from treadle.keras.applications.resnet import ResNet50 as ResNet50
    from treadle.keras.applications.resnet import ResNet101 as ResNet101
    from treadle.keras.applications.resnet import ResNet152 as ResNet152
    from treadle.keras.applications.resnet_v2 import ResNet50V2 as ResNet50V2
    from treadle.keras.applications.resnet_v2 import ResNet101V2 as ResNet101V2
    from treadle.keras.applications.resnet_v2 import ResNet152V2 as ResNet152V2
    from treadle.keras.applications.vgg16 import VGG16 as VGG16
    from treadle.keras.applications.vgg19 import VGG19 as VGG19
    from treadle.keras.applications.xception import Xception as Xception

__getattr__ = provided(
    __name__,
    {
        "treadle.keras.applications":
            "convnext densenet efficientnet efficientnet_v2 imagenet_utils "
            "inception_resnet_v2 inception_v3 mobilenet mobilenet_v2 mobilenet_v3 nasnet "
            "resnet resnet50 resnet_v2 vgg16 vgg19 xception",
        "treadle.keras.applications.convnext":
            "ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge",
        "treadle.keras.applications.densenet": "DenseNet121 DenseNet169 DenseNet201",
        "treadle.keras.applications.efficientnet":
            "EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4 "
            "EfficientNetB5 EfficientNetB6 EfficientNetB7",
        "treadle.keras.applications.efficientnet_v2":
            "EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 "
            "EfficientNetV2L EfficientNetV2M EfficientNetV2S",
        "treadle.keras.applications.inception_resnet_v2": "InceptionResNetV2",
        "treadle.keras.applications.inception_v3": "InceptionV3",
        "treadle.keras.applications.mobilenet": "MobileNet",
        "treadle.keras.applications.mobilenet_v2": "MobileNetV2",
        "treadle.keras.applications.mobilenet_v3": "MobileNetV3Large MobileNetV3Small",
        "treadle.keras.applications.nasnet": "NASNetLarge NASNetMobile",
        "treadle.keras.applications.resnet": "ResNet101 ResNet152 ResNet50",
        "treadle.keras.applications.resnet_v2": "ResNet101V2 ResNet152V2 ResNet50V2",
        "treadle.keras.applications.vgg16": "VGG16",
        "treadle.keras.applications.vgg19": "VGG19",
        "treadle.keras.applications.xception": "Xception",
    },
)
