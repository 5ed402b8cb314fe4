"""The op registry and the ops, a file per family."""
