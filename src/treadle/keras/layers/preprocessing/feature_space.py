"""FeatureSpace: the columns of a table as the inputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import treadle as td
from treadle.keras import naming, serialization
from treadle.keras.layers.base import Layer
from treadle.keras.layers.core import Identity
from treadle.keras.layers.inputs import Input
from treadle.keras.layers.merging import Concatenate
from treadle.keras.layers.preprocessing.categories import (
    CategoryEncoding,
    Discretization,
    HashedCrossing,
    Hashing,
)
from treadle.keras.layers.preprocessing.scaling import Normalization, Rescaling
from treadle.keras.layers.preprocessing.vocabularies import IntegerLookup, StringLookup

_PLACE = "keras.src.layers.preprocessing.feature_space"  # of Keras's files
_MODES = ("int", "one_hot", "float")


def _checked(mode: str, modes: Sequence[str]) -> str:
    if mode not in modes:
        raise ValueError(
            f"Invalid value for argument `output_mode`. Expected one of {set(modes)}. Received: "
            f"output_mode={mode}"
        )
    return mode


class Cross:
    """Columns whose values together are a category.

    Args:
        feature_names: of the columns.
        crossing_dim: the number of categories that their hash gives.
        output_mode: "int" or "one_hot".
    """

    _saved_as = (_PLACE, "Cross")

    def __init__(
        self, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot"
    ) -> None:
        self.feature_names, self.crossing_dim = tuple(feature_names), crossing_dim
        self.output_mode = _checked(output_mode, _MODES[:2])

    @property
    def name(self) -> str:
        """The names of the columns, joined by ``_X_``."""
        return "_X_".join(self.feature_names)

    def get_config(self) -> dict[str, Any]:
        """The arguments, as plain data."""
        return {
            "feature_names": self.feature_names, "crossing_dim": self.crossing_dim,
            "output_mode": self.output_mode,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Cross:
        """A cross from what `get_config` gave."""
        return cls(**config)


class Feature:
    """A column and the layer that prepares it.

    Args:
        dtype: of the column.
        preprocessor: the layer, or its config.
        output_mode: "int", "one_hot" or "float": what stands for the layer's results.
    """

    _saved_as = (_PLACE, "Feature")

    def __init__(self, dtype: Any, preprocessor: Any, output_mode: str) -> None:
        self.dtype = dtype
        if isinstance(preprocessor, Mapping):
            if preprocessor.get("class_name") == "TFDIdentity":  # Keras's name in this place
                preprocessor = Identity.from_config(dict(preprocessor["config"]))
            else:
                preprocessor = serialization.deserialize_keras_object(dict(preprocessor))
        self.preprocessor = preprocessor
        self.output_mode = _checked(output_mode, _MODES)

    def get_config(self) -> dict[str, Any]:
        """The arguments, as plain data."""
        return {
            "dtype": self.dtype, "output_mode": self.output_mode,
            "preprocessor": serialization.serialize_keras_object(self.preprocessor),
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Feature:
        """A feature from what `get_config` gave."""
        return cls(**config)


class FeatureSpace(Layer):
    """Prepares and encodes the columns of a table, which come as a dict.

    A call takes a dict of columns, of one row (scalars) or of a batch of rows, and gives their
    encodings. Layers that learn from data do so in `adapt`.

    Args:
        features: for each column by its name a kind: "float", "float_normalized",
            "float_rescaled", "float_discretized", "integer_categorical", "string_categorical",
            "integer_hashed" or "string_hashed"; or what the methods of these names give.
        output_mode: "concat": one float row for an example, the columns in the order of their
            names, then the crosses; "dict": the encodings by their names.
        crosses: tuples of names of columns whose values together are a category; or what
            `FeatureSpace.cross` gives.
        crossing_dim: how many categories the hash of a cross has.
        hashing_dim: how many categories the hash of a column has.
        num_discretization_bins: how many intervals "float_discretized" has.

    Raises:
        ValueError: there are no features, a kind or mode is not known, or a cross names no column.
    """

    has_shape_rule: ClassVar[bool] = False
    _takes_any_config: ClassVar[bool] = True

    def __init__(
        self,
        features: Mapping[str, Any],
        output_mode: str = "concat",
        crosses: Sequence[Any] | None = None,
        crossing_dim: int | None = 32,
        hashing_dim: int = 32,
        num_discretization_bins: int = 32,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not features:
            raise ValueError("The `features` argument cannot be None or empty.")
        self.crossing_dim, self.hashing_dim = crossing_dim, hashing_dim
        self.num_discretization_bins = num_discretization_bins
        self.features = {key: self._as_feature(key, value) for key, value in features.items()}
        self.crosses = [self._as_cross(cross) for cross in crosses or ()]
        self.output_mode = _checked(output_mode, ("concat", "dict"))
        self.inputs = {
            key: Input(shape=(1,), dtype=feature.dtype, name=key)
            for key, feature in self.features.items()
        }
        self.preprocessors = {key: f.preprocessor for key, f in self.features.items()}
        self.crossers = {c.name: HashedCrossing(c.crossing_dim, name=c.name) for c in self.crosses}
        self.one_hot_encoders: dict[str, CategoryEncoding] = {}
        self.concat = Concatenate(axis=-1)
        self.encoded_features: Any = None
        self._is_adapted = not self._learning()

    # -- the kinds of features -------------------------------------------------------------------

    @classmethod
    def cross(
        cls, feature_names: Sequence[str], crossing_dim: int, output_mode: str = "one_hot"
    ) -> Cross:
        """Columns whose values together are a category, hashed to one of `crossing_dim`."""
        return Cross(feature_names, crossing_dim, output_mode)

    @classmethod
    def feature(cls, dtype: Any, preprocessor: Any, output_mode: str) -> Feature:
        """A column of a dtype that a layer of the program prepares.

        Args:
            output_mode: "float" or "int": what the layer gives; "one_hot" encodes ints of layers
                whose number of categories is known.
        """
        return Feature(dtype, preprocessor, output_mode)

    @classmethod
    def float(cls, name: str | None = None) -> Feature:
        """Floats as they are."""
        return Feature("float32", Identity(dtype="float32", name=_named("float", name)), "float")

    @classmethod
    def float_rescaled(
        cls, scale: Any = 1.0, offset: Any = 0.0, name: str | None = None
    ) -> Feature:
        """Floats times `scale` plus `offset`."""
        layer = Rescaling(scale, offset, name=_named("float_rescaled", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_normalized(cls, name: str | None = None) -> Feature:
        """Floats of mean 0 and variance 1."""
        layer = Normalization(axis=-1, name=_named("float_normalized", name))
        return Feature("float32", layer, "float")

    @classmethod
    def float_discretized(
        cls, num_bins: int, bin_boundaries: Any = None, output_mode: str = "one_hot",
        name: str | None = None,
    ) -> Feature:  # fmt: skip
        """Floats as the interval that each is in."""
        place = _named("float_discretized", name)
        if bin_boundaries is None:
            layer = Discretization(num_bins=num_bins, name=place)
        else:
            layer = Discretization(bin_boundaries, name=place)
        return Feature("float32", layer, output_mode)

    @classmethod
    def integer_categorical(
        cls, max_tokens: int | None = None, num_oov_indices: int = 1,
        output_mode: str = "one_hot", name: str | None = None,
    ) -> Feature:  # fmt: skip
        """Ints as their places in a vocabulary."""
        layer = IntegerLookup(
            max_tokens=max_tokens, num_oov_indices=num_oov_indices,
            name=_named("integer_categorical", name),
        )  # fmt: skip
        return Feature("int32", layer, output_mode)

    @classmethod
    def string_categorical(
        cls, max_tokens: int | None = None, num_oov_indices: int = 1,
        output_mode: str = "one_hot", name: str | None = None,
    ) -> Feature:  # fmt: skip
        """Strings as their places in a vocabulary."""
        layer = StringLookup(
            max_tokens=max_tokens, num_oov_indices=num_oov_indices,
            name=_named("string_categorical", name),
        )  # fmt: skip
        return Feature("string", layer, output_mode)

    @classmethod
    def string_hashed(
        cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """Strings as a hash below `num_bins`."""
        return Feature("string", Hashing(num_bins, name=_named("string_hashed", name)), output_mode)

    @classmethod
    def integer_hashed(
        cls, num_bins: int, output_mode: str = "one_hot", name: str | None = None
    ) -> Feature:
        """Ints as a hash below `num_bins`."""
        return Feature("int32", Hashing(num_bins, name=_named("integer_hashed", name)), output_mode)

    def _as_feature(self, name: str, given: Any) -> Feature:
        if isinstance(given, Feature):
            return given
        if isinstance(given, Mapping):
            return Feature.from_config(dict(given["config"]))
        bins = {
            "float_discretized": self.num_discretization_bins,
            "integer_hashed": self.hashing_dim, "string_hashed": self.hashing_dim,
        }  # fmt: skip
        if given in bins:
            made: Feature = getattr(self, given)(bins[given], name=name)
            return made
        if given not in (
            "float", "float_normalized", "float_rescaled", "integer_categorical",
            "string_categorical",
        ):  # fmt: skip
            raise ValueError(f"Invalid feature type: {given}")
        made = getattr(self, given)(name=name)
        return made

    def _as_cross(self, given: Any) -> Cross:
        if isinstance(given, Cross):
            return given
        if isinstance(given, Mapping):
            return Cross.from_config(dict(given["config"]))
        if not self.crossing_dim:
            raise ValueError(
                "When specifying `crosses`, the argument `crossing_dim` (dimensionality of the "
                "crossing space) should be specified as well."
            )
        if any(name not in self.features for name in given):
            raise ValueError(
                "All features referenced in the `crosses` argument should be present in the "
                f"`features` dict. Received unknown features: {given}"
            )
        return Cross(given, self.crossing_dim)

    # -- learning from data ----------------------------------------------------------------------

    def _learning(self) -> list[str]:
        """The columns whose layers need data."""
        return [key for key, layer in self.preprocessors.items() if _needs_data(layer)]

    def adapt(self, dataset: Any) -> None:
        """Let the layers that need it learn from data.

        Args:
            dataset: a Dataset of dicts of columns, of rows or of batches of them; or a dict of
                arrays or lists.

        Raises:
            ValueError: it is something else.
        """
        if isinstance(dataset, Mapping):
            dataset = td.data.Dataset.from_tensor_slices(dict(dataset))
        if not isinstance(dataset, td.data.Dataset):
            raise ValueError(
                "`adapt()` can only be called on a tf.data.Dataset or a dict of arrays/lists. "
                f"Received instead: {dataset} (of type {type(dataset)})"
            )
        for key in self._learning():
            column = dataset.map(lambda row, key=key: row[key])
            rank = len(column.element_spec.shape)
            if rank == 0:
                column = column.batch(32)
            if rank < 2:
                column = column.map(lambda x: td.expand_dims(x, -1))
            self.preprocessors[key].adapt(column)
        self._is_adapted = True
        self.get_encoded_features()

    def _check_adapted(self) -> None:
        if not self._is_adapted:
            raise ValueError(
                "You need to call `.adapt(dataset)` on the FeatureSpace before you can start using "
                "it."
            )

    # -- encoding --------------------------------------------------------------------------------

    def get_inputs(self) -> dict[str, Any]:
        """A `keras.Input` for each column, by its name; shape [batch, 1]."""
        self._check_adapted()
        self.get_encoded_features()
        return self.inputs

    def get_encoded_features(self) -> Any:
        """The encodings of `get_inputs`, of which a model can be made.

        Raises:
            ValueError: a layer still needs data, or an encoding is an int or a string where all are
                joined.
        """
        self._check_adapted()
        if self.encoded_features is None:
            self.encoded_features = self._encoded(self.inputs)
            self.built = True
        return self.encoded_features

    def _encoded(self, columns: Mapping[str, Any]) -> Any:
        """The encodings of columns [batch, n]."""
        found = {key: self.preprocessors[key](columns[key]) for key in columns}
        crossed = {
            cross.name: self.crossers[cross.name]([found[key] for key in cross.feature_names])
            for cross in self.crosses
        }
        modes = {key: feature.output_mode for key, feature in self.features.items()}
        modes |= {cross.name: cross.output_mode for cross in self.crosses}
        layers = self.preprocessors | self.crossers
        encoded = {}
        for key in [*sorted(found), *sorted(crossed)]:
            value = found[key] if key in found else crossed[key]
            if modes[key] == "one_hot":
                value = self._one_hot(key, layers[key])(self._ints(key, value))
            encoded[key] = value
        if self.output_mode == "dict":
            return encoded
        for key, value in encoded.items():
            dtype = td.as_dtype(value.dtype)
            if dtype.is_integer or dtype == td.string:
                raise ValueError(
                    f"Cannot concatenate features because feature '{key}' has not been encoded (it "
                    f"has dtype {dtype.name}). Consider using `output_mode='dict'`."
                )
        values = list(encoded.values())
        return self.concat(values) if len(values) > 1 else values[0]

    @staticmethod
    def _ints(key: str, value: Any) -> Any:
        if not td.as_dtype(value.dtype).is_integer:
            raise ValueError(
                f"Feature '{key}' has `output_mode='one_hot'`. Thus its preprocessor should return "
                f"an integer dtype. Instead it returns a {td.as_dtype(value.dtype).name} dtype."
            )
        return value

    def _one_hot(self, key: str, layer: Any) -> CategoryEncoding:
        """The layer that encodes what `layer` gives for a column."""
        if key not in self.one_hot_encoders:
            count = _categories(layer)
            if count is None:
                raise ValueError(
                    f"Feature '{key}' has `output_mode='one_hot'`. However it isn't a standard "
                    "feature and the dimensionality of its output space is not known, thus it "
                    "cannot be one-hot encoded. Try using `output_mode='int'`."
                )
            self.one_hot_encoders[key] = CategoryEncoding(count, output_mode="multi_hot")
        return self.one_hot_encoders[key]

    def __call__(self, data: Any) -> Any:
        self._check_adapted()
        if not isinstance(data, Mapping):
            raise ValueError(
                "A FeatureSpace can only be called with a dict. Received: data="
                f"{data} (of type {type(data)})"
            )
        self.get_encoded_features()
        columns = {key: _as_column(value) for key, value in data.items()}
        is_row = any(len(x.shape) == 0 for x in columns.values())
        encoded = self._encoded({key: _of_rows(x) for key, x in columns.items()})
        if not is_row:
            return encoded
        if self.output_mode == "concat":
            return td.squeeze(encoded, 0)
        return {key: td.squeeze(x, 0) if x.shape[0] == 1 else x for key, x in encoded.items()}

    # -- files -----------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        return {
            "features": serialization.serialize_keras_object(self.features),
            "output_mode": self.output_mode,
            "crosses": serialization.serialize_keras_object(self.crosses),
            "crossing_dim": self.crossing_dim, "hashing_dim": self.hashing_dim,
            "num_discretization_bins": self.num_discretization_bins,
        }  # fmt: skip

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> FeatureSpace:
        """A FeatureSpace from what `get_config` gave."""
        return cls(**config)

    def get_build_config(self) -> dict[str, Any]:
        """What the layers of columns are built from, by the columns' names."""
        return {key: layer.get_build_config() for key, layer in self.preprocessors.items()}

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Build the layers of columns as they were; what they learned comes from the file."""
        for key, shapes in config.items():
            if shapes and not self.preprocessors[key].built:
                self.preprocessors[key].build_from_config(shapes)
        self._is_adapted = True

    def save(self, filepath: Any) -> None:
        """Write a ``.keras`` archive, which `keras.models.load_model` reads.

        Raises:
            ValueError: another ending.
        """
        td.keras.models.save_model(self, filepath)  # type: ignore[arg-type]


def _named(kind: str, name: str | None) -> str:
    return f"{name or naming.unique_name(kind)}_preprocessor"


def _needs_data(layer: Any) -> bool:
    """Whether a layer has to learn from data what a program did not give it."""
    wants = getattr(layer, "_wants_data", None)
    return hasattr(layer, "adapt") if wants is None else bool(wants())


def _categories(layer: Any) -> int | None:
    """How many ints a layer gives; None where that is not known."""
    counts: list[tuple[Any, Callable[[Any], int | None]]] = [
        ((IntegerLookup, StringLookup), lambda x: x.vocabulary_size()),
        (CategoryEncoding, lambda x: x.num_tokens),
        (Discretization, lambda x: x.num_bins or len(x.bin_boundaries) + 1),
        ((HashedCrossing, Hashing), lambda x: x.num_bins),
    ]
    return next((count(layer) for kind, count in counts if isinstance(layer, kind)), None)


def _as_column(value: Any) -> Any:
    """A column as a tensor; ragged and sparse ones as they are."""
    if isinstance(value, td.Tensor | td.RaggedTensor | td.SparseTensor):
        return value
    return td.convert_to_tensor(value if isinstance(value, list | tuple) else np.asarray(value))


def _of_rows(column: Any) -> Any:
    """A column with an axis of rows and one for what a row has."""
    if len(column.shape) == 0:
        return td.reshape(column, (1, 1))
    return td.expand_dims(column, -1) if len(column.shape) == 1 else column
