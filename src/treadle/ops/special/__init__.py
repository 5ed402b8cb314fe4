"""Special functions: gamma and beta functions, inverse error functions, Bessel functions."""
