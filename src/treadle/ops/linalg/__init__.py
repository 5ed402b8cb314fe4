"""Products, decompositions, transforms and other ops on matrices and vectors."""
