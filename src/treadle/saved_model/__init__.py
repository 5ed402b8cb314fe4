"""``td.saved_model``: models and their functions as files, used without the Python that made them.

A saved model is a folder:

    saved_model.json                   the objects, their functions and signatures
    graphs.txt                         the graphs of the functions, as text
    constants.safetensors              the arrays of the graphs, and tensors that functions captured
    variables/variables.safetensors    the variables, a checkpoint
    assets/                            files that functions read
"""

from treadle.core.refusals import explain_errors
from treadle.names import missing_in
from treadle.saved_model.assets import Asset
from treadle.saved_model.files import contains_saved_model
from treadle.saved_model.loading import load
from treadle.saved_model.options import LoadOptions, SaveOptions
from treadle.saved_model.saving import save
from treadle.saved_model.signatures import DEFAULT_SERVING_SIGNATURE_DEF_KEY

ASSETS_DIRECTORY = "assets"
VARIABLES_DIRECTORY = VARIABLES_FILENAME = "variables"
SERVING, TRAINING, GPU, TPU = "serve", "train", "gpu", "tpu"

__all__ = [
    "ASSETS_DIRECTORY",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "GPU",
    "SERVING",
    "TPU",
    "TRAINING",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
    "Asset",
    "LoadOptions",
    "SaveOptions",
    "contains_saved_model",
    "load",
    "save",
]

explain_errors(__name__)
__getattr__ = missing_in(__name__)
