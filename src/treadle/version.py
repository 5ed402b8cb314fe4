"""The version of the package, read by the build and shown as `treadle.__version__`.

It begins with the release of TensorFlow whose names and recorded behaviour treadle follows:
programs compare the number before they choose a name.
"""

__version__ = "2.21.0"

# TensorFlow's names (``td.version``).
VERSION = __version__
GIT_VERSION = f"v{__version__}"
