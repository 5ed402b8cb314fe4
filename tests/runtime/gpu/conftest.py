"""Kernels for GPUs are compiled and emulated here, which takes long."""

import os
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent) + os.sep


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # of all folders
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.thorough)
