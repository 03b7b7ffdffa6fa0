"""Stochastic neighbor embedding, with Gaussian and with heavy-tailed neighbourhoods.

`perplexity` makes the probabilities of the data, `objectives` compare them with those of an
embedding, `descent` lowers the difference, `kernels` are the compiled loops; `engines` are other
libraries' descents; `estimators` put them together.
"""

from heatsketch.classical.sne.estimators import SNE, TSNE

__all__ = ["SNE", "TSNE"]
