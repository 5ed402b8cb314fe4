"""Filters of images and signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numpy_programs.program import Program, rng


def convolve_image(image: Any, kernel: Any) -> Any:
    n, m = kernel.shape
    h, w = image.shape[0] - n + 1, image.shape[1] - m + 1
    out = np.zeros((h, w))
    for i in range(n):
        for j in range(m):
            out += kernel[i, j] * image[i : i + h, j : j + w]
    return out


def box_blur(image: Any, radius: int) -> Any:
    h, w = image.shape
    out = np.zeros_like(image)
    for i in range(h):
        for j in range(w):
            total = 0.0
            count = 0
            for a in range(max(0, i - radius), min(h, i + radius + 1)):
                for b in range(max(0, j - radius), min(w, j + radius + 1)):
                    total += image[a, b]
                    count += 1
            out[i, j] = total / count
    return out


def sobel(image: Any) -> Any:
    gx = (image[:-2, 2:] + 2.0 * image[1:-1, 2:] + image[2:, 2:]
          - image[:-2, :-2] - 2.0 * image[1:-1, :-2] - image[2:, :-2])  # fmt: skip
    gy = (image[2:, :-2] + 2.0 * image[2:, 1:-1] + image[2:, 2:]
          - image[:-2, :-2] - 2.0 * image[:-2, 1:-1] - image[:-2, 2:])  # fmt: skip
    return np.sqrt(gx * gx + gy * gy)


def recursive_filter(x: Any, a: float, b: float) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    y[1] = x[1]
    for i in range(2, x.shape[0]):
        y[i] = x[i] + a * y[i - 1] + b * y[i - 2]
    return y


def fir_filter(x: Any, taps: Any) -> Any:
    n = x.shape[0] - taps.shape[0] + 1
    y = np.zeros(n)
    for k in range(taps.shape[0]):
        y += taps[k] * x[k : k + n]
    return y


def dithering(image: Any) -> Any:
    h, w = image.shape
    for i in range(h - 1):
        for j in range(1, w - 1):
            old = image[i, j]
            new = 1.0 if old > 0.5 else 0.0
            error = old - new
            image[i, j] = new
            image[i, j + 1] += error * 0.4375
            image[i + 1, j - 1] += error * 0.1875
            image[i + 1, j] += error * 0.3125
            image[i + 1, j + 1] += error * 0.0625
    return image


def mandelbrot(xs: Any, ys: Any, limit: int) -> Any:
    out = np.zeros((ys.shape[0], xs.shape[0]), dtype=np.int64)
    for i in range(ys.shape[0]):
        for j in range(xs.shape[0]):
            c = complex(xs[j], ys[i])
            z = 0j
            count = 0
            while count < limit and z.real * z.real + z.imag * z.imag < 4.0:
                z = z * z + c
                count += 1
            out[i, j] = count
    return out


PROGRAMS = [
    Program(
        convolve_image, lambda n: (rng(n).random((n, n)), rng(n + 1).normal(size=(7, 7))), 300, 12
    ),
    Program(box_blur, lambda n: (rng(n).random((n, n)), 2), 150, 9),
    Program(sobel, lambda n: (rng(n).random((n, n)),), 600, 8),
    Program(recursive_filter, lambda n: (rng(n).normal(size=n), 0.5, -0.2), 50_000, 12),
    Program(
        fir_filter, lambda n: (rng(n).normal(size=n), rng(n + 1).normal(size=32)), 50_000, 50
    ),
    Program(dithering, lambda n: (rng(n).random((n, n)),), 200, 9),
    Program(
        mandelbrot,
        lambda n: (np.linspace(-2.0, 0.5, n), np.linspace(-1.2, 1.2, n), 60), 150, 8,
    ),
]  # fmt: skip
