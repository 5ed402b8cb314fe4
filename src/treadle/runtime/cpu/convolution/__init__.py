"""Generated convolutions: implicit matrix products over the tiles of `runtime.cpu.matmul`."""

# The ops: a convolution, and its gradients to the images and to the filters.
FORWARD, TO_INPUT, TO_FILTER = "conv2d", "conv2d_backprop_input", "conv2d_backprop_filter"
