"""SavedModels that TensorFlow wrote: their objects, variables and functions.

A function of TensorFlow is traced again: its operations are called as functions of treadle
(`compat.tensorflow_ops`), so that it is compiled, differentiated and saved as all other functions
are. Reading runs no code of the files. The messages need the package protobuf, an extra:
``pip install 'treadle[graphdef]'``.
"""
