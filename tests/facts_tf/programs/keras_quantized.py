"""Keras: tables of layers in 8 and 4 bits, products of whole numbers, scores in 16 bits."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tests.facts_tf.registry import program, raised

X2 = np.sin(np.arange(16.0)).reshape(2, 8).astype("float32")
X3 = np.sin(np.arange(24.0)).reshape(2, 4, 3).astype("float32")
TOKENS = np.array([[0, 2], [1, 1]])


def stored(layer):
    """The own variables of a layer as files have them."""
    store = {}
    layer.save_own_variables(store)
    return {name: np.asarray(value) for name, value in store.items()}


@program
def layers_in_8_bits(tf):
    tf.keras.utils.set_random_seed(3)
    layers, found = tf.keras.layers, []
    for layer, x in (
        (layers.Dense(4, "relu"), X2), (layers.Dense(4), X3), (layers.Embedding(3, 4), TOKENS),
        (layers.EinsumDense("ab,bcd->acd", (2, 3), bias_axes="cd"), X2),
        (layers.EinsumDense("abc,cd->abd", (None, 5)), X3),
        (layers.EinsumDense("abc,bdc->adb", (2, 4)), X3),
    ):  # fmt: skip
        exact = layer(x)
        layer.quantize("int8")
        found.append([
            exact, layer(x), stored(layer), layer.dtype_policy.name, layer.compute_dtype,
            layer.get_config()["dtype"], [v.name for v in layer.trainable_weights],
            layer.quantization_mode,
        ])  # fmt: skip
    return found


@program
def products_of_low_rank_beside_tables_in_8_bits(tf):
    tf.keras.utils.set_random_seed(3)
    layer = tf.keras.layers.Dense(3)
    layer.build((None, 8))
    layer.quantize("int8")
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(np.arange(6.0).reshape(2, 3) / 5)
    return [layer(X2), stored(layer), [v.name for v in layer.trainable_weights]]


@program
def models_in_8_bits(tf):
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input((8,)), layers.Dense(4, name="first"), layers.Dense(2, name="last")]
    )
    exact = model.predict(X2, verbose=0)
    model.quantize("int8", filters="^fi")
    found = [[layer.dtype_policy.name for layer in model.layers], exact]
    found.append(model.predict(X2, verbose=0))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.keras")
        model.save(path)
        again = tf.keras.models.load_model(path)
    found += [again.predict(X2, verbose=0), [layer.dtype_policy.name for layer in again.layers]]
    with tf.GradientTape() as tape:
        x = tf.constant(X2)
        tape.watch(x)
        loss = tf.reduce_sum(model(x) ** 2)
    return [*found, tape.gradient(loss, x), len(model.trainable_weights)]


@program
def layers_in_4_bits(tf):
    """In blocks of the default size, of three neighbours, and without blocks."""
    tf.keras.utils.set_random_seed(3)
    layers, config, found = tf.keras.layers, tf.keras.quantizers.Int4QuantizationConfig, []
    makers = (
        (lambda: layers.Dense(5, "relu"), X2), (lambda: layers.Dense(4), X3),
        (lambda: layers.Embedding(3, 7), TOKENS),
        (lambda: layers.EinsumDense("abc,cde->abde", (None, 2, 3)), X3),
        (lambda: layers.EinsumDense("abc,dc->abd", (None, 5)), X3),
        (lambda: layers.Dense(4, dtype="mixed_float16"), X3),
    )  # fmt: skip
    for make, x in makers:
        for given in (None, config(block_size=3), config(block_size=None)):
            layer = make()
            layer(x)
            layer.quantize("int4", config=given)
            found.append([
                layer(x), stored(layer), layer.dtype_policy.name, layer.quantization_mode,
                [v.name for v in layer.weights], layer.get_config()["quantization_config"],
            ])  # fmt: skip
    return found


@program
def ways_back_in_4_bits(tf):
    tf.keras.utils.set_random_seed(3)
    config, found = tf.keras.quantizers.Int4QuantizationConfig, []
    vectors = np.sin(np.arange(14.0)).reshape(2, 7).astype("float32")
    for tied in (True, False):
        for given in (None, config(block_size=3), config(block_size=None)):
            layer = tf.keras.layers.ReversibleEmbedding(4, 7, tie_weights=tied)
            layer(TOKENS)
            layer.quantize("int4", config=given)
            found.append([layer(TOKENS), layer(vectors, reverse=True), stored(layer)])
    return found


@program
def products_of_low_rank_beside_tables_in_4_bits(tf):
    tf.keras.utils.set_random_seed(3)
    config, found = tf.keras.quantizers.Int4QuantizationConfig, []
    for given in (config(block_size=3), config(block_size=-1)):
        layer = tf.keras.layers.Dense(3)
        layer.build((None, 8))
        layer.quantize(config=given)
        layer.enable_lora(2)
        layer.lora_kernel_b.assign(np.arange(6.0).reshape(2, 3) / 5)
        found.append([layer(X2), stored(layer), layer.kernel])
    return found


@program
def other_quantizers_of_layers(tf):
    tf.keras.utils.set_random_seed(3)
    quantizers, layers = tf.keras.quantizers, tf.keras.layers
    absolute, found = quantizers.AbsMaxQuantizer, []
    for config in (
        quantizers.Int4QuantizationConfig(
            absolute(axis=0, value_range=(-8, 7)), absolute(), block_size=None
        ),
        quantizers.Int8QuantizationConfig(activation_quantizer=None),
        quantizers.Int8QuantizationConfig(absolute(axis=0, value_range=(-63, 63))),
    ):
        layer = layers.Dense(4)
        layer.build((None, 8))
        layer.quantize(config=config)
        data = layer.get_config()
        again = layers.Dense.from_config(data).dtype_policy.name
        found.append([layer(X2), stored(layer), data["quantization_config"], again])
    return found


@program
def models_in_4_bits(tf):
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input((4, 3)), layers.Dense(4), layers.EinsumDense("abc,cd->abd", (4, 2))]
    )
    model.quantize("int4")
    found = [model.predict(X3, verbose=0), [layer.dtype_policy.name for layer in model.layers]]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.keras")
        model.save(path)
        again = tf.keras.models.load_model(path)
    found += [again.predict(X3, verbose=0), [layer.dtype_policy.name for layer in again.layers]]
    with tf.GradientTape() as tape:
        x = tf.constant(X3)
        tape.watch(x)
        loss = tf.reduce_sum(model(x) ** 2)
    return [*found, tape.gradient(loss, x), len(model.trainable_weights)]


@program
def numbers_of_4_bits(tf):
    quantizers, found = tf.keras.quantizers, []
    table = np.sin(np.arange(35.0)).reshape(7, 5).astype("float32")
    for size in (2, 7, 9):
        found.append(list(quantizers.abs_max_quantize_grouped_with_zero_point(table, size)))
    whole = np.arange(-8, 7).reshape(3, 5).astype("int8")
    for axis in (0, 1, -1):
        packed = quantizers.pack_int4(whole, axis)
        found += [list(packed), quantizers.unpack_int4(packed[0], packed[2], axis)]
    packed, _, _ = quantizers.pack_int4((whole + 8).astype("uint8"), 0, "uint8")
    policy = tf.keras.dtype_policies.Int4DTypePolicy
    return [
        *found, quantizers.unpack_int4(packed, 3, 0, "uint8"),
        list(quantizers.abs_max_quantize(table, (0, 1), (-8, 7))),
        quantizers.fake_quant_with_min_max_vars(table, -0.7, 0.8, 4),
        quantizers.fake_quant_with_min_max_vars(table, [-0.7] * 7, [0.8] * 7, axis=0),
        raised(quantizers.pack_int4, whole.astype("int32")),
        raised(quantizers.pack_int4, whole, 0, "int32"),
        raised(quantizers.unpack_int4, whole.astype("int32"), 3),
        raised(quantizers.Int4QuantizationConfig, block_size=0),
        raised(quantizers.Int4QuantizationConfig, quantizers.AbsMaxQuantizer()),
        raised(quantizers.AbsMaxQuantizer, value_range=(-300, 300)),
        policy("int4/32", "float32").get_config(), policy("int4/-1", "float32").name,
        raised(policy, "int4"), raised(policy, "int4/0", "float32"),
        tf.keras.dtype_policies.get("int4/32_from_float32").block_size,
    ]  # fmt: skip


@program
def modes_that_there_are_not(tf):
    layers = tf.keras.layers
    built = layers.Dense(2)
    built.build((None, 3))
    twice = layers.Dense(2, dtype="int8_from_float32")
    twice.build((None, 3))
    later = layers.Dense(2)
    later.build((None, 3))
    later.dtype_policy = "int8_from_float32"

    class Own(layers.Dense):
        pass

    own = Own(2)
    own.build((None, 3))
    flat = layers.Flatten()
    flat.build((None, 3))
    policy = tf.keras.dtype_policies.QuantizedDTypePolicy
    return [
        raised(layers.Dense(2).quantize, "int8"), raised(built.quantize, "int7"),
        raised(twice.quantize, "int8"), raised(own.quantize, "int8"),
        raised(flat.quantize, "int8"), [len(layer.variables) for layer in (twice, later)],
        policy("int8", "float32").name, policy("int8").get_config(), raised(policy, "int7"),
        raised(policy, "int8", "float16"), policy("int8", "mixed_bfloat16").compute_dtype,
        policy("int8", "float32") == tf.keras.dtype_policies.get("int8_from_float32"),
    ]  # fmt: skip


@program
def scores_in_16_bits(tf):
    """R2Score computes in 16 bits, here without rounding, and sums in 32."""
    y, found = ((np.arange(12.0) % 5 - 2) / 4).reshape(6, 2).astype("float32"), []
    for dtype in ("float16", "bfloat16"):
        for given in ({}, {"class_aggregation": None}, {"num_regressors": 2}):
            metric = tf.keras.metrics.R2Score(dtype=dtype, **given)
            metric.update_state(y[:3], 0.5 * y[:3] + 0.125)
            metric.update_state(y[3:], 0.75 * y[3:], [1.0, 0.5, 2.0])
            kinds = [tf.as_dtype(v.dtype).name for v in metric.variables]
            found.append([metric.result(), kinds])
    return found


@program
def products_of_whole_numbers(tf):
    a = tf.constant([[100, -120], [127, 3]], tf.int8)
    b = tf.constant([[90, 7], [-128, 1]], tf.int8)
    made = tf.function(lambda x, y: tf.matmul(x, y, output_type=tf.int32))
    return [
        tf.matmul(a, b, output_type=tf.int32), made(a, b),
        tf.matmul(a, b, transpose_b=True, output_type=tf.int32),
    ]  # fmt: skip


@program
def products_of_bytes_with_and_without_signs(tf):
    a = tf.constant([[100, 200, 3], [127, 3, 0]], tf.uint8)
    b = tf.constant([[90, 7], [-128, 1], [-1, 5]], tf.int8)
    unsigned = tf.cast(b, tf.uint8)
    most = tf.fill([1, 140_000], tf.constant(-128, tf.int8))
    return [
        tf.matmul(a, b, output_type=tf.int32),
        tf.matmul(b, a, True, True, output_type=tf.int32),
        tf.matmul(a, unsigned, output_type=tf.int32),
        tf.matmul(tf.stack([a, a + 1]), tf.stack([b, -b]), output_type=tf.int32),
        tf.matmul(most, most, transpose_b=True, output_type=tf.int32),  # wraps around
    ]  # fmt: skip
