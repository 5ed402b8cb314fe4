"""What is said of TensorFlow 1's names that are not provided."""

from __future__ import annotations

from treadle.names import explain_missing

_FLAGS = "Flags are defined by the functions DEFINE_string, DEFINE_integer and the like"
_PROBABILITY = "Use td.random for numbers, and td.math for densities and their logarithms"
_FACTORIES = "Trees and clusters are not trained by programs: use scikit-learn on arrays"
_QUANTIZED = "Quantized numbers are not provided: use bfloat16 or float16"
_MIXED = "Use td.keras.mixed_precision, or cast to float16 and scale the loss by a number"
_SDCA = "Use tf.train.FtrlOptimizer for linear models"
_HANDLES = "Values do not stay in sessions: fetch an array and feed it again"
_PROFILER = "Use td.profiler.experimental.start and stop, or td.inspect.stages"
_VERSION = "Programs are compiled by treadle itself: `treadle env` tells the versions"
_SERVICE = "Pipelines run in this process: use td.data.Dataset.map with num_parallel_calls"
_RESOURCES = "Read files by their paths: os.path.dirname(__file__) is the folder of a module"
_MAYBE = "Take the elements that are to be kept with tf.data.Dataset.filter, and batch them"
_SERVERS = (
    "Operations run in this process: td.distribute.MultiWorkerMirroredStrategy has several "
    "processes, which `mpiexec -n 2 python program.py` starts"
)
_MAIN_OP = "Variables and tables are there when a model is loaded: leave main_op out"
_SEQUENCES = (
    "Sequence columns are not provided: use tf.sparse_tensor_to_dense and embedding_lookup"
)
_NUMBERS = "They are made by tf.initialize_all_variables and the like: use tf."
_ACCUMULATORS = "Use a variable with trainable=False, and tf.assign_add"

