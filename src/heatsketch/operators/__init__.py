"""Symmetric operators: the form in which all other folders see a data set."""
