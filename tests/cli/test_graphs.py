"""heatsketch embed --graph: what it reads, writes and refuses."""

import gzip
import json

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from scipy.io import mmwrite

import heatsketch as hs
from heatsketch import io
from heatsketch.io.metadata import read_metadata

G = nx.les_miserables_graph()
EDGES = [(u, v, w) for u, v, w in G.edges(data="weight")]
MATRIX = hs.graph(G)


def csv(path, sep=",", header="source,target,weight", edges=EDGES):
    lines = [header.replace(",", sep)] if header else []
    path.write_text("\n".join([*lines, *(sep.join(map(str, edge)) for edge in edges)]) + "\n")
    return path


def gz(path):
    text = csv(path.with_suffix("")).read_bytes()
    path.write_bytes(gzip.compress(text))
    return path


def parquet(path):
    columns = dict(zip(("from", "to", "weight"), zip(*EDGES, strict=True), strict=True))
    pyarrow.parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), path)
    return path


def h5ad(path):
    import anndata as ad

    A = ad.AnnData(np.zeros((77, 1), np.float32))
    A.obs_names = MATRIX.names.tolist()
    A.obs["kind"] = ["x", "y"] * 38 + ["x"]
    A.obsp["connectivities"] = MATRIX.matrix
    A.obsp["distances"] = MATRIX.matrix
    A.obsp["other"] = 2 * MATRIX.matrix
    A.write_h5ad(path)
    return path


FILES = {
    "edges.csv": csv,
    "edges.tsv": lambda path: csv(path, "\t", header=""),
    "edges.txt": lambda path: csv(path, " ", header=""),
    "edges.csv.gz": gz,
    "edges.parquet": parquet,
}
MATRICES = {
    "graph.mtx": lambda path: mmwrite(path, MATRIX.matrix),
    "graph.npz": lambda path: sparse.save_npz(path, MATRIX.matrix),
    "graph.npy": lambda path: np.save(path, MATRIX.matrix.toarray()),
    "graph.h5ad": h5ad,
}


def ordered(table, names):
    """Return the matrix with its nodes in the order of some names."""
    place = {name: i for i, name in enumerate(table.extra["id"].tolist())}
    order = [place[name] for name in names]
    return table.values.toarray()[np.ix_(order, order)]


@pytest.mark.parametrize("name", [*FILES, *MATRICES])
def test_a_file_is_the_graph_with_its_names(name, tmp_path):
    (FILES | MATRICES)[name](tmp_path / name)
    table = io.read_graph(tmp_path / name)
    found = ordered(table, MATRIX.names.tolist()) if name in FILES else table.values.toarray()
    np.testing.assert_array_equal(found, MATRIX.matrix.toarray())


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
    path, out = h5ad(tmp_path / "graph.h5ad"), tmp_path / "out.h5ad"
    run("embed", path, "--graph", "other", "-o", out)
    both = io.read_table(out, key="obsm/X_heat")
    made = hs.HeatEmbedding(affinity="precomputed", filter="heat", random_state=0)
    np.testing.assert_allclose(both.values, made.fit_transform(2 * MATRIX.matrix), rtol=1e-9)
    with pytest.raises(ValueError, match=r"obsp/distances of .* holds distances, not weights"):
        io.read_graph(path, key="distances")
    with pytest.raises(ValueError, match="did you mean 'obsp/connectivities'"):
        io.read_graph(path, key="conectivities")
    again = ("embed", out, "--graph", "--in-place")
    assert "has an entry 'X_heat' in obsm already" in run(*again, code=1).err
    run(*again, "--force")
    table = io.read_graph(path, label="kind")
    assert (table.label, table.extra["index"][0]) == ("kind", "Napoleon")


def test_nodes_without_edges_and_components_are_named_in_what_is_said(tmp_path, run):
    A = sparse.block_diag([np.ones((4, 4)), np.ones((3, 3)), np.zeros((1, 1))])
    mmwrite(tmp_path / "g.mtx", A)
    out = tmp_path / "o.csv"
    said = run("embed", tmp_path / "g.mtx", "--graph", "-o", out)
    assert "1 node(s) without edges stay where they are" in said.out
    assert "connects them" in said.err
    assert io.read_table(out).values.shape == (8, 2)


