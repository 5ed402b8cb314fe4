"""``td.compat.v1.train``: optimizers, Saver, sessions that save by themselves."""

from treadle.compat.v1.mirrored import fallback
from treadle.compat.v1.train.averages import ExponentialMovingAverage
from treadle.compat.v1.train.coordinator import Coordinator, LooperThread, QueueRunner
from treadle.compat.v1.train.monitored import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ChiefSessionCreator,
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    MonitoredSession,
    MonitoredTrainingSession,
    NanLossDuringTrainingError,
    NanTensorHook,
    Scaffold,
    SecondOrStepTimer,
    SessionCreator,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    SingularMonitoredSession,
    StepCounterHook,
    StopAtStepHook,
    Supervisor,
    WorkerSessionCreator,
    add_queue_runner,
    basic_train_loop,
    start_queue_runners,
)
from treadle.compat.v1.train.optimizers import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    ProximalGradientDescentOptimizer,
    RMSPropOptimizer,
    SyncReplicasOptimizer,
)
from treadle.compat.v1.train.saver import (
    Saver,
    checkpoint_exists,
    export_meta_graph,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    import_meta_graph,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from treadle.compat.v1.train.schedules import (
    assert_global_step,
    cosine_decay,
    create_global_step,
    exponential_decay,
    get_global_step,
    get_or_create_global_step,
    global_step,
    inverse_time_decay,
    natural_exp_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from treadle.compat.v1.train.writing import write_graph

__getattr__ = fallback(__name__, "treadle.train")
