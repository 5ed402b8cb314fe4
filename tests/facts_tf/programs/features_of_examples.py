"""td.io.parse_example and its like with all kinds of features, and sparse tensors as strings."""

from __future__ import annotations

import numpy as np

from tests.facts_tf.registry import outcome, program


def feature(tf, values):
    t = tf.train
    if not values:
        return t.Feature()
    if isinstance(values[0], bytes):
        return t.Feature(bytes_list=t.BytesList(value=values))
    if isinstance(values[0], float):
        return t.Feature(float_list=t.FloatList(value=values))
    return t.Feature(int64_list=t.Int64List(value=values))


def example(tf, **features):
    t = tf.train
    found = {name: feature(tf, values) for name, values in features.items()}
    return t.Example(features=t.Features(feature=found)).SerializeToString()


def sequence(tf, context, **lists):
    t = tf.train
    own = t.Features(feature={name: feature(tf, values) for name, values in context.items()})
    found = {
        name: t.FeatureList(feature=[feature(tf, values) for values in steps])
        for name, steps in lists.items()
    }
    message = t.SequenceExample(context=own, feature_lists=t.FeatureLists(feature_list=found))
    return message.SerializeToString()


def ways(tf, function, given, *args):
    """What a function of strings gives eagerly and in a function, and what datasets make of it."""
    traced = tf.function(lambda x: function(x, *args))
    dataset = tf.data.Dataset.from_tensors(given).map(lambda x: function(x, *args))
    return [
        outcome(lambda: function(given, *args)),
        outcome(lambda: traced(tf.constant(given))),
        outcome(lambda: next(iter(dataset))),
    ]


@program
def fixed_and_of_any_length(tf):
    io = tf.io
    given = [
        example(tf, a=[1, 2], b=[b"x"], c=[1.5], d=[7, 8, 9], h=[0.5]),
        example(tf, a=[3, 4], c=[2.5, 3.5]),
        example(tf, a=[5, 6], b=[b"y", b"z"], d=[]),
    ]
    features = {
        "a": io.FixedLenFeature([2], tf.int64),
        "b": io.VarLenFeature(tf.string),
        "c": io.FixedLenSequenceFeature([], tf.float32, allow_missing=True, default_value=-1.0),
        "d": io.RaggedFeature(tf.int64),
        "e": io.FixedLenFeature([], tf.string, "none"),
        "f": io.RaggedFeature(tf.float32, value_key="h", row_splits_dtype=tf.int64),
    }
    return [
        ways(tf, io.parse_example, given, features),
        ways(tf, io.parse_single_example, given[2], features),
        ways(tf, io.parse_single_example, given[0], {"b": io.VarLenFeature(tf.string)}),
        outcome(io.parse_example, given, {"q": io.FixedLenFeature([1], tf.int64)}),
        outcome(io.parse_example, given, {"a": io.VarLenFeature(tf.float32)}),
        outcome(io.parse_example, [given[0][:-1]], {"a": io.VarLenFeature(tf.int64)}),
        outcome(io.parse_example, given, {"a": io.FixedLenFeature([None], tf.int64)}),
        outcome(io.parse_example, given, {"a": tf.int64}),
        outcome(io.parse_example, given, {"a": io.VarLenFeature(tf.int32)}),
        outcome(io.parse_example, given, {"e": io.FixedLenFeature([2], tf.int64, [1, 2])}),
        outcome(io.parse_example, given, {"e": io.FixedLenFeature([2], tf.int64, 4)}),
    ]


@program
def sparse_features(tf):
    io = tf.io
    given = [
        example(tf, ix=[3, 1], v=[0.5, 1.5], row=[0, 2], kept=[1]),
        example(tf, kept=[2]),
        example(tf, ix=[2], v=[2.5], row=[1], kept=[3]),
    ]
    one = io.SparseFeature("ix", "v", tf.float32, 5)
    more = {
        "s": one,
        "kept": io.FixedLenFeature([], tf.int64),
        "m": io.SparseFeature(["row", "ix"], "v", tf.float32, [3, 5]),
    }
    return [
        ways(tf, io.parse_example, given, {"s": one}),
        ways(tf, io.parse_example, given, more),
        ways(tf, io.parse_single_example, given[0], more),
        ways(tf, io.parse_single_example, given[1], {"s": one}),
        outcome(io.parse_example, given, {"s": io.SparseFeature("ix", "v", tf.float32, 5, True)}),
        outcome(
            io.parse_example,
            [example(tf, ix=[1, 2], v=[0.5])],
            {"s": io.SparseFeature("ix", "v", tf.float32, 5)},
        ),
        outcome(
            io.parse_example, given, {"s": io.SparseFeature(["row", "ix"], "v", tf.float32, 5)}
        ),
        list(one),
        one.already_sorted,
    ]


