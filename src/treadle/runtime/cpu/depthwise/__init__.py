"""Generated depthwise convolutions: vectors of channels, sums over the window in registers."""
