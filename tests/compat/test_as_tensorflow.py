"""`td.compat.as_tensorflow`: a library that imports TensorFlow, its private modules among them, in
a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import treadle

LIBRARY = '''
"""Written for TensorFlow, as libraries of distributions are."""
import functools

import tensorflow as tf
import tensorflow.compat.v1 as tf1
import tensorflow.compat.v2 as tf2
import tf_keras
import tf_keras.api._v1.keras as keras1
from tensorflow import keras
from tensorflow.keras.layers import Dense
from tensorflow.python.autograph.pyct import transformer
from tensorflow.python.client import device_lib
from tensorflow.python.framework import composite_tensor, ops, test_util, type_spec
from tensorflow.python.framework import type_spec_registry
from tensorflow.python.framework.ops import convert_to_tensor
from tensorflow.python.ops import array_ops, control_flow_util, math_ops
from tensorflow.python.util import (
    deprecation, nest, object_identity, tf_decorator, tf_inspect)


class ScaledSpec(type_spec.BatchableTypeSpec):
    def __init__(self, scale_spec, offset):
        self._scale_spec, self._offset = scale_spec, offset

    @property
    def value_type(self):
        return Scaled

    def _serialize(self):
        return self._scale_spec, self._offset

    @property
    def _component_specs(self):
        return {"scale": self._scale_spec}

    def _to_components(self, value):
        return {"scale": value.scale}

    def _from_components(self, components):
        return Scaled(components["scale"], self._offset)


type_spec_registry.register("tests.ScaledSpec")(ScaledSpec)


CACHED = tf.Variable(1.0)


class Scaled(tf.Module, composite_tensor.CompositeTensor):
    _TF_MODULE_IGNORED_PROPERTIES = tf.Module._TF_MODULE_IGNORED_PROPERTIES.union(("cached",))

    def __init__(self, scale, offset):
        super().__init__(name="scaled")
        assert tf.is_tensor(scale) or isinstance(scale, float), scale  # as libraries refuse specs
        self.scale = scale if isinstance(scale, tf.Variable) else tf.convert_to_tensor(scale)
        self.offset = self._no_dependency(offset)
        self.cached = [CACHED]

    @property
    def _type_spec(self):
        return ScaledSpec(tf.type_spec_from_value(tf.convert_to_tensor(self.scale)), self.offset)

    @deprecation.deprecated("2020-01-01", "says nothing here")
    def __call__(self, x):
        return x * self.scale + self.offset


class Rewriter(transformer.Base):
    """Of no use here; the module that has it can be imported all the same."""
'''
PROGRAM = '''
import functools
import importlib.metadata
import pickle

import treadle

treadle.compat.as_tensorflow()
treadle.compat.as_tensorflow()  # again: nothing
import library
import tensorflow as tf

library.tf2.enable_v2_behavior()
assert tf.executing_eagerly() and "enable_v2_behavior" in dir(library.tf2)
assert tf is treadle and library.keras is treadle.keras and library.tf2.add(1, 2) == 3
assert tf.executing_eagerly()  # also with compat.v1 imported
assert type(tf.constant(1.0)).__module__.split(".")[0] == "tensorflow"
assert float(pickle.loads(pickle.dumps(tf.constant(2.0)))) == 2.0
assert library.tf_keras is treadle.keras and library.Dense is treadle.keras.layers.Dense
assert library.keras1.layers.Dense
with tf.Graph().as_default():
    of_a_graph = library.tf1.Variable(1.0)
from tensorflow.python.ops.resource_variable_ops import is_resource_variable
assert is_resource_variable(of_a_graph) and is_resource_variable(tf.Variable(1.0))
assert not is_resource_variable(tf.constant(1.0))
assert float(library.tf1.div(tf.constant(4.0), 2.0)) == 2.0
assert library.math_ops.reduce_sum is tf.reduce_sum
assert isinstance(tf.constant(1), library.ops.EagerTensor)
assert not library.control_flow_util.GraphOrParentsInXlaContext(None)
assert library.tf_inspect.getfullargspec(tf.rank).args == ["input", "name"]


class Takes:
    def method(self, a, b=2, *, c=3, **more):
        pass


@functools.wraps(Takes.method)
def filled_in(self):
    """It has fewer arguments than what it wraps, as tests have whose parameters are given."""


assert library.tf_inspect.getfullargspec(filled_in).args == ["self"]
wrapper = library.tf_decorator.make_decorator(Takes.method, lambda *args: None)
assert library.tf_inspect.getfullargspec(wrapper).args == ["self", "a", "b"]
arguments = library.tf_inspect.getargspec(Takes().method)
assert arguments == (["self", "a", "b", "c"], None, "more", (2, 3)) and arguments.keywords == "more"
calling = library.tf_inspect.getcallargs(Takes().method, 5, d=4)
assert isinstance(calling.pop("self"), Takes) and calling == {"a": 5, "b": 2, "c": 3, "d": 4}
# Libraries derive variables from several private classes, and give them operators by themselves.
import abc
from tensorflow.python.ops import tensor_getitem_override
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.types.core import Tensor as TensorType


class OfBoth(type(tf.Variable), abc.ABCMeta):
    pass


class Doubled(ResourceVariable, TensorType, metaclass=OfBoth):
    __getitem__ = tensor_getitem_override._slice_helper_var

    def value(self):
        return super().value() * 2.0


doubled = Doubled([1.0, 2.0])
assert float(doubled[1]) == 4.0 and float(doubled._dense_var_to_tensor()[0]) == 2.0
doubled[1:].assign([5.0])
assert doubled.numpy().tolist() == [1.0, 5.0]
assert isinstance(tf.constant(1.0), TensorType) and isinstance(doubled, TensorType)
assert not isinstance(1.0, TensorType) and not isinstance(tf.constant(1.0), Doubled)
tf.function(lambda: 1)._descriptor_cache.clear()
(processor,) = library.device_lib.list_local_devices()
assert (processor.name, processor.device_type) == ("/device:CPU:0", "CPU")
assert processor.memory_limit > 0 and library.tf1.control_flow_v2_enabled()
assert tf.__internal__.CompositeTensor is library.composite_tensor.CompositeTensor
assert isinstance(tf.ragged.constant([[1], []]), library.composite_tensor.CompositeTensor)
try:
    from tensorflow.python.ops.math_ops import no_such_function
except ImportError:
    pass
else:
    raise AssertionError("a name that treadle does not have")
try:
    library.Rewriter()
except NotImplementedError as error:
    assert "transformer.Base" in str(error)
else:
    raise AssertionError("a part of AutoGraph")

# What packages say of their versions, and which operations XLA's private module has.
assert importlib.metadata.version("tensorflow") == tf.__version__ == "2.21.0"
assert importlib.metadata.version("tf-keras").startswith("2.")
assert "tensorflow" in importlib.metadata.packages_distributions()
from tensorflow.compiler.tf2xla.python import xla
part = xla.dynamic_slice(tf.range(5), [4], [2])
assert part.numpy().tolist() == [3, 4]
part = xla.dynamic_update_slice(tf.range(5), tf.constant([7, 8]), tf.constant([1]))
assert part.numpy().tolist() == [0, 7, 8, 3, 4]

# A class of the library is a structure: arguments, results, variables of loops, nested ones.
scaled = library.Scaled(2.0, 1)


@tf.function
def call(value, x):
    assert isinstance(value, library.Scaled) and value.offset == 1
    return value(x), library.Scaled(value.scale + 1.0, 5)


y, other = call(scaled, tf.constant(3.0))
assert float(y) == 7.0 and isinstance(other, library.Scaled)
assert float(other.scale) == 3.0 and other.offset == 5
call(library.Scaled(4.0, 1), tf.constant(3.0))
assert call.experimental_get_tracing_count() == 1
_, last = tf.while_loop(
    lambda i, _: i < 3, lambda i, value: (i + 1, library.Scaled(value.scale * 2.0, 1)), (0, scaled)
)
assert float(last.scale) == 16.0
looped = tf.function(lambda value: tf.while_loop(
    lambda i, _: i < 3, lambda i, v: (i + 1, library.Scaled(v.scale * 2.0, 1)), (0, value)))
assert float(looped(scaled)[1].scale) == 16.0
assert tf.nest.flatten(scaled) == [scaled]
assert [float(t) for t in tf.nest.flatten(scaled, expand_composites=True)] == [2.0]
assert tf.type_spec_from_value(scaled) == tf.type_spec_from_value(library.Scaled(9.0, 1))
assert tf.type_spec_from_value(scaled) != tf.type_spec_from_value(other)
assert tf.type_spec_from_value(scaled).is_compatible_with(library.Scaled(9.0, 1))
wide = library.Scaled(tf.ones([2]), 1)._type_spec.most_specific_common_supertype(
    [library.Scaled(tf.ones([3]), 1)._type_spec])
assert wide._scale_spec.shape.as_list() == [None]
assert scaled._type_spec.most_specific_common_supertype([other._type_spec]) is None

# It is a module, too: what it holds is found, but for what it says is not its own.
class Holder(tf.Module):
    def __init__(self):
        super().__init__()
        self.parts = [library.Scaled(tf.Variable(2.0), 1)]


holder = Holder()
assert [m.name for m in holder.submodules] == ["scaled"], holder.submodules
assert len(holder.trainable_variables) == 1 and len(scaled.variables) == 0
with tf.GradientTape() as tape:
    loss = holder.parts[0](3.0)
assert float(tape.gradient(loss, holder.trainable_variables[0])) == 3.0

assert list(holder._flatten(predicate=lambda leaf: isinstance(leaf, library.Scaled),
                            with_path=True)) == [(("parts", 0), holder.parts[0])]
assert len(list(holder._flatten(recursive=False))) == 3  # its name, its scope and its part
identities = library.object_identity
several = identities.ObjectIdentitySet([y, y, tf.constant(1.0)])
named = identities.ObjectIdentityDictionary({1: 2})
named[y] = "a tensor"
assert y in several and len(several) == 2 and named[y] == "a tensor" and len(named) == 2
assert identities.Reference(y) == y.ref() and identities.Reference(y).deref() is y
several.remove(y)
del named[y]
assert y not in several and y not in named

# Tensors keep attributes, as long as they are there.
tensor = tf.constant(1.0)
tensor._my_library = "noted"
assert tensor._my_library == "noted" and not hasattr(tf.constant(1.0), "_my_library")
try:
    tensor.dtype = tf.int32
except AttributeError:
    pass
else:
    raise AssertionError("a property")
print("all is as with TensorFlow")
'''

NAMING = '''
"""A library that names more of TensorFlow than it uses, and asks for private things of its own."""
import functools
from typing import Optional, Union

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.values import DistributedVariable as Replicated
from tensorflow.python.eager import context
from tensorflow.python.framework import ops, tensor_spec
from tensorflow.python.keras.callbacks import Callback
from tensorflow.python.layers import utils
from tensorflow.python.ops.distributions import util
from tensorflow.python.platform import gfile
from tensorflow.python.trackable import base
from tensorflow.python.training import moving_averages
from tensorflow.python.types import core
from tensorflow.python.util import function_utils

SIZES = {tf.float32: 4, tf.qint8: 1, tf.quint16: 2, tf.variant: 0}
Rates = Union[float, tf.tpu.experimental.embedding.SGD]


class Table(tf.tpu.experimental.embedding.TPUEmbedding):
    """For other devices."""


class ArraySpec:
    shape, dtype, name = (2,), np.dtype("int32"), None


def group(*operations: Optional[tf.Operation]):
    return [o for o in operations if isinstance(o, tf.Operation)]
'''
NAMED = '''
import collections

import treadle

treadle.compat.as_tensorflow()
import naming
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

assert naming.SIZES[tf.float32] == 4 and len(naming.SIZES) == 4
from tensorflow.python.data.util import nest as of_data

Point = collections.namedtuple("Point", "x y")
given = Point([1, 2], {"b": [3], "a": (4, [])})
assert of_data.flatten(given) == [[1, 2], 4, [], [3]]
assert of_data.map_structure(len, Point([1], ([], [2]))) == Point(1, (0, 1))
assert of_data.pack_sequence_as(given, list("abcd")) == Point("a", {"b": "d", "a": ("b", "c")})
assert of_data.flatten_up_to((1, 1), ([1], (2, [3]))) == [[1], (2, [3])]
assert of_data.map_structure_up_to((0, 0), lambda a, b: (a, b), (1, [2]), ((3,), 4)) == (
    (1, (3,)), ([2], 4)
)
assert not of_data.is_nested([1]) and of_data.is_nested((1,))
for wrong in (lambda: of_data.assert_same_structure((1, [2]), (1, (2,))),
              lambda: of_data.pack_sequence_as((1, 2), [1])):
    try:
        wrong()
    except (TypeError, ValueError):
        continue
    raise AssertionError(wrong)
assert naming.group(None, 1) == [] and hasattr(tf.tpu.experimental, "HardwareFeature")
for call, name in [
    (tf.tpu.experimental.initialize_tpu_system, "tensorflow.tpu.experimental.initialize"),
    (naming.Table, "TPUEmbedding"),
]:
    try:
        call()
    except NotImplementedError as error:
        assert name in str(error), error
    else:
        raise AssertionError(name)
assert not hasattr(naming.Table, "no_such_attribute") and not hasattr(tf, "no_such_module")

# Private functions.
assert naming.Callback is tf.keras.callbacks.Callback
with tf.name_scope("outer"), tf.device("CPU:0"):
    here = naming.context.context()
    assert here.executing_eagerly() and here.scope_name == "outer/"
    assert here.device_spec.device_type == "CPU"
assert naming.context.context().scope_name == ""
assert naming.context.context().device_spec.device_type is None
assert naming.utils.smart_cond(True, lambda: 1, lambda: 2) == 1
assert naming.util.gen_new_seed(12, "salt") == 1046305183
assert naming.util.gen_new_seed(None, "salt") is None
assert naming.gfile.Exists(naming.__file__)
average = tf.Variable([1.0, 2.0])
naming.moving_averages.assign_moving_average(average, tf.constant([3.0, 4.0]), 0.75, False)
assert average.numpy().tolist() == [1.5, 2.5]
class Calls:
    def __call__(self, x, y): ...
    def method(self, z): ...
args = naming.function_utils.fn_args
assert args(Calls()) == ("x", "y") and args(Calls().method) == ("z",)
assert args(naming.functools.partial(lambda a, b, c: 0, 1, c=2)) == ("b",)

# Specs with bounds.
Bounded = naming.tensor_spec.BoundedTensorSpec
spec = Bounded([2, 3], tf.int32, 0, [5, 6, 7], "actions")
assert isinstance(spec, tf.TensorSpec) and spec.maximum.tolist() == [5, 6, 7]
assert spec == Bounded([2, 3], tf.int32, 0, [5, 6, 7], "actions") and hash(spec)
assert spec != Bounded([2, 3], tf.int32, 1, [5, 6, 7], "actions")
assert Bounded.from_spec(spec) == spec
assert Bounded.from_spec(tf.TensorSpec([], tf.int8)).minimum == -128
assert Bounded.from_spec(naming.ArraySpec()).maximum == 2**31 - 1
assert tf.function(lambda x: x + 1, input_signature=[spec])(np.ones([2, 3], np.int32))[0, 0] == 2
try:
    Bounded([2, 3], tf.int32, [0, 0], 1)
except ValueError as error:
    assert "not compatible" in str(error)
else:
    raise AssertionError("bounds that do not broadcast")

# A compiler is asked for in TensorFlow's ways.
(doubled,) = tf.xla.experimental.compile(lambda x: x * 2, [tf.constant(3)])
assert int(doubled) == 6
with tf.xla.experimental.jit_scope():
    assert [int(x) for x in tf.xla.experimental.compile(lambda: [tf.constant(1), 2])] == [1, 2]

# Attributes of variables, private ones of TensorFlow's among them.
variable = tf.Variable(1.0)
variable._trainable = False
assert not variable.trainable and not variable._trainable
variable.noted = "by a library"
assert variable.noted == "by a library" and not hasattr(tf.Variable(1.0), "noted")


class Kept(tf.Variable, naming.core.Tensor):
    """A variable that keeps its value itself."""

    trainable = property(lambda self: self._trainable)

    def __init__(self, value, trainable):
        self.kept, self._trainable = value, trainable


assert Kept(1.0, False).trainable is False and Kept(1.0, True)._trainable is True
assert isinstance(Kept(1.0, True), Kept) and not isinstance(variable, Kept)
assert isinstance(tf.constant(1), naming.core.Tensor) and isinstance(variable, naming.core.Tensor)
assert not isinstance(1, naming.core.Tensor) and not isinstance(variable, naming.Replicated)


class Rounded(tf.Variable, naming.core.Tensor):
    """A variable around another, whose value is rounded where it is read."""

    def __init__(self, variable):
        self.latent = variable

    def __getattr__(self, name):
        return getattr(self.latent, name)

    def value(self):
        return tf.round(self.latent.value())

    read_value = value

    def _dense_var_to_tensor(self, *args, **kwargs):
        return tf.round(self.latent._dense_var_to_tensor(*args, **kwargs))


Rounded._OverloadAllOperators()
tf.register_tensor_conversion_function(Rounded, Rounded._dense_var_to_tensor)
rounded = Rounded(tf.Variable([1.4, 2.6], name="own"))
assert (rounded + 1.0).numpy().tolist() == [2.0, 4.0] and rounded._shared_name == "own"
assert (2.0 * rounded).numpy().tolist() == [2.0, 6.0] and not rounded._in_graph_mode
assert tf.reduce_sum(rounded).numpy() == 4.0 and rounded.shape == (2,)
assert tf.function(lambda: rounded * 2.0)().numpy().tolist() == [2.0, 6.0]
assert naming.ops.numpy_text(rounded.read_value(), is_repr=True) == (
    "array([1., 3.], dtype=float32)")


class Watched(tf.Module):
    """Its attributes are changed where they are asked for, as a mixed precision of weights does."""

    def __getattribute__(self, name):
        assert not name.startswith("__d"), name
        return super().__getattribute__(name)


class Arrays(naming.base.Trackable):
    """It takes arrays and nothing else."""

    def __setattr__(self, name, value):
        assert isinstance(value, np.ndarray), name
        super().__setattr__(name, value)


arrays = Arrays()
assert arrays._track_trackable(np.ones(2), "kept") is arrays.kept
with Watched().name_scope as scope:
    assert scope == "watched/"
assert tf1.control_flow_v2_enabled()
print("all is as with TensorFlow")
'''

# Libraries for Keras 2, and what is found in Keras's private modules and TensorFlow 1's.
KERAS_2 = '''
import treadle

treadle.compat.as_tensorflow()
import tensorflow as tf
import tensorflow.compat.v2.keras as keras2
import h5py
from keras.src import backend
from keras.src.backend import get_keras_mask, set_keras_mask
from keras.src.distribution import distribution_lib
from keras.src.engine import base_layer
from keras.src.losses import losses
from keras.src.losses.losses import LossFunctionWrapper
from keras.src.ops import *
from tensorflow import estimator
from tensorflow.estimator import ModeKeys
from keras.engine.topology import Input as OlderInput, get_source_inputs
from keras.layers.merge import concatenate
from tensorflow.keras.utils.generic_utils import CustomObjectScope
from keras.utils.np_utils import to_categorical
from tensorflow.python.keras.layers import Dense
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops
from tf_keras.src.saving import serialization_lib

assert tf is treadle and tf.keras.version().startswith("2.")
assert keras2.layers.Dense is Dense is tf.keras.layers.Dense
assert backend is tf.keras.backend and add is tf.keras.ops.add
assert base_layer.Layer is tf.keras.layers.Layer
assert distribution_lib.distribution() is None is get_keras_mask(tf.ones(3))
assert LossFunctionWrapper(keras2.losses.mse)([1.0], [3.0]) == 4.0
assert losses.LossFunctionWrapper is LossFunctionWrapper in keras2.losses.Huber.__mro__
masked = tf.ones(2)
set_keras_mask(masked, tf.constant([True, False]))
assert get_keras_mask(masked).numpy().tolist() == [True, False]
assert serialization_lib.deserialize_keras_object is tf.keras.saving.deserialize_keras_object
assert estimator.ModeKeys is ModeKeys and ModeKeys.TRAIN == "train"
assert tf.feature_column.numeric_column("x").key == "x" and tf.executing_eagerly()
with tf.Graph().as_default(), ops.name_scope(None, "outer", [1.0]) as scope:
    open_batch = array_ops.placeholder(tf.float32, shape=[None, 2], name="x")
    assert (scope, open_batch.name) == ("outer/", "outer/x:0")
    assert open_batch.shape.as_list() == [None, 2]
assert array_ops.shape_internal(tf.sparse.eye(3), out_type=tf.int64).numpy().tolist() == [3, 3]


class Wrapped(tf.keras.layers.Wrapper):
    """A layer around a layer, as it was written for Keras 2."""

    def __init__(self, layer):
        super().__init__(layer)
        self._track_trackable(layer, name="layer")
        self.count = tf.Variable(0, trainable=False)

    def call(self, x):
        self.add_update(lambda: self.count.assign_add(1))
        self.add_update(self.count)
        self.add_loss(tf.reduce_sum(x))
        return self.layer(x)

    @property
    def losses(self):
        return self.layer.losses + self._losses


wrapped = Wrapped(Dense(2, kernel_regularizer="l2"))
wrapped(tf.ones([1, 3]))
assert int(wrapped.count) == 1 and len(wrapped.losses) == 2 and float(wrapped.losses[1]) == 3.0

# TensorFlow's functions are steps of functional models.
x = tf.keras.Input((4, 6))
y = tf.reshape(tf.nn.relu(x), [tf.shape(x)[0], 24])
y = tf.concat([y, tf.reduce_sum(x, axis=1)], axis=-1)
z = Dense(5, kernel_initializer="ones", name="out")(y)
z = tf.where(z > 2.0, z, tf.zeros_like(z)) + tf.cast(tf.argmax(z, -1), tf.float32)[:, None]
parts = tf.split(z, [2, 3], axis=1)
model = tf.keras.Model(x, [backend.mean(z, axis=-1), *parts])
assert [tuple(o.shape) for o in model.outputs] == [(None,), (None, 2), (None, 3)]
array = tf.reshape(tf.range(24.0) / 4 - 2, (1, 4, 6))
mean, first, _ = model(array)
assert abs(float(mean[0]) - 51.0) < 1e-4 and abs(float(first[0, 1]) - 51.0) < 1e-4
assert "tf.nn.relu" in [layer.name for layer in model.layers]
again = tf.keras.Model.from_config(model.get_config())
assert abs(float(again(array)[0][0]) - 51.0) < 1e-4
assert z._keras_history.tensor_index == 0 and y._keras_history.layer.name == "tf.concat"

row = tf.keras.Sequential([tf.keras.Input((2,)), Dense(2, name="first"), Dense(1, name="last")])
assert [w.name for w in row.weights][::2] == ["first/kernel:0", "last/kernel:0"]


parts = tf.keras.regularizers
for module, value in ((tf.keras.layers, Dense(2)), (parts, parts.L2(0.5))):
    for legacy in (True, False):
        data = module.serialize(value, use_legacy_format=legacy)
        assert ("module" in data) is not legacy or module is tf.keras.regularizers
        again = module.deserialize(data, use_legacy_format=legacy)
        assert again.get_config() == value.get_config()


class Scaled(tf.keras.layers.Layer):
    def build(self, shape):
        self.by, self.weight = tf.constant(2.0), self.add_weight("by", shape=[], initializer="ones")

    def call(self, x):
        return self.by * self.weight * x


class Around(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = Scaled()

    def call(self, x):
        return self.inner(x)


around = Around()
assert tf.function(around)(tf.constant(3.0)).numpy() == 6.0
assert around(tf.constant(4.0)).numpy() == 8.0 and around.inner.by.numpy() == 2.0
assert [w.name for w in around.weights] == ["around/scaled/by:0"], around.weights[0].name


class Followed(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.sum = tf.keras.metrics.Sum()

    def call(self, x):
        self.add_metric(self.sum(x))
        self.add_metric(tf.reduce_mean(x), name="center")
        return x


followed = Followed()
followed(tf.constant([1.0, 3.0]))
followed(tf.constant([4.0]))
assert [float(m.result()) for m in followed._metrics] == [8.0, 3.0], followed._metrics
weight = tf.Variable([1.0, 2.0])
weight.set_shape([None])
assert weight._unique_id == weight._unique_id != tf.Variable([1.0, 2.0])._unique_id

# Weights are named and kept in files as Keras 2 does it, by which libraries find them.
class Block(tf.keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(dynamic=True, **kwargs)
        self.inner = Dense(1, name="inner")

    def build(self, shape):
        with tf.name_scope("table"):
            self.table = self.add_weight("weight", shape=[2])
        self.built = True

    def call(self, x):
        return self.inner(x) * self.table


class Whole(tf.keras.Model):
    def __init__(self):
        super().__init__(name="whole")
        self.block = Block(name="block")
        self._set_save_spec([tf.TensorSpec([1, 2])])

    def call(self, x):
        return self.block(x)


whole = Whole()
whole(tf.ones([1, 2]))
assert [w.name for w in whole.weights] == [
    "whole/block/table/weight:0", "whole/block/inner/kernel:0", "whole/block/inner/bias:0"
], [w.name for w in whole.weights]
assert whole.weights[0].value().shape == [2]
whole.save_weights("weights.h5")
with h5py.File("weights.h5") as file:
    assert [n.decode() if isinstance(n, bytes) else n for n in file["block"].attrs["weight_names"]
            ][0] == "whole/block/table/weight:0"
again = Whole()
again(tf.ones([1, 2]))
again.load_weights("weights.h5")
assert (again.weights[0].numpy() == whole.weights[0].numpy()).all()
normed = tf.keras.layers.Conv1D(1, 2)
normed.build([1, 4, 1])
normed.kernel = tf.ones([2, 1, 1])  # as layers that compute their kernels do
assert normed(tf.ones([1, 4, 1])).numpy().tolist() == [[[2.0]] * 3]

signature = Dense(4).compute_output_signature(tf.TensorSpec([None, 3]))
assert signature == tf.TensorSpec([None, 4]), signature
spaces = tf.keras.optimizers
assert spaces.experimental.Adam is spaces.Adam and spaces.legacy.Adam is not spaces.Adam
assert type(spaces.get("sgd", use_legacy_optimizer=True)) is spaces.legacy.SGD
assert type(spaces.get("sgd")) is spaces.SGD
told = {"class_name": "Adam", "config": {"learning_rate": 0.5, "name": "Adam"}}
assert float(spaces.deserialize(told, use_legacy_optimizer=True).lr) == 0.5
assert spaces.legacy.Adam(0.5, decay=0.1).get_config()["decay"] == 0.1

model = tf.keras.Sequential([wrapped])
assert not model._is_graph_network
assert tf.keras.Sequential([tf.keras.Input([3]), wrapped])._is_graph_network
try:
    from keras.src.layers.core.dense import Dense, NoSuchLayer
except ImportError:
    pass
else:
    raise AssertionError("a layer that Keras does not have")
from tensorflow.python.ops.rnn_cell import *

assert LSTMCell is tf.compat.v1.nn.rnn_cell.LSTMCell


class Inner(tf.keras.layers.Layer):
    """Says its shape, but neither its dtype nor what the layer in it keeps."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = tf.keras.layers.Dense(2)

    def call(self, x):
        return tf.cast(self.dense(x), tf.int64)

    def compute_output_shape(self, shape):
        return shape


