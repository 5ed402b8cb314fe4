"""How ops work on a batch of examples: the rules of `Op.batch`."""
