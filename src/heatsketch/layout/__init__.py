"""Layouts, which bring points into few dimensions: pairs, losses and descent, and each layout."""
