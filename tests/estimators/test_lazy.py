"""Arrays of Dask, zarr, h5py and maps of files: fits read them, coordinates of Dask are lazy."""

import pickle

import numpy as np
import pytest

import heatsketch as hs

N, D = 700, 3
X = np.random.default_rng(2).standard_normal((N, D)).astype(np.float32)
SKETCH = hs.HeatSketch(4, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::heatsketch.DisconnectedWarning")


def as_dask(values=X, chunks=(97, 2)):
    return pytest.importorskip("dask.array").from_array(values, chunks=chunks)


def as_zarr(folder):
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(folder / "x.zarr"), mode="w", shape=X.shape, chunks=(97, 2), dtype="f4")
    array[:] = X
    return array


def as_hdf5(folder):
    file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
    return file.create_dataset("x", data=X)


def as_map(folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


EVERY = [lambda _: as_dask(), as_zarr, as_hdf5, as_map]


def uncomputed(shape, chunks, dtype=np.float32):
    """Return a Dask array whose chunks raise when they are computed."""
    da = pytest.importorskip("dask.array")

    def read(block_info=None):
        raise AssertionError("a chunk was computed")

    return da.map_blocks(
        read, chunks=da.core.normalize_chunks(chunks, shape), dtype=dtype, meta=np.empty((0, 0))
    )


@pytest.mark.parametrize("make", EVERY)
def test_arrays_of_other_libraries_are_fitted_as_the_array_itself(make, tmp_path):
    found = hs.HeatSketch(4, random_state=0).fit(make(tmp_path))
    assert np.array_equal(found.embedding_, hs.HeatSketch(4, random_state=0).fit(X).embedding_)


@pytest.mark.parametrize("chunks", [(N, D), (97, 2), (1, 3), ((N - 1, 1), (D,)), ((0, N), (D,))])
def test_coordinates_of_a_dask_array_are_lazy_and_the_same(chunks):
    model = SKETCH.fit(X)
    Y = model.transform(uncomputed((N, D), chunks))
    assert (Y.shape, Y.dtype) == ((N, 4), np.float32)
    small = X[:130] if chunks == (1, 3) else X
    Y = model.transform(as_dask(small, chunks))
    assert type(Y).__module__.startswith("dask.")
    assert np.array_equal(Y.compute(), model.transform(small))


@pytest.mark.parametrize("dtype", ["f2", ">f4", "f4", "f8", ">f8", "i4", "u1"])
def test_the_precision_is_known_before(dtype):
    values = (X * 4).astype(dtype)
    Y = hs.HeatSketch(4, random_state=0).fit(values).transform(as_dask(values))
    assert Y.dtype == Y.compute().dtype


@pytest.mark.parametrize(
    "model",
    [
        hs.HeatEmbedding(2, random_state=0),
        hs.DiffusionMap(2, random_state=0),
        hs.MixtureDiffusion(2, random_state=0),
        hs.NearIsometricProjection(2, random_state=0),
    ],
)
def test_every_method_that_maps_points_is_lazy(model):
    values = X[:150].astype(np.float64)
    Y = model.fit_transform(as_dask(values))
    assert (Y.shape, Y.dtype) == ((150, 2), np.float64)
    want = model.fit(values).transform(values)
    if isinstance(model, hs.MixtureDiffusion):  # BLAS rounds a row by the shape of its block
        np.testing.assert_allclose(Y.compute(), want, rtol=0, atol=1e-12 * np.abs(want).max())
    else:
        assert np.array_equal(Y.compute(), want)


def test_lazy_coordinates_are_of_the_model_that_made_them():
    model = hs.HeatSketch(4, random_state=0).fit(X)
    lazy, expected = model.transform(as_dask()), model.transform(X)
    model.fit(X[:200])
    assert np.array_equal(lazy.compute(), expected)


def test_the_graph_holds_the_model_once():
    cloudpickle = pytest.importorskip("cloudpickle")
    model = hs.HeatSketch(4, random_state=0).fit(X)
    sizes = [
        len(cloudpickle.dumps(dict(model.transform(uncomputed((N, D), (rows, D))).dask)))
        for rows in (N, 7)
    ]
    assert sizes[1] - sizes[0] < len(pickle.dumps(model)) + 100 * 2000
    tasks = model.transform(as_dask(chunks=(7, D))).dask
    assert len(tasks) < 1.2 * 2 * 100 + 10


def test_unknown_rows_are_mapped_and_what_cannot_be_is_said_before_or_within():
    da = pytest.importorskip("dask.array")
    model = hs.HeatSketch(4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but HeatSketch is expecting 3"):
        model.transform(as_dask(X[:, :2]))
    unknown = as_dask()[da.from_array(X[:, 0] > 0, chunks=97)]
    assert np.array_equal(model.transform(unknown).compute(), model.transform(X[X[:, 0] > 0]))
    values = X.copy()
    values[300, 1] = np.inf
    with pytest.raises(ValueError, match="infinity") as caught:
        model.transform(as_dask(values)).compute()
    assert "in chunk 3 of" in caught.value.__notes__[0]


def test_missing_entries_are_filled_chunk_by_chunk():
    pytest.importorskip("dask.array")
    model, values = hs.HeatSketch(4, random_state=0).fit(X), X.copy()
    values[::7, 1] = np.nan
    found = model.transform(as_dask(values)).compute()
    np.testing.assert_allclose(found, model.transform(values), rtol=1e-12)


def test_given_affinities_are_read_whole():
    K = hs.gaussian_affinity(X[:50], epsilon=4.0)
    model = hs.DiffusionMap(2, affinity="precomputed", random_state=0)
    Y = model.fit(K).embedding_
    assert np.array_equal(model.fit(as_dask(K, (20, 50))).embedding_, Y)
