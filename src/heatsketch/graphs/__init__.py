"""Neighbourhood graphs: their vertices, components, links between these and shortest paths."""
