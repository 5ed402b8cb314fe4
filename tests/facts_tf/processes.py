"""Programs that run in a process of their own, which sets its devices up before anything else."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

from tests.facts_tf.registry import describe, outcome, program

_CODE = """\
import json, sys, {library} as library
from tests.facts_tf import processes
import {module}
print(json.dumps(processes.described({name!r}, library)))
"""
_FUNCTIONS = {}


def alone(function):
    """Mark a program that runs in a process of its own."""
    name = f"{function.__module__}.{function.__name__}"
    _FUNCTIONS[name] = function

    @functools.wraps(function)
    def run(tf):
        code = _CODE.format(library=tf.__name__, module=function.__module__, name=name)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    return program(run)


def described(name, tf):
    """What a program gives in this process, as JSON."""
    return describe(outcome(_FUNCTIONS[name], tf))
