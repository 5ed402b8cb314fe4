"""``td.keras.distillation``: a small model learns from labels and from what a large one says."""

from __future__ import annotations

from treadle.keras.distillation.distiller import Distiller
from treadle.keras.distillation.losses import (
    DistillationLoss,
    FeatureDistillation,
    LogitsDistillation,
)
from treadle.names import missing_in

__all__ = ["DistillationLoss", "Distiller", "FeatureDistillation", "LogitsDistillation"]

__getattr__ = missing_in(__name__)