MTX = "%%MatrixMarket matrix coordinate real general\n"
COMPLEX = "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1 1\n"
REFUSED = [
    ("e.csv", "a\nb\n", "has 1 column(s) (x0); an edge list has two of names"),
    ("e.csv", "a,b,1,2020\nb,c,1,2021\n", "leave others out with --exclude"),
    ("e.csv", "a,b,1\nb,c,two\n", "the weight of edge 1 of"),
    ("e.csv", "a,b,1\nb,c,-2\n", "edge ('b', 'c') is -2; pass finite, non-negative weights"),
    ("e.csv", "10,20,1\n20,30,-2\n", "edge ('20', '30') is -2"),
    ("e.csv", "a,b,nan\nb,c,1\n", "is 'nan', which is not a number"),
    ("e.csv", "b,a,1\nb,,1\n", "edge 1 of"),
    ("e.csv", "b,a,+1\nb,c,\n", "the weight of edge 1 of"),
    ("e.csv", "a,b\nc,d\n", "(a, b) may be a header or an edge; pass --read header=yes or"),
    ("e.csv", "source,target\n", "has no edges"),
    ("g.mtx", "", "cannot be read"),
    ("g.mtx", f"{MTX}3 4 1\n1 2 5\n", "holds a table (3, 4); a graph is a matrix (n, n)"),
    ("g.mtx", f"{MTX}3 3 1\n1 9 5\n", "exceeds matrix dimension"),
    ("g.mtx", f"{MTX}3 3 2\n1 2 5\n", "in place of (2, 3)"),
    ("g.mtx", f"{MTX}900000000000 900000000000 1\n1 2 5\n", "would unpack"),
    ("g.mtx", f"{MTX}12 12 2\\n1 1 8.6\\0\\0\\0\\n1 2 9\\n", "cannot be read"),
    ("g.mtx", f"{MTX}2 2 1\n1 2 -5\n", "is -5; pass finite, non-negative weights"),
    ("g.mtx", COMPLEX, "its first line is not that of coordinates with real weights"),
    ("g.npy", np.ones((3, 4)), "holds a table (3, 4); a graph is a matrix (n, n)"),
    ("g.gml", "x", "is not a file of a graph; choose from .csv"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED)
def test_what_is_refused(name, content, message, tmp_path, run):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    else:
        np.save(path, content)
    assert message in run("embed", path, "--graph", "-o", tmp_path / "o.npz", code=1).err
    assert not (tmp_path / "o.npz").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph", "--standardize"], "--standardize is for points, but INPUT is a graph"),
        (["--graph", "--method", "pca"], "--graph: pca is about points; choose a diffusion method"),
    ],
)
def test_options_that_do_not_go_with_a_graph(options, message, tmp_path, run):
    edges = csv(tmp_path / "edges.csv")
    assert message in run("embed", edges, "-o", tmp_path / "o.npz", *options, code=2).err


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("a,b\nb,c\n", "abc"),  # b is a node: no header
        ("from,b\nb,from\n", ["from", "b"]),  # so is this one
        ("source,target\na,b\n", "ab"),
        ("one,two,weight\na,b,1\n", "ab"),
        ("# FromNodeId\tToNodeId\n3\t1\n1\t007\n", ["3", "1", "007"]),
        ("a, b\n b,c \n", "abc"),
        ("1;2;0,5\n2;3;1,5\n", "123"),
    ],
)
def test_the_first_row_is_a_header_or_an_edge(lines, names, tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(lines)
    found = io.read_graph(path, decimal="," if ";" in lines else ".").extra["id"]
    assert found.tolist() == list(names)


def test_weights_of_parquet_are_the_same_numbers(tmp_path):
    weights = np.array([1.1, 2e-9], np.float32)
    edges = pa.table({"from": ["a", "b"], "to": ["b", "c"], "weight": weights})
    pyarrow.parquet.write_table(edges, tmp_path / "e.parquet")
    values = io.read_graph(tmp_path / "e.parquet").values.toarray()
    assert values[[0, 1], [1, 2]].tolist() == weights.tolist()


def test_columns_by_name_are_left_out(tmp_path):
    edges = [(*edge, "1862") for edge in EDGES]
    path = csv(tmp_path / "dated.csv", header="source,target,weight,year", edges=edges)
    table = io.read_graph(path, exclude="year")
    np.testing.assert_array_equal(ordered(table, MATRIX.names.tolist()), MATRIX.matrix.toarray())
    table = io.read_graph(path, exclude=["year", "weight"])
    assert set(table.values.data.tolist()) == {1.0}


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
