"""``td.keras.export``: models as saved models, which `td.saved_model.load` reads."""

from treadle.keras.models.exporting import ExportArchive
from treadle.names import missing_in

__all__ = ["ExportArchive"]

__getattr__ = missing_in(__name__)
