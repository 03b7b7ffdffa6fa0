"""heatsketch embed --graph: what it writes and says; `io.read_graph` has tests of its own."""

import json

import anndata
import networkx as nx
import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

import heatsketch as hs
from heatsketch import io
from heatsketch.io.metadata import read_metadata

G = nx.les_miserables_graph()
EDGES = [(u, v, w) for u, v, w in G.edges(data="weight")]


def csv(path, header="source,target,weight", edges=EDGES):
    path.write_text("\n".join([header, *(",".join(map(str, edge)) for edge in edges)]) + "\n")
    return path


@pytest.mark.parametrize("output", ["out.csv", "out.npz", "out.parquet", "out.h5ad"])
def test_the_embedding_has_one_row_for_each_node_and_score_confirms_it(output, tmp_path, run):
    edges, out = csv(tmp_path / "edges.csv"), tmp_path / output
    made = ("--metadata", tmp_path / "made.json")
    command = ("embed", edges, "--graph", "-o", out, "--method", "heat-sketch")
    assert "77 nodes, 254 edges" in run(*command, *made).out
    found = io.formats.read_embedding(out, metadata=read_metadata(tmp_path / "made.json"))
    assert found.metadata["parameters"]["affinity"] == "precomputed"
    assert found.metadata["parameters"]["filter"] == "heat"
    table = io.read_graph(edges)
    assert found.extra["id"].tolist() == table.extra["id"].tolist()
    sketch = hs.HeatSketch(affinity="precomputed", filter="heat", random_state=0)
    values = found.values[:, -32:]
    np.testing.assert_allclose(values, sketch.fit_transform(hs.Graph(table.values)), rtol=1e-12)
    said = run("score", edges, out, "--json", *made)
    assert '"filter": "heat"' in said.out
    assert "was not made from" not in said.err


def test_an_entry_of_obsp(tmp_path, run):
    matrix = hs.graph(G).matrix
    path, out = tmp_path / "graph.h5ad", tmp_path / "out.h5ad"
    obsp = {"connectivities": matrix, "other": 2 * matrix}
    anndata.AnnData(np.zeros((77, 1), np.float32), obsp=obsp).write_h5ad(path)
    run("embed", path, "--graph", "other", "-o", out)
    both = io.read_table(out, key="obsm/X_heat")
    made = hs.HeatEmbedding(affinity="precomputed", filter="heat", random_state=0)
    np.testing.assert_allclose(both.values, made.fit_transform(2 * matrix), rtol=1e-9)
    again = ("embed", out, "--graph", "--in-place")
    assert "has an entry 'X_heat' in obsm already" in run(*again, code=1).err
    run(*again, "--force")


def test_nodes_without_edges_and_components_are_named_in_what_is_said(tmp_path, run):
    A = sparse.block_diag([np.ones((4, 4)), np.ones((3, 3)), np.zeros((1, 1))])
    mmwrite(tmp_path / "g.mtx", A)
    out = tmp_path / "o.csv"
    said = run("embed", tmp_path / "g.mtx", "--graph", "-o", out)
    assert "1 node(s) without edges stay where they are" in said.out
    assert "connects them" in said.err
    assert io.read_table(out).values.shape == (8, 2)


def test_scales_and_distances_of_a_graph_are_those_of_the_estimators(tmp_path, run):
    edges = csv(tmp_path / "edges.csv")
    graph = {"affinity": "precomputed", "filter": "heat", "random_state": 0}
    facts = json.loads(run("scales", edges, "--graph", "--json").out)
    assert facts["time"] == hs.HeatEmbedding(**graph).fit(G).time_
    _, *rows = run("distances", edges, "--graph", "--from", "Valjean").rows
    table = io.read_graph(edges)
    names = table.extra["id"].tolist()
    diffusion = hs.HeatSketch("auto", time=8, **graph).fit(table.values).diffusion_
    at = [names.index(row[1]) for row in rows]
    assert sorted(at) == list(range(len(names)))
    pairs = np.broadcast_arrays(names.index("Valjean"), at)
    value = hs.diffusion_distance(diffusion, 8, filter="heat", pairs=pairs)
    np.testing.assert_allclose([float(row[2]) for row in rows], value, rtol=1e-5)
    assert np.all(np.diff(value) >= -1e-9)
    said = run("scales", edges, "--graph", "--affinity", "knn", code=1)
    assert "pass affinity='precomputed'" in said.err


def test_edges_that_are_taken_as_points_are_warned_of(tmp_path, run):
    csv(tmp_path / "edges.csv")
    said = run("embed", tmp_path / "edges.csv", "-o", tmp_path / "o.csv").err
    assert "looks like the edges of a graph from 'source' to 'target'" in said
    assert "--graph" in said
    people = [(f"p{i}", f"town {i % 7}", float(i)) for i in range(40)]
    csv(tmp_path / "people.csv", header="name,town,age", edges=people)
    said = run("embed", tmp_path / "people.csv", "-o", tmp_path / "p.csv").err
    assert "edges of a graph" not in said
