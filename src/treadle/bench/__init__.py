"""Timing a function eager against graph."""

from .benchmark import BenchmarkResult, benchmark

__all__ = ["BenchmarkResult", "benchmark"]
