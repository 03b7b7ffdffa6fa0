"""Linear maps to few dimensions that keep distances: the loss, the descent, the choice of pairs."""
