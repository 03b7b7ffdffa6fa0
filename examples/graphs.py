"""Graphs of any library
=====================

Draw three graphs that ship with networkx, beside its spectral layout, and find two factions.

Needs networkx.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.neighbors import NearestNeighbors

import heatsketch as hs

GRAPHS = {
    "karate club": nx.karate_club_graph(),
    "Les Misérables": nx.les_miserables_graph(),
    "women and events": nx.davis_southern_women_graph(),
}
# Walks that wait for random times: without self-loops, others go to and fro.
AS_GRAPH = {"affinity": "precomputed", "filter": "heat", "random_state": 0}


def linked(G, Y):
    """Return the fraction of the nodes nearest to each, as many as it has links, that it links."""
    A = nx.to_numpy_array(G, weight=None)
    order = NearestNeighbors(n_neighbors=len(A) - 1).fit(Y).kneighbors(return_distance=False)
    first = np.arange(len(A) - 1) < A.sum(axis=1, keepdims=True)
    return np.take_along_axis(A, order, axis=1)[first].mean()


# Two questions to a picture: which nodes are linked, and how far apart are they for a walk?
layouts = {}
for name, G in GRAPHS.items():
    model = hs.HeatEmbedding(2, **AS_GRAPH).fit(G)
    spectral = np.array(list(nx.spectral_layout(G).values()))
    layouts[name] = {"heat embedding": model.embedding_, "spectral layout": spectral}
    links, kept = [], []
    for Y in layouts[name].values():
        links.append(linked(G, Y))
        distances = hs.metrics.diffusion_distortion(Y, model.diffusion_, model.time_, filter="heat")
        kept.append(distances.within[1.5])
    print(
        f"{name}: {links[0]:.0%} of the nearest are linked, by the spectral layout {links[1]:.0%}; "
        f"{kept[0]:.0%} of distances within a factor of 1.5, by the spectral layout {kept[1]:.0%}"
    )
    assert links[0] > links[1] + 0.05
    assert kept[0] > kept[1] + 0.2

# Zachary's club fell apart into two; the first coordinate of the walk says who went where.
G = GRAPHS["karate club"]
side = hs.DiffusionMap(1, alpha=0, **AS_GRAPH).fit_transform(G)[:, 0] > 0
club = np.array([G.nodes[node]["club"] == "Mr. Hi" for node in G])
assert max(np.sum(side == club), np.sum(side != club)) >= 33  # of 34

figure, panels = plt.subplots(2, 3, figsize=(9, 6))
women = GRAPHS["women and events"].nodes(data="bipartite")
many = [degree > 10 for _, degree in GRAPHS["Les Misérables"].degree]
colours = [club, many, [kind for _, kind in women]]
for column, (name, both) in enumerate(layouts.items()):
    for row, (method, Y) in enumerate(both.items()):
        panel, place = panels[row, column], dict(zip(GRAPHS[name], Y, strict=True))
        nx.draw_networkx_edges(GRAPHS[name], place, ax=panel, width=0.3, edge_color="0.7")
        panel.scatter(*Y.T, c=colours[column], cmap="coolwarm", s=14, zorder=3)
        panel.set(title=f"{name}, {method}", xticks=[], yticks=[])
        panel.title.set_fontsize(8)
figure.tight_layout()
figure.savefig("graphs.png", dpi=80)
plt.close(figure)
