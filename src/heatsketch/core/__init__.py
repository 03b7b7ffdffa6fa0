"""Blocks, the operators on them, kernels and graphs: what all else computes with."""
