"""Graphs of any library
=====================

Draw three graphs that ship with networkx, beside its spectral layout, and find two factions.

Needs networkx.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import heatsketch as hs

GRAPHS = {
    "karate club": nx.karate_club_graph(),
    "Les Misérables": nx.les_miserables_graph(),
    "women and events": nx.davis_southern_women_graph(),
}
# Walks that wait for random times: without self-loops, others go to and fro.
AS_GRAPH = {"affinity": "precomputed", "filter": "heat", "random_state": 0}

layouts, log_L = {}, {}
for name, G in GRAPHS.items():
    model = hs.HeatEmbedding(2, **AS_GRAPH).fit(G)
    spectral = np.array(list(nx.spectral_layout(G).values()))
    theirs = hs.metrics.diffusion_distortion(spectral, model.diffusion_, model.time_, filter="heat")
    layouts[name] = {"heat embedding": model.embedding_, "spectral layout": spectral}
    log_L[name] = model.distortion_.log_L, theirs.log_L

for name, (ours, theirs) in log_L.items():
    print(f"{name}: log L of diffusion distances {ours:.1f}, by the spectral layout {theirs:.1f}")
    assert ours < theirs / 2

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
