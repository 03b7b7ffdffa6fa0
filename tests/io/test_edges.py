"""Graphs in files: the matrix of weights and the names of nodes, or an error that says where."""

import gzip

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from scipy.io import mmwrite

import heatsketch as hs
from heatsketch import io
from problems.messy_tables import saved

G = nx.les_miserables_graph()
EDGES = [(u, v, w) for u, v, w in G.edges(data="weight")]
MATRIX = hs.graph(G)


def text(sep=",", header="source,target,weight\n", edges=EDGES):
    return header.replace(",", sep) + "".join(sep.join(map(str, edge)) + "\n" for edge in edges)


def parquet(path, **columns):
    pyarrow.parquet.write_table(pa.table(columns), path)


def h5ad(path):
    import anndata as ad

    A = ad.AnnData(np.zeros((77, 1), np.float32))
    A.obs_names = MATRIX.names.tolist()
    A.obs["kind"] = ["x", "y"] * 38 + ["x"]
    A.obsp["connectivities"] = A.obsp["distances"] = MATRIX.matrix
    A.write_h5ad(path)


FILES = {
    "edges.csv": lambda path: path.write_text(text()),
    "edges.tsv": lambda path: path.write_text(text("\t", header="")),
    "edges.txt": lambda path: path.write_text(text(" ", header="")),
    "edges.csv.gz": lambda path: path.write_bytes(gzip.compress(text().encode())),
    "edges.parquet": lambda path: parquet(
        path,
        **dict(zip(("from", "to", "weight"), map(list, zip(*EDGES, strict=True)), strict=True)),
    ),
    "graph.mtx": lambda path: mmwrite(path, MATRIX.matrix),
    "graph.npz": lambda path: sparse.save_npz(path, MATRIX.matrix),
    "graph.npy": lambda path: np.save(path, MATRIX.matrix.toarray()),
    "graph.h5ad": h5ad,
}


def ordered(table):
    """Return the matrix with its nodes in the order of those of `MATRIX`."""
    nodes = table.extra["id"].tolist()
    order = [nodes.index(name) for name in MATRIX.names]
    return table.values.toarray()[np.ix_(order, order)]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_the_graph_with_its_names(name, tmp_path):
    FILES[name](tmp_path / name)
    table = io.read_graph(tmp_path / name)
    found = ordered(table) if name.startswith("edges") else table.values.toarray()
    np.testing.assert_array_equal(found, MATRIX.matrix.toarray())
    with pytest.raises(ValueError, match="Q'"):
        io.read_graph(tmp_path / name, key="Q")


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_integers_in_npy_are_edges(tmp_path, dtype):
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 0]], dtype=dtype)
    np.save(tmp_path / "e.npy", edges)
    found = io.read_graph(tmp_path / "e.npy")
    np.testing.assert_array_equal(found.values.toarray(), hs.graph(edges).matrix.toarray())
    np.save(tmp_path / "e.npy", edges.astype(float))
    with pytest.raises(ValueError, match=r"shape \(2, 4\) and dtype float64; .*edges as integers"):
        io.read_graph(tmp_path / "e.npy")
    np.save(tmp_path / "e.npy", edges.T)
    kind = np.dtype(dtype).name
    with pytest.raises(ValueError, match=rf"\(4, 2\) and dtype {kind}; .*is its transpose"):
        io.read_graph(tmp_path / "e.npy")


def test_an_entry_of_obsp(tmp_path):
    path = tmp_path / "graph.h5ad"
    h5ad(path)
    table = io.read_graph(path, label="kind")
    assert (table.label, table.extra["index"][0]) == ("kind", "Napoleon")
    with pytest.raises(ValueError, match=r"obsp/distances of .* holds distances, not weights"):
        io.read_graph(path, key="distances")
    with pytest.raises(ValueError, match=r"choose from obsp/.*mean 'obsp/connectivities'"):
        io.read_graph(path, key="conectivities")


@pytest.mark.parametrize(("field", "value"), [("pattern", ""), ("integer", " 5"), ("real", " 5")])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_matrix_market_of_each_kind(field, value, symmetry, tmp_path):
    content = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n%\n3 3 1\n3 1{value}\n"
    expected = np.zeros((3, 3))
    expected[[0, 2], [2, 0]] = float(value or 1)
    values = io.read_graph(saved(tmp_path, content, "g.mtx")).values.toarray()
    np.testing.assert_array_equal(values[::2], expected[::2])  # node 1 gets a self-loop


