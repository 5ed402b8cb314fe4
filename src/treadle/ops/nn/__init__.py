"""Activation functions, softmax, losses and what is made of them."""
