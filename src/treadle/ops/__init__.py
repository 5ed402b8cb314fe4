"""The op registry and the mechanism that all ops share; the ops are in a folder per family."""
