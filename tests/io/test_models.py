"""Models in files: the same bits, a size without n, nothing unpickled, damage named."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import heatsketch as hs


def clouds(n=150, m=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, m)) + 4 * rng.integers(2, size=(n, 1))


def fitted(n=150, **options):
    return hs.MixtureDiffusion(**{"mixture": 2, "epsilon": 1.0, "random_state": 0} | options).fit(
        clouds(n)
    )


@pytest.mark.parametrize(
    "options", [{}, {"n_components": 2}, {"time": 3}, {"mixture": 1, "time": 2}, {"mixture": None}]
)
def test_a_model_maps_to_the_same_bits(options, tmp_path):
    model, new = fitted(**options), clouds(40)[::-1] + 0.5
    hs.save_model(model, tmp_path / "a.model")
    again = hs.load_model(tmp_path / "a.model")
    assert_array_equal(again.transform(new), model.transform(new))
    assert_array_equal(again.score_samples(new), model.score_samples(new))
    if "time" not in options or options.get("mixture") == 1:
        assert_array_equal(again.distance_error(new), model.distance_error(new))
    assert again.diagnostics_ == model.diagnostics_
    assert list(again.get_feature_names_out()) == list(model.get_feature_names_out())


def test_a_kernel_is_the_same(tmp_path):
    kernel = fitted().kernel_
    hs.save_model(kernel, tmp_path / "kernel")
    again = hs.load_model(tmp_path / "kernel")
    assert_array_equal(again.kernel(clouds(9), clouds(7)), kernel.kernel(clouds(9), clouds(7)))


@pytest.mark.filterwarnings("ignore::heatsketch.ConvergenceWarning")
def test_size_does_not_depend_on_the_number_of_points(tmp_path):
    mixture = fitted().mixture_
    sizes = []
    for n in (300, 30_000):
        model = hs.MixtureDiffusion(mixture=mixture, epsilon=1.0, max_features=8, tolerance=0.05)
        hs.save_model(model.fit(np.repeat(clouds(300), n // 300, axis=0)), tmp_path / str(n))
        sizes.append((tmp_path / str(n)).stat().st_size)
    assert max(sizes) < 20_000
    assert abs(sizes[0] - sizes[1]) < 500  # digits of the numbers in the header


def test_novelty_survives_and_its_absence_is_named(tmp_path):
    model, new = fitted(), 3 * clouds(50)
    hs.save_model(model, tmp_path / "a")
    assert_array_equal(hs.load_model(tmp_path / "a").novelty(new), model.novelty(new))
    model._left_out = None  # as of a file of an earlier version
    hs.save_model(model, tmp_path / "b")
    again = hs.load_model(tmp_path / "b")
    assert_array_equal(again.transform(new), model.transform(new))
    with pytest.raises(ValueError, match="fit and save the model again"):
        again.novelty(new)


def test_same_model_same_bytes_and_no_silent_replacement(tmp_path):
    model = fitted()
    for name in ("a", "b"):
        hs.save_model(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(FileExistsError, match="force=True"):
        hs.save_model(model, tmp_path / "a")
    hs.save_model(fitted(n_components=1), tmp_path / "a", force=True)
    assert hs.load_model(tmp_path / "a").transform(clouds(3)).shape == (3, 1)


def test_numbers_of_numpy_and_any_weights_survive(tmp_path):
    rng = np.random.default_rng(0)
    for trial in range(20):
        kernel = hs.MixtureKernel(
            rng.dirichlet(np.ones(5)), rng.normal(size=(5, 1)), [1.0] * 5, 1.0
        )
        hs.save_model(kernel, tmp_path / str(trial))
        assert_array_equal(hs.load_model(tmp_path / str(trial)).weights, kernel.weights)
    model = fitted(n_components=np.int64(2), tolerance=np.float32(0.02))
    hs.save_model(model, tmp_path / "m")
    assert_array_equal(
        hs.load_model(tmp_path / "m").transform(clouds(5)), model.transform(clouds(5))
    )


def test_names_of_features_are_kept(tmp_path):
    X = pd.DataFrame(clouds(), columns=["a", "b"])
    hs.save_model(hs.MixtureDiffusion(mixture=2, random_state=0).fit(X), tmp_path / "m")
    again = hs.load_model(tmp_path / "m")
    with pytest.raises(ValueError, match="feature names"):
        again.transform(X[["b", "a"]])


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(TypeError, match="MixtureDiffusion or MixtureKernel"):
        hs.save_model(hs.HeatSketch(), tmp_path / "x")
    with pytest.raises(ValueError, match="call fit first"):
        hs.save_model(hs.MixtureDiffusion(), tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    np.savez(tmp_path / "arrays.npz", X=np.ones(3))
    with pytest.raises(ValueError, match="does not hold a model"):
        hs.load_model(tmp_path / "arrays.npz")
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(ValueError, match="cannot be read"):
        hs.load_model(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        hs.load_model(tmp_path / "missing")


def rewritten(path, change):
    """Copy an archive with some members replaced (None: left out)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = change.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    path.write_bytes(buffer.getvalue())


def test_damage_and_later_formats_are_named(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    rewritten(path, {"header.json": json.dumps(header | {"format": 2})})
    with pytest.raises(ValueError, match="update heatsketch"):
        hs.load_model(path)
    hs.save_model(fitted(), path, force=True)
    rewritten(path, {"pivots.npy": None})
    with pytest.raises(ValueError, match="cannot be read"):
        hs.load_model(path)
    hs.save_model(fitted(), path, force=True)
    rewritten(path, {"header.json": "{"})
    with pytest.raises(ValueError, match="damaged header"):
        hs.load_model(path)


def test_pickles_are_never_read(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    rewritten(path, {"means.npy": buffer.getvalue()})
    with pytest.raises(ValueError, match="pickle"):
        hs.load_model(path)


@pytest.mark.parametrize(
    "change",
    [
        {"diagnostics": {}},
        {"diagnostics": {"typical_distance": "far"}},
        {"n_features_in": 3},
        {"feature_names_in": ["a"]},
        {"feature_names_in": [[1], [2]]},
    ],
)
def test_a_header_that_does_not_fit_is_refused_when_loaded(tmp_path, change):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    rewritten(path, {"header.json": json.dumps(header | change)})
    with pytest.raises(ValueError, match="cannot be read"):
        hs.load_model(path)
