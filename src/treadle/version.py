"""The version of the package, read by the build and shown as `treadle.__version__`."""

__version__ = "0.1.0"

# TensorFlow's names (``td.version``).
VERSION = __version__
GIT_VERSION = f"v{__version__}"
