"""``td.compat.as_tensorflow()``: programs and libraries that import TensorFlow get treadle.

`finder` finds the modules; `lookups` looks names of TensorFlow's private modules up in treadle's
public ones, and `private` has those that are found nowhere else. `structures` is TensorFlow's
private module `nest`, `composite_tensors` what classes of libraries derive from to be values that
are made of several tensors.
"""

# Whether `as_tensorflow` was called: an import of `compat.v1` says nothing of graphs then.
is_active = False
