"""The version of the package, which files of models and embeddings name."""

__version__ = "0.1.0"
