"""Random numbers: streams, distributions and the ops that draw them."""
