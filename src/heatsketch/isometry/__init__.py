"""Linear maps to few dimensions that keep distances: the loss, the descent, which pairs to see."""
