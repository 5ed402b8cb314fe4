"""What TensorFlow once called functions and arguments that have other names now.

`rewriting` uses an entry only where treadle has the new name and not the old one, and asks the
modules and signatures themselves for that.
"""

# Names of functions of the first releases, and of what moved out of tf.contrib unchanged.
NAMES = {
    "audio_summary": "summary.audio",
    "histogram_summary": "summary.histogram",
    "image_summary": "summary.image",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "scalar_summary": "summary.scalar",
    "train.SummaryWriter": "summary.FileWriter",
    "VERSION": "version.VERSION",
    "inv": "reciprocal",
    "rnn_cell": "nn.rnn_cell",
    "select": "where",
    "python_io.TFRecordWriter": "io.TFRecordWriter",
    "python_io.TFRecordOptions": "io.TFRecordOptions",
    "image.resize_images": "image.resize",
    "image.resize_image_with_crop_or_pad": "image.resize_with_crop_or_pad",
    "image.per_image_whitening": "image.per_image_standardization",
    "log_softmax": "nn.log_softmax",
    "contrib.framework.nest": "nest",
    "contrib.framework.is_tensor": "is_tensor",
    "contrib.framework.argsort": "argsort",
    "contrib.framework.sort": "sort",
    "contrib.eager.TensorSpec": "TensorSpec",
    "contrib.autograph": "autograph",
    "contrib.keras": "keras",
    "contrib.rnn.LSTMStateTuple": "nn.rnn_cell.LSTMStateTuple",
    "contrib.rnn.static_rnn": "nn.static_rnn",
    "contrib.rnn.stack_bidirectional_dynamic_rnn": "nn.bidirectional_dynamic_rnn",
    "contrib.signal": "signal",
    "contrib.util.constant_value": "get_static_value",
    "contrib.distribute.MirroredStrategy": "distribute.MirroredStrategy",
    "contrib.data.AUTOTUNE": "data.experimental.AUTOTUNE",
    "app.flags": "flags",
    **{
        f"keras.layers.{module}": "keras.layers"
        for module in ("advanced_activations", "convolutional", "convolutional_recurrent", "core",
                       "embeddings", "local", "merge", "noise", "normalization", "pooling",
                       "recurrent", "wrappers")
    },
    **{f"keras.utils.{module}": "keras.utils" for module in ("generic_utils", "np_utils",
                                                             "vis_utils")},
    **{
        f"keras.optimizers.{old}": f"keras.optimizers.{new}"
        for old, new in {"adadelta": "Adadelta", "adagrad": "Adagrad", "adam": "Adam",
                         "adamax": "Adamax", "nadam": "Nadam", "rmsprop": "RMSprop",
                         "sgd": "SGD"}.items()
    },
    "keras.engine.topology": "keras.layers",
    "keras.engine": "keras.layers",
    "keras.layers.CuDNNGRU": "keras.layers.GRU",
    "keras.layers.CuDNNLSTM": "keras.layers.LSTM",
}  # fmt: skip

# Arguments that were renamed: the first of the new names that the function has is taken.
ARGUMENTS = {
    "Targmax": ["output_dtype"],
    "batch_dim": ["batch_axis"],
    "block_size": ["block_shape"],
    "box_ind": ["box_indices"],
    "concat_dim": ["axis"],
    "dilation_rate": ["dilations"],
    "dim": ["axis"],
    "dimension": ["axis"],
    "filter": ["filters"],
    "fn1": ["true_fn"],
    "fn2": ["false_fn"],
    "input_tensor": ["input"],
    "keep_dims": ["keepdims"],
    "ksizes": ["sizes"],
    "lr": ["learning_rate"],
    "msg": ["message"],
    "nb_epoch": ["epochs"],
    "num_threads": ["num_parallel_calls"],
    "output_buffer_size": ["buffer_size"],
    "output_dtype": ["dtype"],
    "preferred_dtype": ["dtype_hint"],
    "rates": ["dilations"],
    "reduction_indices": ["axis"],
    "seq_dim": ["seq_axis"],
    "split_dim": ["axis"],
    "squeeze_dims": ["axis"],
    "string_tensor": ["input"],
    "t": ["x"],
    "targets": ["labels"],
    "tensor": ["input"],
    "value": ["input"],
}
# Those of them that are also rewritten where the function takes both names.
DEPRECATED = frozenset(
    ["dim", "dimension", "fn1", "fn2", "keep_dims", "preferred_dtype", "reduction_indices",
     "squeeze_dims"]
)
# Arguments that told TensorFlow how to do something and changed no result.
WITHOUT_EFFECT = frozenset(
    ["colocate_gradients_with_ops", "experimental_relax_shapes", "validate_indices"]
)
# Functions whose first arguments changed places: those of the first releases get their names.
# Losses have them by name only since; `concat` and `split` began with a number, the axis.
BY_NAME = {
    **{
        f"nn.{kind}_cross_entropy_with_logits": ("logits", "labels")
        for kind in ("sigmoid", "softmax", "sparse_softmax")
    },
    "concat": ("axis", "values"),
    "split": ("axis", "num_or_size_splits", "value"),
}

# Packages of others that programs for TensorFlow import, and what to do instead.
PACKAGES = {
    "horovod": "treadle.distribute has workers that MPI starts",
    "tensorflow.examples": "the files of its tutorials are in no library: read the data with "
    "td.keras.datasets, td.datasets or td.data",
    "tensorflow.contrib.slim": "write the layers with tf.layers or tf.contrib.layers",
    "tensorflow_addons": "write the layer or optimizer with treadle.keras",
    "tensorflow_datasets": "read the data with td.keras.datasets or td.data",
    "tensorflow_estimator": "tf.estimator is in treadle.compat.v1",
    "tensorflow_hub": "others' weights are not provided: load them with model.load_weights",
    "tensorflow_probability": "write the density with td.math, or sample with td.random",
    "tensorflow_text": "td.strings has what is done with texts",
    "tflearn": "write the layers with treadle.keras",
}
