"""``td.compat.v1.estimator``: models as functions, trained, evaluated, exported and used from
checkpoints."""

from treadle.compat.v1.estimator import export, inputs
from treadle.compat.v1.estimator.base import (
    Estimator,
    EstimatorSpec,
    ModeKeys,
    RunConfig,
    WarmStartSettings,
)
from treadle.compat.v1.estimator.exporting import (
    BestExporter,
    Exporter,
    FinalExporter,
    LatestExporter,
)
from treadle.compat.v1.estimator.ready import (
    BaselineClassifier,
    BaselineRegressor,
    DNNClassifier,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearRegressor,
)
from treadle.compat.v1.estimator.training import EvalSpec, TrainSpec, train_and_evaluate
from treadle.compat.v1.train import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
    VocabInfo,
)
from treadle.names import missing_in

__all__ = [
    "BestExporter",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "BaselineClassifier",
    "BaselineRegressor",
    "DNNClassifier",
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedRegressor",
    "DNNRegressor",
    "Estimator",
    "EstimatorSpec",
    "EvalSpec",
    "Exporter",
    "FeedFnHook",
    "FinalExporter",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LatestExporter",
    "LinearClassifier",
    "LinearRegressor",
    "LoggingTensorHook",
    "ModeKeys",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "RunConfig",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "TrainSpec",
    "VocabInfo",
    "WarmStartSettings",
    "export",
    "inputs",
    "train_and_evaluate",
]

__getattr__ = missing_in(__name__)
