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

_MODELS = {
    "convnext": "ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge",
    "densenet": "DenseNet121 DenseNet169 DenseNet201",
    "efficientnet": "EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4 "
    "EfficientNetB5 EfficientNetB6 EfficientNetB7",
    "efficientnet_v2": "EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 "
    "EfficientNetV2L EfficientNetV2M EfficientNetV2S",
    "inception_resnet_v2": "InceptionResNetV2",
    "inception_v3": "InceptionV3",
    "mobilenet": "MobileNet",
    "mobilenet_v2": "MobileNetV2",
    "mobilenet_v3": "MobileNetV3Large MobileNetV3Small",
    "nasnet": "NASNetLarge NASNetMobile",
    "resnet": "ResNet101 ResNet152 ResNet50",
    "resnet_v2": "ResNet101V2 ResNet152V2 ResNet50V2",
    "vgg16": "VGG16",
    "vgg19": "VGG19",
    "xception": "Xception",
}

__getattr__ = provided(
    __name__,
    {__name__: f"imagenet_utils resnet50 {' '.join(_MODELS)}"}
    | {f"{__name__}.{module}": names for module, names in _MODELS.items()},
)
