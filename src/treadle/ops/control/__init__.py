"""Control flow, order, exceptions and effects outside the program."""