# Names, each behind the module in which it is looked for, with what to use instead.
HINTS = {
    **dict.fromkeys(
        (
            "contrib.factorization", "contrib.boosted_trees", "contrib.tensor_forest",
            "estimator.BoostedTreesClassifier", "estimator.BoostedTreesRegressor",
        ),
        _FACTORIES,
    ),
    "estimator.experimental": "Export models with export_saved_model, and stop training with a "
    "SessionRunHook that calls run_context.request_stop()",
    "estimator.MultiHead": "Give the losses and predictions of several heads in one model_fn",
    **dict.fromkeys(
        ("contrib.tpu", "contrib.tensorrt", "contrib.lite", "tpu"),
        "Programs are compiled by treadle itself, for processors and GPUs",
    ),
    "contrib.cudnn_rnn": "Use tf.nn.dynamic_rnn with the cells of tf.nn.rnn_cell",
    "contrib.lookup": "Use tf.lookup.StaticHashTable and tf.lookup.StaticVocabularyTable",
    "contrib.metrics": "Use tf.metrics",
    "contrib.losses": "Use tf.losses",
    "contrib.opt": "Use the optimizers of tf.train",
    "contrib.distribute": "Use td.distribute",
    "contrib.ffmpeg": "Sounds are read from WAV files: use td.audio.decode_wav",
    "contrib.image": "Use tf.image, and tf.gather_nd for other ways to sample",
    "contrib.gan": "Train both networks by optimizers with var_list, in turn",
    "contrib.bayesflow": _PROBABILITY,
    "contrib.autograph": "Use td.autograph, or td.function",
    "contrib.predictor": "Use td.saved_model.load(folder).signatures",
    "contrib.saved_model": "Use tf.saved_model",
    "contrib.keras": "Use td.keras",
    "contrib.signal": "Use td.signal",
    "contrib.memory_stats": "td.config.experimental.get_memory_info tells of devices",
    "contrib.staging": "Use td.data.Dataset.prefetch",
    "contrib.timeseries": "Use tf.estimator.Estimator with a model_fn over windows of data",
    **dict.fromkeys(
        (
            "contrib.seq2seq.BahdanauMonotonicAttention", "contrib.seq2seq.LuongMonotonicAttention",
            "contrib.seq2seq.monotonic_attention", "contrib.seq2seq.safe_cumprod",
        ),
        "Monotonic attention is not provided: use LuongAttention or BahdanauAttention",
    ),
    **dict.fromkeys(
        (
            "contrib.seq2seq.FixedSizeDecoder", "contrib.seq2seq.ScheduledSampling",
            "contrib.crf.CrfForwardRnnCell", "contrib.crf.CrfDecodeForwardRnnCell",
            "contrib.crf.CrfDecodeBackwardRnnCell",
        ),
        "It is a part of the functions of this module, which need no cells",
    ),
    **dict.fromkeys(
        (
            "flags.DEFINE", "flags.DEFINE_flag", "flags.DEFINE_alias", "flags.DEFINE_multi",
            "flags.DEFINE_multi_enum", "flags.DEFINE_enum_class", "flags.DEFINE_multi_enum_class",
            "flags.DEFINE_spaceseplist", "flags.tf_decorator",
            *(
                f"flags.{kind}{what}"
                for kind in ("Argument", "BaseList", "Boolean", "CsvList", "EnumClass",
                             "EnumClassList", "Enum", "Float", "Integer", "List", "MultiEnumClass",
                             "Multi", "WhitespaceSeparatedList")
                for what in ("Parser", "Serializer", "Flag", "ListSerializer")
            ),
            "flags.CantOpenFlagFileError", "flags.FlagHolder", "flags.ValidationError",
            "flags.FlagNameConflictsWithMethodError", "flags.UnrecognizedFlagError",
        ),
        _FLAGS,
    ),
    **dict.fromkeys(
        (
            "flags.mark_bool_flags_as_mutual_exclusive", "flags.mark_flags_as_mutual_exclusive",
            "flags.multi_flags_validator", "flags.register_multi_flags_validator",
            "flags.register_validator", "flags.validator",
        ),
        "Check the values of flags in main()",
    ),
    **dict.fromkeys(
        (
            "flags.adopt_module_key_flags", "flags.declare_key_flag", "flags.disclaim_key_flags",
            "flags.doc_to_help", "flags.flag_dict_to_args", "flags.get_help_width",
            "flags.override_value", "flags.set_default", "flags.text_wrap",
        ),
        "Set a flag by FLAGS.name = value; --help lists all of them",
    ),
    **dict.fromkeys(
        (
            "ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator",
            "sparse.SparseConditionalAccumulator",
        ),
        _ACCUMULATORS,
    ),
    "LMDBReader": "Read databases in Python, in td.data.Dataset.from_generator",
    "NoneTensorSpec": "None is an element that is left out",
    "TensorInfo": "Use tf.saved_model.build_tensor_info",
    "OpError": "Use tf.errors.OpError",
    **dict.fromkeys(
        (
            "COMPILER_VERSION", "CXX11_ABI_FLAG", "CXX_VERSION", "GRAPH_DEF_VERSION",
            "GRAPH_DEF_VERSION_MIN_CONSUMER", "GRAPH_DEF_VERSION_MIN_PRODUCER", "MONOLITHIC_BUILD",
            "version.COMPILER_VERSION", "version.GRAPH_DEF_VERSION",
            "version.GRAPH_DEF_VERSION_MIN_CONSUMER", "version.GRAPH_DEF_VERSION_MIN_PRODUCER",
        ),
        _VERSION,
    ),
    "check_pinned": "Tensors are where they are computed",
    "create_partitioned_variables": "Variables are not divided into parts: use tf.get_variable",
    **dict.fromkeys(
        ("get_session_handle", "get_session_tensor", "delete_session_tensor"), _HANDLES
    ),
    **dict.fromkeys(
        (
            "dequantize", "quantize", "quantize_v2", "quantized_concat", "nn.quantized_avg_pool",
            "nn.quantized_conv2d", "nn.quantized_max_pool",
            "train.do_quantize_training_on_graphdef",
        ),
        _QUANTIZED,
    ),
    "mixed_precision": _MIXED,
    "load_file_system_library": "Files are those of the operating system",
    "get_seed": "The seed of a graph is graph.seed; each operation takes seed=",
    "random.get_seed": "The seed of a graph is graph.seed; each operation takes seed=",
    "wrap_function": "Use td.compat.v1.Session.make_callable, or td.function",
    "user_ops": "Use tf.py_func",
    "sparse_matmul": "Use tf.matmul, which takes a_is_sparse",
    "initializers.variables": f"{_NUMBERS}variables_initializer",
    "initializers.global_variables": f"{_NUMBERS}global_variables_initializer",
    "initializers.local_variables": f"{_NUMBERS}local_variables_initializer",
    "initializers.tables_initializer": f"{_NUMBERS}tables_initializer",
    "nn.static_state_saving_rnn": "Keep the state in a variable: tf.assign it after each batch",
    **dict.fromkeys(
        (
            "profiler.AdviceProto", "profiler.GraphNodeProto", "profiler.MultiGraphNodeProto",
            "profiler.OpLogProto", "profiler.ProfileOptionBuilder", "profiler.Profiler",
            "profiler.advise", "profiler.profile", "profiler.write_op_log", "train.ProfilerHook",
        ),
        _PROFILER,
    ),
    "resource_loader": _RESOURCES,
    **dict.fromkeys(
        (
            "saved_model.main_op", "saved_model.main_op_with_restore", "saved_model.MAIN_OP_KEY",
            "saved_model.LEGACY_INIT_OP_KEY", "saved_model.ASSETS_KEY",
        ),
        _MAIN_OP,
    ),
    **dict.fromkeys(
        (
            "saved_model.DEBUG_DIRECTORY", "saved_model.DEBUG_INFO_FILENAME_PB",
            "saved_model.SAVED_MODEL_FILENAME_PB", "saved_model.SAVED_MODEL_FILENAME_PBTXT",
            "saved_model.SAVED_MODEL_SCHEMA_VERSION",
        ),
        "docs/saved_models.md tells what the files of a saved model are",
    ),
    **dict.fromkeys(
        (
            "feature_column.sequence_categorical_column_with_hash_bucket",
            "feature_column.sequence_categorical_column_with_identity",
            "feature_column.sequence_categorical_column_with_vocabulary_file",
            "feature_column.sequence_categorical_column_with_vocabulary_list",
            "feature_column.sequence_numeric_column",
        ),
        _SEQUENCES,
    ),
    "summary.all_v2_summary_ops": "Use tf.summary.merge_all, or tf.contrib.summary.all_summary_ops",
    "summary.initialize": "Writers are ready when they are made: see tf.summary.FileWriter",
    **dict.fromkeys(
        (
            "test.Benchmark", "test.benchmark_config", "test.StubOutForTesting",
            "test.create_local_cluster", "test.disable_with_predicate", "test.test_src_dir_path",
            "test.with_eager_op_as_function",
        ),
        "Use unittest, unittest.mock and `treadle bench`",
    ),
    "test.assert_equal_graph_def": "Compare graph.as_graph_def() by ==",
    **dict.fromkeys(("train.JobDef", "train.ServerDef", "train.ClusterDef"), _SERVERS),
    "train.replica_device_setter": "All variables are in this process: use td.distribute",
    "train.SaverDef": "Use tf.train.Saver",
    "train.SessionManager": "Use tf.train.MonitoredTrainingSession",
    "train.generate_checkpoint_state_proto": "Use tf.train.update_checkpoint_state",
    **dict.fromkeys(
        (
            "train.maybe_batch", "train.maybe_batch_join", "train.maybe_shuffle_batch",
            "train.maybe_shuffle_batch_join",
        ),
        _MAYBE,
    ),
    "train.noisy_linear_cosine_decay": "Use tf.train.linear_cosine_decay",
    **dict.fromkeys(
        ("train.sdca_fprint", "train.sdca_optimizer", "train.sdca_shrink_l1"), _SDCA
    ),
}  # fmt: skip

