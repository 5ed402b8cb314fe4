"""NumPy's functions, methods and protocols on tensors.

Importing `protocols` puts them on Tensor and Variable. The functions themselves are loaded when
NumPy first meets a symbolic tensor.
"""
