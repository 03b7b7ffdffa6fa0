"""heatsketch embed --graph: what it writes and says; `io.read_graph` has tests of its own."""

import json
from pathlib import Path

import anndata
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

import heatsketch as hs
from heatsketch import io
from heatsketch.io.metadata import read_metadata

G = nx.les_miserables_graph()


@pytest.fixture(autouse=True)
def edges(run):
    nx.to_pandas_edgelist(G).to_csv("edges.csv", index=False)


@pytest.mark.parametrize("output", ["out.csv", "out.npz", "out.parquet", "out.h5ad"])
def test_the_embedding_has_one_row_for_each_node_and_score_confirms_it(output, run):
    made = ("--metadata", "made.json")
    command = ("embed", "edges.csv", "--graph", "-o", output, "--method", "heat-sketch")
    assert "77 nodes, 254 edges" in run(*command, *made).out
    found = io.formats.read_embedding(Path(output), metadata=read_metadata(Path("made.json")))
    assert found.metadata["parameters"]["affinity"] == "precomputed"
    assert found.metadata["parameters"]["filter"] == "heat"
    table = io.read_graph("edges.csv")
    assert found.extra["id"].tolist() == table.extra["id"].tolist()
    sketch = hs.HeatSketch(affinity="precomputed", filter="heat", random_state=0)
    values = found.values[:, -32:]
    np.testing.assert_allclose(values, sketch.fit_transform(hs.Graph(table.values)), rtol=1e-12)
    said = run("score", "edges.csv", output, "--json", *made)
    assert '"filter": "heat"' in said.out
    assert "was not made from" not in said.err


def test_a_model_of_a_graph_is_saved(run):
    command = ("embed", "edges.csv", "--graph", "-o", "o.npy", "--method", "diffusion-map")
    run(*command, "--save-model", "a.model")
    np.testing.assert_array_equal(hs.load_model("a.model").embedding_, np.load("o.npy"))
    assert "DiffusionMap" in run("transform", "a.model", "--info").out


def test_an_entry_of_obsp(run):
    matrix = hs.graph(G).matrix
    path, out = "graph.h5ad", "out.h5ad"
    obsp = {"connectivities": matrix, "other": 2 * matrix}
    anndata.AnnData(np.zeros((77, 1), np.float32), obsp=obsp).write_h5ad(path)
    run("embed", path, "--graph", "other", "-o", out)
    both = io.read_table(out, key="obsm/X_heat")
    made = hs.HeatEmbedding(affinity="precomputed", filter="heat", random_state=0)
    np.testing.assert_allclose(both.values, made.fit_transform(2 * matrix), rtol=1e-9)
    again = ("embed", out, "--graph", "--in-place")
    assert "has an entry 'X_heat' in obsm already" in run(*again, code=1).err
    run(*again, "--force")


def test_nodes_without_edges_and_components_are_named_in_what_is_said(run):
    A = sparse.block_diag([np.ones((4, 4)), np.ones((3, 3)), np.zeros((1, 1))])
    mmwrite("g.mtx", A)
    said = run("embed", "g.mtx", "--graph", "-o", "o.csv")
    assert "1 node(s) without edges stay where they are" in said.out
    assert "connects them" in said.err
    assert io.read_table("o.csv").values.shape == (8, 2)


def test_a_star_has_a_picture_with_all_defaults(run):
    Path("star.csv").write_text("source,target\n" + "".join(f"hub,n{i}\n" for i in range(60)))
    run("embed", "star.csv", "-o", "o.npy", "--graph")
    Y = np.load("o.npy")
    names = io.read_graph("star.csv").extra["id"].tolist()
    leaves = np.delete(Y, names.index("hub"), axis=0)
    np.testing.assert_allclose(leaves, np.tile(leaves[:1], (60, 1)))
    assert np.linalg.norm(Y[names.index("hub")] - leaves[0]) > 0


def test_scales_and_distances_of_a_graph_are_those_of_the_estimators(run):
    graph = {"affinity": "precomputed", "filter": "heat", "random_state": 0}
    facts = json.loads(run("scales", "edges.csv", "--graph", "--json").out)
    assert facts["time"] == hs.HeatEmbedding(layout="linear", **graph).fit(G).time_
    _, *rows = run("distances", "edges.csv", "--graph", "--from", "Valjean").rows
    table = io.read_graph("edges.csv")
    names = table.extra["id"].tolist()
    diffusion = hs.HeatSketch("auto", time=8, **graph).fit(table.values).diffusion_
    at = [names.index(row[1]) for row in rows]
    assert sorted(at) == list(range(len(names)))
    pairs = np.broadcast_arrays(names.index("Valjean"), at)
    value = hs.diffusion_distance(diffusion, 8, filter="heat", pairs=pairs)
    np.testing.assert_allclose([float(row[2]) for row in rows], value, rtol=1e-5)
    assert np.all(np.diff(value) >= -1e-9)
    said = run("scales", "edges.csv", "--graph", "--affinity", "knn", code=1)
    assert "pass affinity='precomputed'" in said.err


def test_edges_that_are_taken_as_points_are_warned_of(run):
    said = run("embed", "edges.csv", "-o", "o.csv").err
    assert "looks like the edges of a graph from 'source' to 'target'" in said
    assert "--graph" in said
    people = [(f"p{i}", f"town {i % 7}", float(i)) for i in range(40)]
    pd.DataFrame(people, columns=["name", "town", "age"]).to_csv("people.csv", index=False)
    said = run("embed", "people.csv", "-o", "p.csv").err
    assert "edges of a graph" not in said