@program
def partitions_of_ragged_features(tf):
    io, ragged = tf.io, tf.io.RaggedFeature
    given = [
        example(
            tf,
            v=[1, 2, 3, 4],
            splits=[0, 1, 4],
            lengths=[1, 3],
            limits=[1, 4],
            starts=[0, 1],
            ids=[0, 1, 1, 1],
            outer=[2],
        ),
        example(tf, v=[], splits=[0], outer=[]),
        example(
            tf,
            v=[5, 6],
            splits=[0, 0, 2],
            lengths=[0, 2],
            limits=[0, 2],
            starts=[0, 0],
            ids=[1, 1],
            outer=[1, 1],
        ),
    ]
    kinds = {
        "splits": ragged(tf.int64, "v", [ragged.RowSplits("splits")]),
        "lengths": ragged(tf.int64, "v", [ragged.RowLengths("lengths")]),
        "limits": ragged(tf.int64, "v", [ragged.RowLimits("limits")]),
        "starts": ragged(tf.int64, "v", [ragged.RowStarts("starts")]),
        "ids": ragged(tf.int64, "v", [ragged.ValueRowIds("ids")]),
        "uniform": ragged(tf.int64, "v", [ragged.UniformRowLength(2)]),
        "deep": ragged(tf.int64, "v", [ragged.RowLengths("outer"), ragged.RowLengths("lengths")]),
        "deep_uniform": ragged(
            tf.int64, "v", [ragged.RowLengths("lengths"), ragged.UniformRowLength(1)]
        ),
    }
    other = {
        "uniform_deep": ragged(
            tf.int64, "v", [ragged.UniformRowLength(2), ragged.RowLengths("lengths")], tf.int64
        ),
    }
    return [
        [ways(tf, io.parse_example, given, {name: kinds[name]}) for name in kinds],
        [ways(tf, io.parse_single_example, given[0], {name: kinds[name]}) for name in kinds],
        outcome(io.parse_example, given, kinds),
        outcome(io.parse_example, given, other),
        outcome(io.parse_single_example, given[2], kinds),
        outcome(io.parse_single_example, given[0], other),
        outcome(
            io.parse_example,
            given,
            {"x": ragged(tf.int64, "v", [ragged.RowLengths("outer")], validate=True)},
        ),
        outcome(ragged, tf.int64, "v", [3]),
        outcome(ragged, tf.int64, "v", "row"),
        outcome(ragged, tf.int64, row_splits_dtype=tf.float32),
        list(ragged(tf.int64, "v", [ragged.RowSplits("k")])[:2]),
        ragged(tf.int64).row_splits_dtype,
        ragged(tf.int64).validate,
        ragged.RowSplits("k").key,
        ragged.UniformRowLength(3).length,
    ]


@program
def lists_of_any_length(tf):
    io = tf.io
    given = [
        sequence(
            tf,
            {"n": [1]},
            z=[[1], [2, 3]],
            t=[[1, 2], [], [3]],
            w=[[b"a"], [b"b", b"c"]],
            u=[[1.0]],
        ),
        sequence(tf, {"n": [2]}),
        sequence(tf, {"n": [3]}, t=[[4]], w=[[]]),
    ]
    context = {"n": io.FixedLenFeature([], tf.int64), "m": io.VarLenFeature(tf.string)}
    lists = {
        "t": io.VarLenFeature(tf.int64),
        "w": io.RaggedFeature(tf.string),
        "u": io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        "again": io.RaggedFeature(tf.int64, value_key="z", row_splits_dtype=tf.int64),
    }
    return [
        ways(tf, io.parse_sequence_example, given, context, lists),
        ways(tf, io.parse_single_sequence_example, given[0], context, lists),
        ways(tf, io.parse_single_sequence_example, given[1], context, lists),
        outcome(io.parse_sequence_example, given, None, {"t": io.FixedLenFeature([], tf.int64)}),
        outcome(io.parse_sequence_example, given, None, {"t": io.VarLenFeature(tf.float32)}),
        outcome(io.parse_single_sequence_example, given, context, lists),
        outcome(io.parse_sequence_example, given, context),
        outcome(
            io.parse_sequence_example,
            given[:1],
            None,
            {"t": io.RaggedFeature(tf.int64, partitions=[io.RaggedFeature.UniformRowLength(1)])},
        ),
        outcome(
            io.parse_sequence_example,
            [sequence(tf, {}, v=[[1, 2, 3], [4]], k=[[1, 2], [1]])],
            None,
            {"v": io.RaggedFeature(tf.int64, "v", [io.RaggedFeature.RowLengths("k")])},
        ),
        outcome(
            io.parse_single_sequence_example,
            sequence(tf, {}, v=[[1, 2, 3], [4]], k=[[1, 2], [1]]),
            None,
            {"v": io.RaggedFeature(tf.int64, "v", [io.RaggedFeature.RowLengths("k")])},
        ),
    ]


@program
def sparse_tensors_as_strings(tf):
    io = tf.io
    sparse = tf.sparse.from_dense([[0, 1, 0], [2, 0, 3]])
    texts = tf.sparse.from_dense(["", "a", "b"])
    one, many = io.serialize_sparse(sparse), io.serialize_many_sparse(sparse)
    pair = tf.stack([io.serialize_sparse(texts), io.serialize_sparse(texts)])
    return [
        one.dtype,
        one.shape,
        many.shape,
        io.parse_tensor(one[0], tf.int64),
        io.parse_tensor(one[1], tf.int32),
        io.parse_tensor(one[2], tf.int64),
        io.deserialize_many_sparse(many, tf.int32),
        io.deserialize_many_sparse(many, tf.int32, 2),
        io.deserialize_many_sparse(pair, tf.string),
        io.deserialize_many_sparse(tf.stack([one, one]), tf.int32),
        outcome(io.deserialize_many_sparse, many, tf.float32),
        outcome(io.deserialize_many_sparse, [["a", "b", "c"]], tf.int32),
        outcome(io.serialize_sparse, [1, 2]),
        outcome(io.serialize_sparse, sparse, out_type=tf.int32),
        tf.function(lambda s: io.deserialize_many_sparse(io.serialize_many_sparse(s), tf.int32))(
            sparse
        ),
        [len(x) > 0 for x in np.ravel(many.numpy())],
    ]
