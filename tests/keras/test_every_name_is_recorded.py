"""Every public layer and optimizer trains as Keras's does, in recorded facts: none is left out.

`names.json` has Keras's own public names (`python -m tests.keras.record_names` records them).
"""

import json
from pathlib import Path

import pytest

import treadle as td
from tests.keras.layer_facts.cases import CASES as LAYERS
from tests.keras.preprocessing_facts.cases import CASES as PREPROCESSING
from tests.keras.training.cases import OPTIMIZERS, SCALES

NAMES = json.loads((Path(__file__).parent / "names.json").read_text())

# Layers whose losses are not recorded, by the reason.
WITHOUT_LOSSES = {
    "a base that computes nothing, or what the layers in it do": {
        "Layer", "Wrapper", "InputLayer", "MaxNumBoundingBoxes", "Pipeline",
    },
    "computes what the program's function does": {"Lambda"},
    "computes a function of a saved model": {"TFSMLayer"},
    "draws other random numbers than TensorFlow; what its factors do is in the facts of "
    "preprocessing": {
        "AugMix", "CutMix", "MixUp", "RandAugment", "RandomBrightness", "RandomColorJitter",
        "RandomCrop", "RandomElasticTransform", "RandomGaussianBlur", "RandomHeight",
        "RandomPerspective", "RandomRotation", "RandomTranslation", "RandomWidth", "RandomZoom",
    },
    "draws other random numbers than TensorFlow": {
        "RandomColorDegeneration", "RandomContrast", "RandomErasing", "RandomFlip",
        "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPosterization", "RandomSaturation",
        "RandomSharpness", "RandomShear",
    },
    "takes numbers of classes or texts, which have no gradients; its results are in the facts of "
    "preprocessing": {
        "CategoryEncoding", "Discretization", "HashedCrossing", "Hashing", "IntegerLookup",
        "StringLookup", "TextVectorization",
    },
}  # fmt: skip
# Keras's names that treadle does not have, by the reason; the modules that miss them ("" is keras).
MISSING = {
    "run or hold a model of another framework": {
        "layers": "FlaxLayer JaxLayer TorchModuleWrapper", "callbacks": "OrbaxCheckpoint",
    },
    "numbers of 4 bits that are fitted to examples": {
        "quantizers": "AWQConfig GPTQConfig", "dtype_policies": "AWQDTypePolicy GPTQDTypePolicy",
    },
    "of Keras's other backends": {
        "": "SymbolicScope",
        "distribution": "DataParallel ModelParallel distribute_tensor initialize",
    },
}  # fmt: skip


class Noted:
    """`keras.layers`, noting which names are asked for."""

    def __init__(self):
        self.names = set()

    def __getattr__(self, name):
        self.names.add(name)
        return getattr(td.keras.layers, name)


def made_by(cases):
    noted = Noted()
    for make in cases:
        make(noted)
    return {getattr(td.keras.layers, name) for name in noted.names}


def classes_of(module, base):
    """The public classes, aliases included."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {n: c for n, c in found.items() if isinstance(c, type) and issubclass(c, base)}


def test_every_layer_has_losses_of_training():
    recorded = made_by(case.make for case in LAYERS.values())
    public = classes_of(td.keras.layers, td.keras.layers.Layer)
    left_out = {name for name, layer in public.items() if layer not in recorded}
    assert left_out == set().union(*WITHOUT_LOSSES.values())


def test_layers_without_losses_have_their_results_recorded():
    recorded = made_by(PREPROCESSING.values())
    for reason, names in WITHOUT_LOSSES.items():
        if reason.endswith("preprocessing"):
            assert {getattr(td.keras.layers, name) for name in names} <= recorded, reason


def test_every_optimizer_has_losses_of_training():
    kinds = {getattr(td.keras.optimizers, kind) for kind, _ in OPTIMIZERS.values()}
    assert SCALES  # which are LossScaleOptimizer's
    public = classes_of(td.keras.optimizers, td.keras.optimizers.Optimizer)
    left_out = {name for name, kind in public.items() if kind not in kinds}
    # With TensorFlow, Keras's ScheduleFreeAdamW reads a variable after its update; its rule is
    # checked step by step in test_optimizers. MultiOptimizer is in test_several_optimizers.
    assert left_out == {
        "Optimizer", "LossScaleOptimizer", "MultiOptimizer", "ScheduleFreeAdamW"
    }


def missing_of(module):
    return {name for names in MISSING.values() for name in names.get(module, "").split()}


@pytest.mark.parametrize("module", NAMES)
def test_names_of_keras(module):
    """What Keras has is here, or missing for a reason; what is missing is refused by one line that
    says what to use."""
    ours, path = td.keras, ""
    for part in module.split(".") if module else ():
        if part in missing_of(path):
            return  # the whole module is missing
        ours, path = getattr(ours, part), f"{path}.{part}".strip(".")
    missing = missing_of(module)
    assert {name for name in NAMES[module] if not hasattr(ours, name)} == missing
    for name in missing:
        with pytest.raises(AttributeError, match=name) as refusal:
            getattr(ours, name)
        assert "If it is TensorFlow's" not in str(refusal.value)
