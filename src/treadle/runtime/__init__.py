"""Executes and lowers graphs."""
