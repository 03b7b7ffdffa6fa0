import json

import numpy as np
import pytest
from scipy import sparse

from heatsketch import io
from heatsketch.io.metadata import Record, decoded, encoded, read_metadata, write_metadata
from problems.tables import table_of

METADATA = {"method": "heat-embedding", "time": 8, "parameters": {"epsilon": "ksum", "µ": None}}


def write(path, metadata=METADATA, shift=0.0, **options):
    Y = np.arange(8.0).reshape(4, 2) + shift
    table = table_of(4, heatsketch=np.array([*"pqrs"], object))
    io.write_table(path, Y, ("u", "v"), table, metadata=metadata, **options)
    return Y


def read(path):
    return io.read_table(path, key="X_heat" if path.suffix == ".h5ad" else None)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".h5ad"])
def test_metadata_come_back_with_the_embedding(tmp_path, suffix):
    path, own = tmp_path / f"map{suffix}", "heatsketch_input" if suffix == ".npz" else "heatsketch"
    Y = write(path)
    found = read(path)
    assert found.metadata == METADATA
    np.testing.assert_array_equal(found.values, Y)
    assert found.extra[own].tolist() == list("pqrs")  # an id of the same name is kept beside
    Y = write(path, None, shift=1.0, force=True)
    assert read(path).metadata == {}
    np.testing.assert_array_equal(read(path).values, Y)


def test_metadata_of_their_own_file(tmp_path):
    write_metadata(tmp_path / "made.json", METADATA)
    assert read_metadata(tmp_path / "made.json") == METADATA
    with pytest.raises(FileExistsError, match="--force"):
        write_metadata(tmp_path / "made.json", METADATA)
    (tmp_path / "made.json").write_text("[1]")
    with pytest.raises(ValueError, match="holds no metadata; pass a file that --metadata wrote"):
        read_metadata(tmp_path / "made.json")


def test_other_programs_read_what_is_in_an_archive(tmp_path):
    Y = write(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as arrays:
        np.testing.assert_array_equal(arrays["embedding"], Y)
        assert json.loads(str(arrays["heatsketch"])) == METADATA


def test_each_embedding_of_a_h5ad_file_keeps_its_own(tmp_path):
    write(tmp_path / "one.h5ad")
    source = io.read_table(tmp_path / "one.h5ad")
    second = METADATA | {"time": 16}
    io.write_table(
        tmp_path / "two.h5ad", np.eye(4)[:, :2], "uv", source, key="X_other", metadata=second
    )
    for key, expected in (("X_heat", METADATA), ("X_other", second), ("X", {})):
        assert io.read_table(tmp_path / "two.h5ad", key=key).metadata == expected


@pytest.mark.parametrize("text", ["", "{", "[1]", "8", "null", "[" * 10**5, 3, None])
def test_what_is_not_metadata_counts_as_none(tmp_path, text):
    assert decoded(text) == {}
    if isinstance(text, str):
        np.savez(tmp_path / "map.npz", embedding=np.eye(3), heatsketch=np.array(text))
        assert io.read_table(tmp_path / "map.npz").metadata == {}


def test_values_that_json_lacks_become_plain_or_words():
    made = {"a": np.float32(0.5), "b": np.arange(2), "c": np.int64(3), "d": object}
    assert decoded(encoded(made)) == {"a": 0.5, "b": [0, 1], "c": 3, "d": "<type>"}


def test_the_hash_tells_data_apart():
    X = np.arange(6.0).reshape(2, 3)
    others = [X.T, X.reshape(3, 2), X.astype(np.float32), X + 1e-12, sparse.csr_matrix(X), X[:1]]
    hashes = {io.data_hash(values) for values in [X, *others]}
    assert len(hashes) == 7
    assert io.data_hash(np.asfortranarray(X)) == io.data_hash(X)
    assert io.data_hash(sparse.csr_matrix(X)) == io.data_hash(sparse.csr_matrix(X))


@pytest.mark.parametrize("anything", [None, 3, "text", ["a"], True])
def test_a_record_that_holds_anything_says_nothing(anything):
    names = "model", "reading", "parameters", "time", "dtype"
    record = Record(dict.fromkeys(names, anything))
    assert record.model == Record({})
    assert record.reading == record.parameters == {}
    assert not record.is_single
    assert Record({"columns": {"a": anything}}).columns == []


def test_a_record_says_what_the_model_says_unless_the_file_says_otherwise():
    model = {"parameters": {"affinity": "knn", "time": "auto"}, "time": 4, "data": "a", "n": 9}
    record = Record({"model": model, "reading": {"sep": ";"}, "columns": [1, "y"]})
    assert record.parameters == {"affinity": "knn", "time": 4}
    assert record.reading == {"sep": ";"}
    assert record.columns == ["1", "y"]
    assert record.may_be_of("b")  # the file does not say
    assert record.model.may_be_of("a")
    assert not record.model.may_be_of("b")
    assert Record({"parameters": {"time": 2}}).parameters == {"time": 2}
