"""Generated convolutions: implicit matrix products over the tiles of `runtime.cpu.matmul`."""
