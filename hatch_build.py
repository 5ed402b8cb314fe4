"""Compiles the machine code that a wheel of treadle carries (`treadle.runtime.cpu.shipping`)."""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedCode(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the archives into the source tree, where git ignores them and wheels pick them up."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        command = "import sys; sys.path.insert(0, 'src'); import runpy; "
        command += "runpy.run_module('treadle.runtime.cpu.shipping', run_name='__main__')"
        done = subprocess.run(
            [sys.executable, "-c", command], cwd=Path(self.root), capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"the code that comes with treadle was not compiled:\n{done.stderr}")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Compress the wheel as far as its format goes: hatchling takes the default."""
        if self.target_name != "wheel":
            return
        with zipfile.ZipFile(artifact_path) as wheel:
            members = [(info, wheel.read(info)) for info in wheel.infolist()]
        with zipfile.ZipFile(artifact_path, "w") as wheel:
            for info, data in members:
                wheel.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
