"""Native calls: one trampoline, driven by plans, takes a call from CPython to a compiled program.

`runtime.dispatch` knows of objects and programs only; `tracing.native_calls` writes the plans.
"""
