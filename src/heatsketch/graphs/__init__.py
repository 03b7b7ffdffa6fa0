"""Neighbourhood graphs: vertices, components, links between components, and shortest paths."""
