"""Lists of tensors, growing Python lists in graphs, TensorArray and iterators of datasets."""
