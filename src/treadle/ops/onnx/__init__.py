"""How ops are written in ONNX: the forms of `Op.onnx`."""
