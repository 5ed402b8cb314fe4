"""Convolution and pooling of images."""
