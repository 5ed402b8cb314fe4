"""Gradients: the tape, reverse mode, custom gradients, control flow, numeric checking."""