model = tf.keras.Sequential([Inner(batch_input_shape=(5, 2))])
assert model.output.dtype == tf.int64 and tuple(model.input.shape) == (5, 2)
assert len(model.get_weights()) == 2
with tf.keras.backend.name_scope("SGD/gradients"):
    assert tf.Variable(1.0, name="v").name == "SGD/gradients/v:0"
print("all is as with Keras 2")
'''


def _run(
    program: str, folder: Path, *args: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(treadle.__file__).parents[1]), str(folder)])
    return subprocess.run(
        [sys.executable, "-c", program, *args], cwd=folder,
        env=os.environ | environment | {"PYTHONPATH": paths},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_library_for_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    done = _run(PROGRAM, tmp_path)
    assert done.stdout == "all is as with TensorFlow\n", done.stderr


def test_what_libraries_name_but_do_not_use(tmp_path: Path) -> None:
    (tmp_path / "naming.py").write_text(NAMING)
    done = _run(NAMED, tmp_path)
    assert done.stdout == "all is as with TensorFlow\n", done.stderr


def test_libraries_for_keras_2(tmp_path: Path) -> None:
    done = _run(KERAS_2, tmp_path, TF_USE_LEGACY_KERAS="1")
    assert done.stdout == "all is as with Keras 2\n", done.stderr


def test_after_tensorflow_itself_it_is_too_late(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("")
    program = "import tensorflow, treadle\ntreadle.compat.as_tensorflow()"
    done = _run(program, tmp_path)
    assert "RuntimeError: as_tensorflow: tensorflow was imported before" in done.stderr


TENSORBOARD = """
import treadle
treadle.compat.as_tensorflow()
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.plugins.hparams import api as hp, metadata
from pathlib import Path

UNITS = hp.HParam("units", hp.Discrete([4, 8]))
model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
callbacks = [tf.keras.callbacks.TensorBoard("run"), hp.KerasCallback("run", {UNITS: 4})]
model.fit(tf.ones([8, 3]), tf.ones([8, 1]), verbose=0, callbacks=callbacks)
found = {}
for file in Path("run").glob("events*"):
    for event in EventFileLoader(str(file)).Load():
        found |= {v.tag: v.metadata.plugin_data for v in event.summary.value}
started = metadata.parse_session_start_info_plugin_data(
    found[metadata.SESSION_START_INFO_TAG].content
)
assert started.hparams["units"].number_value == 4
ended = metadata.parse_session_end_info_plugin_data(found[metadata.SESSION_END_INFO_TAG].content)
assert ended.status == 1

summary = tf.compat.v1.Summary(
    value=[tf.compat.v1.Summary.Value(tag="t", tensor=tf.make_tensor_proto([1.0, 2.0]))]
)
kinds = tf.compat.v1.SessionLog.CHECKPOINT, tf.compat.v1.LogMessage.WARN
assert summary.value[0].WhichOneof("value") == "tensor" and kinds == (3, 30)
print("done")
"""


def test_tensorboards_plugin_for_hyperparameters(tmp_path: Path) -> None:
    done = _run(TENSORBOARD, tmp_path)
    assert done.stdout == "done\n", done.stderr


GRAPH_CASES = """
import sys, unittest
import treadle
treadle.compat.as_tensorflow()
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import test_util


@test_util.run_all_in_deprecated_graph_mode_only
class InGraphs(tf.test.TestCase):
    def test_gradients(self):
        x = tf.constant([1.0, 2.0])
        (slope,) = tf.gradients(x * x, x)
        assert not hasattr(x, "numpy") and not tf.executing_eagerly()
        self.assertAllEqual(self.evaluate(slope), [2.0, 4.0])
        self.assertAllClose(slope, [2.0, 4.0])

    def test_values_stay_from_session_to_session(self):
        count = tf.Variable(1.0)
        with self.cached_session() as session:
            session.run(count.initializer)
        self.evaluate(count.assign_add(1.0))
        with self.test_session() as session:
            assert session.run(count) == 2.0


class Both(tf.test.TestCase):
    @test_util.deprecated_graph_mode_only
    def test_in_a_graph(self):
        assert not context.executing_eagerly() and not context.context().executing_eagerly()
        with context.eager_mode():
            assert tf.constant(1.0).numpy() == 1.0 and tf.executing_eagerly()

    @test_util.run_v1_only("not in TensorFlow 2")
    def test_of_tensorflow_1(self):
        raise AssertionError

    def test_at_once(self):
        assert tf.executing_eagerly() and self.evaluate(tf.constant(1.0)) == 1.0
        with context.graph_mode():
            assert not tf.executing_eagerly() and not hasattr(tf.constant(1.0), "numpy")
        with self.test_session() as session:
            assert session.run(tf.constant(2.0)) == 2.0
        part = tf.Variable([1.0, 2.0, 3.0])
        tf.compat.v1.assign(part[0], 5.0)
        tf.compat.v1.assign_sub(part[1:], [1.0, 1.0])
        assert part.numpy().tolist() == [5.0, 1.0, 2.0]


unittest.main()
"""


def test_cases_that_tensorflow_runs_in_graphs(tmp_path: Path) -> None:
    done = _run(GRAPH_CASES, tmp_path)
    assert "OK (skipped=3)" in done.stderr, done.stderr


CASES = """
import sys
if sys.argv[1] == "eager":
    import treadle
    treadle.compat.as_tensorflow()
    import tensorflow.compat.v1 as tf
else:
    import treadle.compat.v1 as tf
import unittest


class Cases(tf.test.TestCase):
    def test_values(self):
        doubled = tf.constant([1.0, 2.0]) * 2.0
        with self.session():
            self.assertAllClose(doubled, [2.0, 4.0])
            self.assertAllEqual({"a": doubled}, {"a": tf.constant([2.0, 4.0])})
            self.assertAllEqual(self.evaluate(doubled), [2.0, 4.0])
            with self.assertRaises(AssertionError):
                self.assertAllClose(doubled, [2.0, 5.0])
        self.assertEqual(tf.executing_eagerly(), sys.argv[1] == "eager")


unittest.main(argv=sys.argv[:1])
"""


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_cases_of_tests_with_sessions_and_without(tmp_path: Path, mode: str) -> None:
    (tmp_path / "cases.py").write_text(CASES)
    done = _run("import runpy; runpy.run_path('cases.py', run_name='__main__')", tmp_path, mode)
    assert "OK (skipped=1)" in done.stderr and done.returncode == 0, done.stderr


MESSAGES = """
import treadle
tf = treadle.compat.as_tensorflow()
from tensorflow.core.example import example_pb2, feature_pb2

feature = feature_pb2.Feature(int64_list=feature_pb2.Int64List(value=[3]))
example = example_pb2.Example(features=feature_pb2.Features(feature={"a": feature}))
print(treadle.train.Example.FromString(example.SerializeToString()) == example)
"""


def test_messages_of_examples_by_their_private_modules(tmp_path: Path) -> None:
    done = _run(MESSAGES, tmp_path)
    assert done.stdout == "True\n", done.stderr
