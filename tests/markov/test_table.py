"""Rows of counts, joined by their columns: a recipe with `LowRank`."""

import networkx as nx
import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse

import heatsketch as hs


def test_the_walk_to_a_column_and_back():
    counts = np.random.default_rng(0).poisson(1.0, (40, 12)).astype(float)
    F = sparse.csr_matrix(counts / np.sqrt(counts.sum(axis=0)))
    d = hs.Diffusion.from_affinity(hs.LowRank(F), alpha=0)
    both = np.block([[np.zeros((40, 40)), counts], [counts.T, np.zeros((12, 12))]])
    P = both / both.sum(axis=1)[:, None]
    root = np.sqrt(d.measure)
    assert_allclose((d.operator @ np.eye(40)) / root[:, None] * root, (P @ P)[:40, :40], atol=1e-13)


def test_the_southern_women_fall_into_their_two_groups():
    # Davis, Gardner and Gardner (1941): 18 women at 14 events. Freeman (2003) compares 21 analyses;
    # nearly all put women 1 to 9 (with or without 8, 9) against 10 to 18, or leave 16 out.
    G = nx.davis_southern_women_graph()
    women = G.graph["top"]
    B = nx.bipartite.biadjacency_matrix(G, women, G.graph["bottom"]).toarray()
    model = hs.DiffusionMap(1, 1, affinity="precomputed", alpha=0)
    Y = model.fit_transform(hs.LowRank(B / np.sqrt(B.sum(axis=0))))[:, 0]
    first = np.sign(Y[women.index("Evelyn Jefferson")])
    group = {name for name, y in zip(women, Y, strict=True) if np.sign(y) == first}
    assert group >= {"Evelyn Jefferson", "Laura Mandeville", "Theresa Anderson", "Brenda Rogers"}
    others = {"Katherina Rogers", "Sylvia Avondale", "Nora Fayette", "Helen Lloyd", "Myra Liddel"}
    assert not group & others
