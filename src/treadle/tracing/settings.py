"""Switches of tracing."""

run_eagerly = False
