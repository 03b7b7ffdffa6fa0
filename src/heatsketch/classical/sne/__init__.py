"""Stochastic neighbor embedding, with Gaussian and with heavy-tailed neighbourhoods.

`perplexity` computes the probabilities of the data, `objectives` compare them with those of an
embedding, `descent` lowers the difference, `kernels` holds the compiled loops; `engines` are the
descents of other libraries; `sne` and `tsne` are the two methods.
"""

from heatsketch.classical.sne.sne import SNE
from heatsketch.classical.sne.tsne import TSNE

__all__ = ["SNE", "TSNE"]
