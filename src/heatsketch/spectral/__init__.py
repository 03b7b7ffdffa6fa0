"""Functions of an operator: filters, their application, eigenpairs, sketches."""
