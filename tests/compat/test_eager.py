"""The first release of eager execution, in a process of its own: it is a setting of the process."""

import subprocess
import sys
from pathlib import Path
from typing import Any


def test_eager_program(tmp_path: Any) -> None:
    program = Path(__file__).with_name("eager_program.py")
    found = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert found.stdout == "done\n", found.stderr
