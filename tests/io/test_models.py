"""Models in files: the same bits, a size without n, nothing unpickled, damage named."""

import io
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs


def clouds(n=150, m=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, m)) + 4 * rng.integers(2, size=(n, 1))


def fitted(n=150, **options):
    return hs.MixtureDiffusion(**{"mixture": 2, "epsilon": 1.0, "random_state": 0} | options).fit(
        clouds(n)
    )


def through(model, folder):
    """Return a model as it comes back from a file."""
    hs.save_model(model, folder / "m", force=True)
    return hs.load_model(folder / "m")


@pytest.mark.filterwarnings("ignore::heatsketch.ConvergenceWarning")
def test_size_does_not_depend_on_the_number_of_points(tmp_path):
    mixture = fitted().mixture_
    sizes = []
    for n in (300, 30_000):
        model = hs.MixtureDiffusion(mixture=mixture, epsilon=1.0, max_features=8, tolerance=0.05)
        hs.save_model(model.fit(np.repeat(clouds(300), n // 300, axis=0)), tmp_path / str(n))
        sizes.append((tmp_path / str(n)).stat().st_size)
    assert max(sizes) < 20_000
    assert max(sizes) < 1.5 * min(sizes)  # arrays of equal shapes are compressed differently


def test_numbers_of_numpy_and_any_weights_survive_and_no_model_is_replaced(tmp_path):
    rng = np.random.default_rng(0)
    kernel = hs.MixtureKernel(rng.dirichlet(np.ones(5)), rng.normal(size=(5, 1)), [1.0] * 5, 1.0)
    assert_array_equal(through(kernel, tmp_path).weights, kernel.weights)
    model = fitted(n_components=np.int64(2), tolerance=np.float32(0.02))
    assert_array_equal(through(model, tmp_path).transform(clouds(5)), model.transform(clouds(5)))
    with pytest.raises(FileExistsError, match="force=True"):
        hs.save_model(model, tmp_path / "m")


def test_data_frames_go_in_by_name_and_come_out(tmp_path):
    X = pd.DataFrame(clouds(), columns=["a", "b"])
    model = hs.HeatSketch(3, random_state=0).set_output(transform="pandas").fit(X)
    again = through(model, tmp_path)
    pd.testing.assert_frame_equal(again.transform(X[:9]), model.transform(X[:9]))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(X[["b", "a"]])


def test_what_is_no_model_is_refused(tmp_path):
    for other in (PCA().fit(clouds()), clouds(), [1.0], None):
        with pytest.raises(TypeError, match="fitted estimator of heatsketch"):
            hs.save_model(other, tmp_path / "x")
    for model in (hs.HeatSketch(), hs.MixtureDiffusion(), hs.classical.TSNE()):
        with pytest.raises(ValueError, match="call fit first"):
            hs.save_model(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    np.savez(tmp_path / "arrays.npz", X=np.ones(3))
    with pytest.raises(ValueError, match="does not hold a model"):
        hs.load_model(tmp_path / "arrays.npz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(ValueError, match=r"not a zip file; pass a file that save_model .* wrote"):
        hs.load_model(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        hs.load_model(tmp_path / "missing")


def test_what_no_file_can_hold_is_named_before_a_file_is_made(tmp_path):
    search = KNeighborsTransformer(n_neighbors=20)
    model = hs.HeatSketch(4, neighbors=search).fit(clouds())
    with pytest.raises(TypeError, match=r"HeatSketch\..*KNeighborsTransformer.*or a NeighborIndex"):
        hs.save_model(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_labels_of_any_type_survive(tmp_path):
    dates = np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")
    for labels in (dates, np.array(["a", "b"]), np.array(["a", "b"], object)):
        model = hs.classical.FisherDiscriminant().fit(clouds(), labels[np.arange(150) % 2])
        again = through(model, tmp_path)
        assert_array_equal(again.classes_, labels)
        assert_array_equal(again.transform(clouds(5)), model.transform(clouds(5)))


def test_objects_of_the_caller_are_left_out_and_a_new_fit_says_so(tmp_path):
    graph = KNeighborsTransformer(n_neighbors=20).fit_transform(clouds())
    for seed in (np.random.default_rng(0), np.random.RandomState(0)):
        model = hs.HeatSketch(4, neighbors=graph, random_state=seed).fit(clouds())
        again = through(model, tmp_path)
        assert_array_equal(again.embedding_, model.embedding_)
        assert "not in the file" in repr(again)
        with pytest.raises(TypeError, match="not in the file"):
            again.fit(clouds())
        assert again.set_params(random_state=0).fit(clouds()).embedding_.shape == (150, 4)


def rewritten(path, change):
    """Copy an archive with some members replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *change]):
            new.writestr(name, change[name] if name in change else old.read(name))
    path.write_bytes(buffer.getvalue())


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def test_damage_and_other_formats_are_named(tmp_path):
    path = tmp_path / "m"
    hs.save_model(hs.HeatSketch(4, random_state=0).fit(clouds()), path)
    whole = path.read_bytes()
    for text, match in (
        ('[[], [{"record": 999}, {"dict": []}]]', "m cannot be read"),
        *(
            (f'[[{{"{home}": {{"dict": []}}}}], []]', "which is not a class of heatsketch")
            for home in ("os:system", "heatsketch._checks:np", "heatsketch.__main__:x")
        ),
    ):
        rewritten(path, {"model.json": text})
        with pytest.raises(ValueError, match=match):
            hs.load_model(path)
        path.write_bytes(whole)
    rewritten(path, {"arrays/0.npy": npy(np.array([{"a": 1}], dtype=object))})
    with pytest.raises(ValueError, match="pickle"):
        hs.load_model(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(len(whole), size=50):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :])
        try:  # refused by the sums of the archive, unless the byte means nothing
            found = hs.load_model(path).transform(clouds(9))
        except ValueError:
            continue
        path.write_bytes(whole)
        assert_array_equal(found, hs.load_model(path).transform(clouds(9)))


def test_graphs_cannot_reach_outside_their_arrays(tmp_path):
    """Compiled loops read them without looking at bounds."""
    path = tmp_path / "m"
    hs.save_model(hs.HeatSketch(4, random_state=0).fit(clouds()), path)
    whole = path.read_bytes()
    form = r'"csr": \[' + ", ".join([r'\{"array": (\d+)\}'] * 3)  # data, indices, indptr
    with zipfile.ZipFile(path) as archive, np.load(path) as arrays:
        found = re.findall(form, archive.read("model.json").decode())
        integers = {f"arrays/{i}": arrays[f"arrays/{i}"] for _, *both in found for i in both}
    assert len(integers) >= 2
    for name, array in integers.items():
        for wrong in (10**9, -1):
            array[len(array) // 2] = wrong
            rewritten(path, {f"{name}.npy": npy(array)})
            with pytest.raises(ValueError, match="m cannot be read"):
                hs.load_model(path)
            path.write_bytes(whole)
