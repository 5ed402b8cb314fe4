"""Parts of tensors, read and replaced: subscripts, slices, gather and scatter."""
