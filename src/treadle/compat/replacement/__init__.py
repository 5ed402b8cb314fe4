"""``td.compat.as_tensorflow()``: programs and libraries that import TensorFlow get treadle.

`finder` finds the modules. `lookups` looks names of TensorFlow's private modules up in treadle's
public ones; `private` lists what is found nowhere else, which the other files define, by subject:
`structures` is TensorFlow's private module `nest`, and from `composite_tensors` classes of
libraries derive whose objects are several tensors. `absent` stands where libraries name what
treadle does not have.
"""

# Whether `as_tensorflow` was called: an import of `compat.v1` says nothing of graphs then.
is_active = False
