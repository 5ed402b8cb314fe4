"""Callbacks of fit, evaluate and predict, by Keras's names."""

from treadle.keras.callbacks.base import Callback, CallbackList, History, LambdaCallback
from treadle.keras.callbacks.checkpoints import BackupAndRestore, ModelCheckpoint
from treadle.keras.callbacks.logging import CSVLogger, ProgbarLogger, RemoteMonitor
from treadle.keras.callbacks.tensorboard import TensorBoard
from treadle.keras.callbacks.training import (
    EarlyStopping,
    LearningRateScheduler,
    ReduceLROnPlateau,
    SwapEMAWeights,
    TerminateOnNaN,
)
from treadle.names import missing_in

__all__ = [
    "BackupAndRestore", "CSVLogger", "Callback", "CallbackList", "EarlyStopping", "History",
    "LambdaCallback", "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger",
    "ReduceLROnPlateau", "RemoteMonitor",
    "SwapEMAWeights", "TensorBoard", "TerminateOnNaN",
]  # fmt: skip

__getattr__ = missing_in(__name__)
