"""Functions whose syntax only newer Pythons have; loaded by version."""

from __future__ import annotations

import importlib
import sys

if sys.version_info >= (3, 12):
    importlib.import_module("tests.corpus.newer.python312")
if sys.version_info >= (3, 13):
    importlib.import_module("tests.corpus.newer.python313")
