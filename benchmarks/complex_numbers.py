"""Complex numbers beside TensorFlow, NumPy and Numba: escape times, state vectors, transforms.

    python -m benchmarks.complex_numbers [--peers PYTHON] > docs/results/complex_numbers.json

Every library runs in a process of its own; the processes take turns, one call each, so that what
else the machine does meets them all. PYTHON is an interpreter that has TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.report import cpu_name

QUBITS = 14
ROUNDS = 25
GRID = 300
STEPS = 50


def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    state = rng.normal(size=2**QUBITS) + 1j * rng.normal(size=2**QUBITS)
    y, x = np.mgrid[-1.2 : 1.2 : GRID * 1j, -2 : 0.6 : GRID * 1j]
    return {
        "state": (state / np.linalg.norm(state)).astype(np.complex64),
        "angles": rng.uniform(0, 3, size=(2, QUBITS)).astype(np.float32),
        "grid": (x + 1j * y).astype(np.complex64),
        "x": x.astype(np.float32),
        "y": y.astype(np.float32),
        "signal": rng.normal(size=1024).astype(np.float32),
        "signals": (rng.normal(size=(64, 4096)) + 1j * rng.normal(size=(64, 4096))),
        "long": (rng.normal(size=2**18) + 1j * rng.normal(size=2**18)).astype(np.complex64),
    }


def tensor_programs(tf: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The programs in TensorFlow's names."""
    t = {k: tf.constant(v) for k, v in given.items()}

    def gates(state: Any, angles: Any) -> Any:
        for layer in range(2):
            for q in range(QUBITS):
                s = tf.reshape(state, [2**q, 2, 2 ** (QUBITS - q - 1)])
                half = angles[layer, q] / 2
                c = tf.cast(tf.cos(half), tf.complex64)
                d = tf.complex(tf.zeros([], tf.float32), -tf.sin(half))
                a, b = s[:, 0, :], s[:, 1, :]
                state = tf.reshape(tf.stack([c * a + d * b, d * a + c * b], 1), [-1])
        return state

    def products(state: Any, angles: Any) -> Any:
        for layer in range(2):
            for q in range(QUBITS):
                half = angles[layer, q] / 2
                c = tf.cast(tf.cos(half), tf.complex64)
                d = tf.complex(tf.zeros([], tf.float32), -tf.sin(half))
                gate = tf.stack([tf.stack([c, d]), tf.stack([d, c])])
                s = tf.reshape(state, [2**q, 2, 2 ** (QUBITS - q - 1)])
                state = tf.reshape(tf.einsum("ij,ajb->aib", gate, s), [-1])
        return state

    def escape(c: Any) -> Any:
        z, k = tf.zeros_like(c), tf.zeros(c.shape, tf.int32)
        for _ in tf.range(STEPS):
            inside = tf.abs(z) <= 2.0
            z = tf.where(inside, z * z + c, z)
            k = k + tf.cast(inside, tf.int32)
        return k

    def escape_in_parts(x: Any, y: Any) -> Any:
        a, b, k = tf.zeros_like(x), tf.zeros_like(x), tf.zeros(x.shape, tf.int32)
        for _ in tf.range(STEPS):
            inside = a * a + b * b <= 4.0
            a, b = tf.where(inside, a * a - b * b + x, a), tf.where(inside, 2.0 * a * b + y, b)
            k = k + tf.cast(inside, tf.int32)
        return k

    def point(start: Any) -> Any:
        total = 0
        for i in tf.range(300):
            c = start + tf.cast(tf.complex(tf.cast(i, tf.float64) * 1e-3, _zero(tf)), tf.complex128)
            z, k = c * 0, 0
            while tf.abs(z) <= 2.0 and k < 200:
                z = z * z + c
                k += 1
            total += k
        return total

    def point_in_parts(x: Any, y: Any) -> Any:
        total = 0
        for i in tf.range(300):
            cx = x + tf.cast(i, tf.float64) * 1e-3
            a, b, k = cx * 0, cx * 0, 0
            while a * a + b * b <= 4.0 and k < 200:
                a, b = a * a - b * b + cx, 2.0 * a * b + y
                k += 1
            total += k
        return total

    def transform(name: str) -> Any:
        if tf.__name__ == "treadle":
            return lambda x: getattr(np.fft, name)(x)
        return getattr(tf.signal, name)

    start = tf.constant(-0.9 + 0.25j, tf.complex128)
    start_x, start_y = tf.constant(-0.9, tf.float64), tf.constant(0.25, tf.float64)
    calls = {
        "gates by slices": (gates, t["state"], t["angles"]),
        "gates by einsum": (products, t["state"], t["angles"]),
        "escape times, array": (escape, t["grid"]),
        "escape times, array, in real parts": (escape_in_parts, t["x"], t["y"]),
        "escape times, scalar": (point, start),
        "escape times, scalar, in real parts": (point_in_parts, start_x, start_y),
        "rfft of 1024": (transform("rfft"), t["signal"]),
        "fft of 64 x 4096, complex128": (transform("fft"), t["signals"]),
        "fft of 2**18": (transform("fft"), t["long"]),
    }
    return {name: _bound(tf.function(call[0]), call[1:]) for name, call in calls.items()}


def _zero(tf: Any) -> Any:
    return tf.zeros([], tf.float64)


def _bound(function: Any, arguments: Any) -> Any:
    return lambda: np.asarray(function(*arguments))


