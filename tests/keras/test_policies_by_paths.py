"""DTypePolicyMap: layers that were given one have the policies of their paths, also from files."""

import numpy as np
import pytest

import treadle as td

keras = td.keras
policies = keras.dtype_policies


@keras.saving.register_keras_serializable("test_policies_by_paths")
class Both(keras.layers.Layer):
    def __init__(self, dtype=None, name="both", **kwargs):
        super().__init__(dtype=dtype, name=name, **kwargs)
        self.one = keras.layers.Dense(8, dtype=dtype, name="one")
        self.two = keras.layers.Dense(2, dtype=dtype, name="two")

    def call(self, x):
        return self.two(self.one(x))

    def get_config(self):
        found = policies.DTypePolicyMap()
        for layer in self._flatten_layers():
            if layer.quantization_mode is not None:
                found[layer.path] = layer.dtype_policy
        return super().get_config() | ({"dtype": found} if len(found) else {})


def test_layers_in_a_layer_have_policies_of_their_own(tmp_path):
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    start = keras.Input((4,))
    model = keras.Model(start, Both()(start))
    model.quantize("int8", filters=lambda layer: layer.name == "one")
    wanted = model(x)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    both = again.layers[1]
    assert both.one.kernel.dtype == td.int8 and both.two.kernel.dtype == td.float32
    np.testing.assert_array_equal(again(x), wanted)
    given = policies.DTypePolicyMap("float32", {"m/.*": policies.get("bfloat16")})
    layer = keras.layers.Dense(2, dtype=given, name="d")
    with keras.name_scope("m"):
        layer.build((None, 4))
    assert layer.dtype == layer.compute_dtype == "bfloat16"
    assert layer.dtype_policy is given and keras.layers.Dense(2, dtype=given).dtype == "float32"


def test_a_map_as_a_dict_and_as_data():
    found = policies.DTypePolicyMap("mixed_bfloat16", {"a": policies.get("float32")})
    found["b/.*"] = "int8_from_float32"
    assert list(found) == ["a", "b/.*"] and len(found) == 2 and "b/x" not in found
    assert found["b/x"].name == "int8_from_float32" and found["c"].name == "mixed_bfloat16"
    again = policies.deserialize(policies.serialize(found))
    assert dict(again.items()) == dict(found.items()) and again.default_policy.name == found[
        "c"
    ].name
    without = policies.DTypePolicyMap(policy_map={"a": policies.get("bfloat16")})
    assert policies.deserialize(policies.serialize(without))["a"].name == "float32"
    found["b/y.*"] = "float32"
    with pytest.raises(ValueError, match="multiple dtype policy"):
        found["b/y"]
    with pytest.raises(ValueError, match="already exist"):
        found["a"] = "float32"
    with pytest.raises(ValueError, match="Cannot interpret"):
        found["e"] = 3
    with pytest.raises(TypeError, match="must be a dict"):
        policies.DTypePolicyMap(policy_map=3)
    assert found.pop("a").name == "float32"
    with pytest.raises(KeyError):
        del found["a"]