# Names in modules that are treadle's own.
_ELSEWHERE = {
    **dict.fromkeys(
        (
            "data.ThreadingOptions", "data.experimental.AutotuneAlgorithm",
            "data.experimental.AutotuneOptions", "data.experimental.DistributeOptions",
            "data.experimental.ExternalStatePolicy", "data.experimental.OptimizationOptions",
            "data.experimental.ThreadingOptions",
        ),
        "Pipelines choose by themselves: num_parallel_calls and prefetch say what a stage may do",
    ),
    **dict.fromkeys(
        (
            "data.experimental.Structure", "data.experimental.TensorStructure",
            "data.experimental.DatasetStructure", "data.experimental.OptionalStructure",
            "data.experimental.RaggedTensorStructure", "data.experimental.SparseTensorStructure",
            "data.experimental.TensorArrayStructure",
        ),
        "Use td.TensorSpec, td.SparseTensorSpec and the like",
    ),
    **dict.fromkeys(
        (
            "data.experimental.service", "data.experimental.ServiceOptions",
            "data.experimental.distributed_save", "data.experimental.SHARD_HINT",
            *(
                f"data.experimental.service.{name}"
                for name in ("CrossTrainerCache", "DispatcherConfig", "ShardingPolicy",
                             "WorkerConfig", "distribute", "from_dataset_id", "register_dataset")
            ),
        ),
        _SERVICE,
    ),
    **dict.fromkeys(
        (
            "data.experimental.DatasetInitializer", "data.experimental.index_table_from_dataset",
            "data.experimental.table_from_dataset",
        ),
        "Make a td.lookup.StaticHashTable of list(dataset.as_numpy_iterator())",
    ),
    **dict.fromkeys(
        ("data.experimental.Reducer", "data.experimental.group_by_reducer"),
        "Use td.data.Dataset.group_by_window, or td.data.Dataset.reduce",
    ),
    "data.experimental.SqlDataset": "Read databases with sqlite3, in Dataset.from_generator",
    "data.experimental.dense_to_sparse_batch": "Use ragged batches, or td.sparse.from_dense in map",
    **dict.fromkeys(
        ("data.experimental.from_variant", "data.experimental.to_variant"),
        "Pipelines are objects of Python, not tensors",
    ),
    "data.experimental.get_model_proto": "Use td.profiler.experimental",
    "data.experimental.make_saveable_from_iterator": "Use td.train.Checkpoint(iterator=...)",
    "data.experimental.map_and_batch_with_legacy_function": "Use Dataset.map and Dataset.batch",
    "data.experimental.pad_to_cardinality": "Use Dataset.repeat and Dataset.take",
    "distribute.get_loss_reduction": "Say in the loss how it is reduced: td.keras.losses.Reduction",
    **dict.fromkeys(
        (
            "errors.error_code_from_exception_type", "errors.exception_type_from_error_code",
            "errors.raise_exception_on_not_ok_status",
        ),
        "Exceptions have their code as error.error_code",
    ),
    "experimental.enable_strict_mode": "Use warnings.simplefilter('error')",
    "experimental.output_all_intermediates": "Programs keep what gradients need by themselves",
    "experimental.register_filesystem_plugin": "Files are those of the operating system",
    **dict.fromkeys(
        (
            "sysconfig.CXX11_ABI_FLAG", "sysconfig.CXX_VERSION", "sysconfig.MONOLITHIC_BUILD",
            "sysconfig.get_compile_flags", "sysconfig.get_include", "sysconfig.get_lib",
            "sysconfig.get_link_flags",
        ),
        "There is no C++ library: docs/extending.md tells how ops are added",
    ),
}

explain_missing(_ELSEWHERE)
explain_missing({f"compat.v1.{path}": hint for path, hint in HINTS.items()})