MTX = "%%MatrixMarket matrix coordinate real general\n"
COMPLEX = "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1 1\n"
SQUARE = r"g\..* cannot be read: The graph has shape \(3, 4\) .*; pass a matrix \(n, n\)"
REFUSED = [
    ("e.csv", "a\nb\n", r"has 1 column\(s\) \(x0\); an edge list has two of names"),
    ("e.csv", "a,b,1,2020\nb,c,1,2021\n", "leave others out with exclude"),
    ("e.csv", "a,b,1\nb,c,two\n", "the weight of edge 1 of .* is 'two', which is not a number"),
    ("e.csv", "a,b,1\nb,c,-2\n", r"edge \('b', 'c'\) is -2; pass finite, non-negative weights"),
    ("e.csv", "10,20,1\n20,30,-2\n", r"edge \('20', '30'\) is -2"),
    ("e.csv", "a,b,nan\nb,c,1\n", "is 'nan', which is not a number"),
    ("e.csv", "b,a,1\nb,,1\n", "edge 1 of"),
    ("e.csv", "b,a,+1\nb,c,\n", "the weight of edge 1 of"),
    ("e.csv", "a,b\nc,d\n", r"\(a, b\) may be a header or an edge; pass header=True"),
    ("e.csv", "from,Rome\nOslo,Paris\n", "may be a header or an edge"),
    ("e.csv", "source,target\n", "has no edges"),
    ("g.mtx", "", "cannot be read"),
    ("g.mtx", f"{MTX}3 4 1\n1 2 5\n", SQUARE),
    ("g.mtx", f"{MTX}3 3 0\n1 2 5\n", "numbers in place of"),
    ("g.mtx", f"{MTX}3 3 1\n1 9 5\n", "exceeds matrix dimension"),
    ("g.mtx", f"{MTX}3 3 2\n1 2 5\n", r"in place of \(2, 3\)"),
    ("g.mtx", f"{MTX}900000000000 900000000000 1\n1 2 5\n", "would unpack"),
    ("g.mtx", f"{MTX}12 12 2\n1 1 8.6\0\0\0\n1 2 9\n", "cannot be read"),
    ("g.mtx", f"{MTX}2 2 1\n1 2 -5\n", "is -5; pass finite, non-negative weights"),
    ("g.mtx", COMPLEX, "its first line is not that of coordinates with real weights"),
    ("g.npy", np.ones((3, 4)), SQUARE),
    ("g.gml", "x", r"is not a file of a graph; choose from \.csv"),
]


@pytest.mark.parametrize(("name", "content", "message"), REFUSED)
def test_what_is_refused(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_text(content) if isinstance(content, str) else np.save(path, content)
    with pytest.raises(ValueError, match=message):
        io.read_graph(path)


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("a,b\nb,c\n", "abc"),  # b is a node: no header
        ("from,b\nb,from\n", ["from", "b"]),  # so is this one
        ("source,target\na,b\n", "ab"),
        ("one,two,weight\na,b,1\n", "ab"),
        ("u,v\n1,2\n", "12"),
        ("# FromNodeId\tToNodeId\n3\t1\n1\t007\n", ["3", "1", "007"]),
        ("a, b\n b,c \n", "abc"),
        ("1;2;0,5\n2;3;1,5\n", "123"),
    ],
)
def test_the_first_row_is_a_header_or_an_edge(lines, names, tmp_path):
    path = saved(tmp_path, lines, "e.csv")
    found = io.read_graph(path, decimal="," if ";" in lines else ".").extra["id"]
    assert found.tolist() == list(names)


def test_weights_of_parquet_are_the_same_numbers(tmp_path):
    weights = np.array([1.1, 2e-9], np.float32)
    parquet(tmp_path / "e.parquet", **{"from": ["a", "b"], "to": ["b", "c"], "weight": weights})
    values = io.read_graph(tmp_path / "e.parquet").values.toarray()
    assert values[[0, 1], [1, 2]].tolist() == weights.tolist()


def test_columns_by_name_are_left_out(tmp_path):
    edges = [(*edge, "1862") for edge in EDGES]
    path = saved(tmp_path, text(header="source,target,weight,year\n", edges=edges))
    found = ordered(io.read_graph(path, exclude="year"))
    np.testing.assert_array_equal(found, MATRIX.matrix.toarray())
    table = io.read_graph(path, exclude=["year", "weight"])
    assert set(table.values.data.tolist()) == {1.0}
    with pytest.raises(ValueError, match="no id or label column 'kind'; choose from id;"):
        io.read_graph(path, label="kind", exclude=["year", "weight"])
