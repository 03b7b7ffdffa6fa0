"""Symmetric operators: what a data set looks like to everything above."""