def array_programs(given: dict[str, Any], compiled: bool) -> dict[str, Any]:
    """The programs for NumPy; `compiled`: as loops, by Numba."""

    def gates(state: Any, angles: Any, qubits: int) -> Any:
        for layer in range(2):
            for q in range(qubits):
                s, half = state.reshape(2**q, 2, -1), angles[layer, q] / 2
                c, d = np.complex64(np.cos(half)), np.complex64(-1j * np.sin(half))
                a, b = s[:, 0], s[:, 1]
                state = np.stack([c * a + d * b, d * a + c * b], 1).reshape(-1)
        return state

    def gate_loops(state: Any, angles: Any, qubits: int) -> Any:
        s = state.copy()
        for layer in range(2):
            for q in range(qubits):
                half = angles[layer, q] / 2
                c, d = np.complex64(np.cos(half)), np.complex64(-1j * np.sin(half))
                r = 1 << (qubits - q - 1)
                for i in range(1 << q):
                    for k in range(2 * r * i, 2 * r * i + r):
                        a, b = s[k], s[k + r]
                        s[k] = c * a + d * b
                        s[k + r] = d * a + c * b
        return s

    def escape(c: Any, steps: int) -> Any:
        z, k = np.zeros_like(c), np.zeros(c.shape, np.int32)
        for _ in range(steps):
            inside = np.abs(z) <= 2
            z = np.where(inside, z * z + c, z)
            k += inside
        return k

    def escape_loops(c: Any, steps: int) -> Any:
        k = np.zeros(c.shape, np.int32)
        for i in range(c.shape[0]):
            for j in range(c.shape[1]):
                z = c[i, j] * 0
                while abs(z) <= 2 and k[i, j] < steps:
                    z = z * z + c[i, j]
                    k[i, j] += 1
        return k

    def point(start: complex) -> int:
        total = 0
        for i in range(300):
            c = start + i * 1e-3
            z, k = 0j, 0
            while abs(z) <= 2.0 and k < 200:
                z = z * z + c
                k += 1
            total += k
        return total

    jit = _numba() if compiled else (lambda f: f)
    g, e, p = (
        jit(gate_loops if compiled else gates),
        jit(escape_loops if compiled else escape),
        (jit(point)),
    )
    found = {
        "gates by slices": lambda: g(given["state"], given["angles"], QUBITS),
        "escape times, array": lambda: e(given["grid"], STEPS),
        "escape times, scalar": lambda: p(-0.9 + 0.25j),
    }
    if not compiled:
        found |= {
            "rfft of 1024": lambda: np.fft.rfft(given["signal"]),
            "fft of 64 x 4096, complex128": lambda: np.fft.fft(given["signals"]),
            "fft of 2**18": lambda: np.fft.fft(given["long"]),
        }
    return found


def _numba() -> Any:
    import numba

    return numba.njit


def programs(library: str) -> dict[str, Any]:
    if library in ("numpy", "numba"):
        return array_programs(inputs(), library == "numba")
    if library == "treadle":
        import treadle as tf
    else:
        import tensorflow as tf
    return tensor_programs(tf, inputs())


def work(library: str) -> None:
    """Answer each name on a line with the seconds of one call, or "none"."""
    known = programs(library)
    print(json.dumps(sorted(known)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        begin = time.perf_counter()
        result = known[name]()
        seconds = time.perf_counter() - begin
        check = complex(np.sum(np.asarray(result, np.complex128)))
        print(json.dumps([seconds, check.real, check.imag]), flush=True)


class Worker:
    """A process that runs the programs of one library."""

    def __init__(self, python: str, library: str) -> None:
        command = [python, __file__, "--worker", library]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.names = set(self.read())

    def read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, name: str) -> tuple[float, complex]:
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        seconds, real, imag = self.read()
        return seconds, complex(real, imag)


def measure(workers: dict[str, Worker]) -> dict[str, Any]:
    """Medians and minima in milliseconds, by program and library."""
    names = list(tensor_names(workers))
    found: dict[str, Any] = {}
    for name in names:
        taking = {k: w for k, w in workers.items() if name in w.names}
        sums = {k: w.run(name)[1] for k, w in taking.items()}  # compiles
        times: dict[str, list[float]] = {k: [] for k in taking}
        for _ in range(ROUNDS):
            for k, w in taking.items():
                times[k].append(w.run(name)[0] * 1e3)
        wanted = sums["treadle"]
        assert all(abs(s - wanted) <= 2e-3 * max(1, abs(wanted)) for s in sums.values()), sums
        found[name] = {
            k: {"median_ms": round(sorted(t)[ROUNDS // 2], 4), "least_ms": round(min(t), 4)}
            for k, t in times.items()
        }
    return found


def tensor_names(workers: dict[str, Worker]) -> list[str]:
    return sorted(workers["treadle"].names)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker")
    parser.add_argument("--peers", default="")
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker)
        return
    workers = {k: Worker(sys.executable, k) for k in ("treadle", "numpy", "numba")}
    if arguments.peers:
        workers["tensorflow"] = Worker(arguments.peers, "tensorflow")
    report = {
        "processor": cpu_name(),
        "python": platform.python_version(),
        "calls": f"{ROUNDS} of each, in turns, one process a library; medians and least",
        "programs": measure(workers),
    }
    print(json.dumps(report, indent=1))
    for worker in workers.values():
        worker.process.kill()


if __name__ == "__main__":
    main()
