"""Models in files: the same bits, a size without n, nothing unpickled, damage named."""

import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsTransformer

import heatsketch as hs
from heatsketch.io.models import read_facts, records

sys.path.insert(0, str(Path(__file__).parent / "golden"))
import make
import make_format_1


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
    with pytest.raises(TypeError, match="fitted estimator of heatsketch"):
        hs.save_model(PCA().fit(clouds()), tmp_path / "x")
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


def test_what_no_file_can_hold_is_named_with_what_to_do(tmp_path):
    search = KNeighborsTransformer(n_neighbors=20)
    model = hs.HeatSketch(4, neighbors=search, random_state=0).fit(clouds())
    with pytest.raises(TypeError, match=r"_FittedTransformer.*neighbors=None or a NeighborIndex"):
        hs.save_model(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_labels_that_are_dates_are_refused_before_a_file_is_made(tmp_path):
    dates = np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")[np.arange(150) % 2]
    model = hs.classical.FisherDiscriminant().fit(clouds(), dates)
    with pytest.raises(TypeError, match=r"classes_ has the type datetime64.* numbers and text"):
        hs.save_model(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_output_as_a_data_frame_is_kept(tmp_path):
    model = hs.HeatSketch(3, random_state=0).set_output(transform="pandas").fit(clouds())
    hs.save_model(model, tmp_path / "m")
    pd.testing.assert_frame_equal(
        hs.load_model(tmp_path / "m").transform(clouds(9)), model.transform(clouds(9))
    )


def test_objects_of_the_caller_are_left_out_and_a_new_fit_says_so(tmp_path):
    graph = KNeighborsTransformer(n_neighbors=20).fit_transform(clouds())
    for seed in (np.random.default_rng(0), np.random.RandomState(0)):
        model = hs.HeatSketch(4, neighbors=graph, random_state=seed).fit(clouds())
        hs.save_model(model, tmp_path / "m", force=True)
        again = hs.load_model(tmp_path / "m")
        assert_array_equal(again.embedding_, model.embedding_)
        assert "not in the file" in repr(again)
        with pytest.raises(TypeError, match="not in the file"):
            again.fit(clouds())
        assert again.set_params(random_state=0).fit(clouds()).embedding_.shape == (150, 4)


def rewritten(path, change):
    """Copy an archive with some members replaced (None: left out)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in dict.fromkeys([*old.namelist(), *change]):
            content = change[name] if name in change else old.read(name)
            if content is not None:
                new.writestr(name, content)
    path.write_bytes(buffer.getvalue())


def header_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("header.json"))


def sealed(path, header, change=()):
    """Replace the header, with its right digest, and other members: a file made by hand."""
    text = json.dumps(header).encode()
    seal = {"header.json": text, "header.sha256": hashlib.sha256(text).hexdigest()}
    rewritten(path, seal | dict(change))


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def with_array(path, i, array):
    """Replace an array in a file made by hand."""
    header, content = header_of(path), npy(array)
    about = {"shape": list(array.shape), "dtype": array.dtype.str}
    header["arrays"][i] = about | {"sha256": hashlib.sha256(content).hexdigest()}
    sealed(path, header, {f"arrays/{i}.npy": content})


def test_damage_and_later_formats_are_named(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    header = header_of(path)
    for change, match in (
        ({"format": 3, "heatsketch": "9.1.0"}, "of heatsketch 9.1.0.*update heatsketch"),
        ({"format": "2"}, "does not hold a model"),
        ({"model": {"$record": 99}}, "cannot be read: its header refers to number 99"),
        ({"model": "kernel"}, "does not hold a model"),
        ({"records": [["os.system", {}]]}, "a class 'os.system' that this version does not have"),
    ):
        sealed(path, header | change)
        with pytest.raises(ValueError, match=match):
            hs.load_model(path)
    sealed(path, header)
    assert hs.load_model(path).transform(clouds(3)).shape[0] == 3
    for change, match in (
        ({"arrays/0.npy": None}, "lacks arrays"),
        ({"arrays/99.npy": npy(np.ones(3))}, "lacks arrays, or has others"),
        ({"header.json": "{"}, "damaged header"),
        ({"header.json": json.dumps(header | {"facts": {}})}, "damaged header"),
        ({"arrays/0.npy": npy(np.ones(3))}, "array 0.*is not the one that was saved"),
    ):
        hs.save_model(fitted(), path, force=True)
        rewritten(path, change)
        with pytest.raises(ValueError, match=match):
            hs.load_model(path)


def test_a_header_made_by_hand_is_looked_at(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    header = header_of(path)
    sealed(path, header | {"facts": ["a list"]})
    with pytest.raises(ValueError, match="cannot be read: its header does not say what it is"):
        read_facts(path)
    sealed(path, header | {"reading": {"$array": 0, "other": 1}})
    with pytest.raises(ValueError, match=r"cannot be read: its header has \$array beside other"):
        hs.load_model(path)


def test_an_array_that_is_longer_than_it_claims_is_refused(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    rewritten(path, {"arrays/0.npy": npy(np.ones(3)) + b"more"})
    with pytest.raises(ValueError, match=r"array 0 in .*m claims 152 bytes but holds 156"):
        hs.load_model(path)


def test_pickles_are_never_read(tmp_path):
    path = tmp_path / "m"
    hs.save_model(fitted(), path)
    with_array(path, 0, np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        hs.load_model(path)


def test_methods_cannot_be_replaced_by_a_file(tmp_path):
    path = tmp_path / "m"
    hs.save_model(hs.classical.PCA(2).fit(clouds()), path)
    header = header_of(path)
    header["records"][-1][1]["transform"] = 1
    sealed(path, header)
    with pytest.raises(ValueError, match="its header sets 'transform' of a PCA"):
        hs.load_model(path)


def test_graphs_made_by_hand_cannot_reach_outside_their_arrays(tmp_path):
    """Compiled loops read them without looking at bounds."""
    path = tmp_path / "m"
    model = hs.HeatSketch(4, random_state=0).fit(clouds())
    hs.save_model(model, path)
    header = header_of(path)
    tried = 0
    for name, fields in header["records"]:
        if name != "csr_matrix":
            continue
        for part, wrong in (("indices", 150), ("indices", -1), ("indptr", 10**9), ("indptr", -1)):
            hs.save_model(model, path, force=True)
            i = fields[part]["$array"]
            with zipfile.ZipFile(path) as archive:
                array = np.lib.format.read_array(io.BytesIO(archive.read(f"arrays/{i}.npy")))
            array[len(array) // 2] = wrong
            with_array(path, i, array)
            with pytest.raises(ValueError, match="of a sparse matrix do not fit together"):
                hs.load_model(path)
            tried += 1
    assert tried >= 8


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("Diffusion.measure", np.ones(7)),
        ("Diffusion.vertex", np.full(150, 150)),
        ("Diffusion.vertex", np.full(150, -1)),
        ("Neighborhoods.vertex", np.full(150, 0.5)),
        ("NeighborRows.scales", np.ones(3)),
        ("Scaling.row_sums", np.full(150, np.nan)),
        ("HeatSketch._H", np.ones((3, 5))),
        ("NeighborIndex.input_points", np.ones((150, 5))),
        ("HeatSketch.n_features_in_", 5),
    ],
)
def test_arrays_made_by_hand_that_do_not_fit_are_refused(tmp_path, place, wrong):
    path = tmp_path / "m"
    hs.save_model(hs.HeatSketch(4, random_state=0).fit(clouds()), path)
    header, (kind, name) = header_of(path), place.split(".")
    [fields] = [state for known, state in header["records"] if known.endswith(f".{kind}")]
    if isinstance(wrong, int):
        fields[name] = wrong
        sealed(path, header)
    else:
        fields[name] = {"$array": len(header["arrays"])}
        header["arrays"].append({})
        sealed(path, header, {f"arrays/{len(header['arrays']) - 1}.npy": b""})
        with_array(path, len(header["arrays"]) - 1, wrong)
    with pytest.raises(ValueError, match=r"cannot be read: .* do not fit together"):
        hs.load_model(path)


GOLDEN = Path(__file__).parent / "golden"
FIRST = GOLDEN / "format-1"
RELEASES = sorted(path.name for path in GOLDEN.iterdir() if path.name[0].isdigit())


@pytest.mark.parametrize("release", RELEASES)
def test_models_of_a_release_map_as_they_did(release):
    expected = np.load(GOLDEN / release / "expected.npz")
    kinds = set()
    for name in expected:
        model = hs.load_model(GOLDEN / release / f"{name}.model")
        kinds.add(type(model).__name__)
        assert_allclose(make.numbers(model), expected[name], rtol=1e-6, atol=1e-8, err_msg=name)
    if release == hs.__version__:
        assert kinds == {name for names in records.MODELS.values() for name in names}


def test_models_of_the_first_format_map_as_they_did():
    expected = np.load(FIRST / "expected.npz")
    for name in expected:
        model = hs.load_model(FIRST / f"{name}.model")
        assert_allclose(make_format_1.numbers(model), expected[name], rtol=1e-7, atol=1e-9)
        assert read_facts(FIRST / f"{name}.model")["kind"] == type(model).__name__


@pytest.mark.parametrize(
    "change",
    [
        {"diagnostics": {}},
        {"diagnostics": {"typical_distance": "far"}},
        {"n_features_in": 4},
        {"feature_names_in": ["a"]},
        {"feature_names_in": [[1], [2], [3]]},
        {"kind": "HeatSketch"},
    ],
)
def test_a_header_of_the_first_format_that_does_not_fit_is_refused(tmp_path, change):
    path = tmp_path / "m"
    path.write_bytes((FIRST / "MixtureDiffusion.model").read_bytes())
    rewritten(path, {"header.json": json.dumps(header_of(path) | change)})
    with pytest.raises(ValueError, match="cannot be read"):
        hs.load_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array[:, :-1], "its arrays do not fit together"),
        (lambda array: np.nan * array, "its arrays are not finite"),
    ],
)
def test_arrays_of_the_first_format_that_do_not_fit_are_refused(tmp_path, change, message):
    path = tmp_path / "m"
    path.write_bytes((FIRST / "MixtureDiffusion.model").read_bytes())
    with zipfile.ZipFile(path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("origin.npy")]
        origin = np.lib.format.read_array(io.BytesIO(archive.read(name)))
    rewritten(path, {name: npy(change(origin))})
    with pytest.raises(ValueError, match=f"cannot be read: {message}"):
        hs.load_model(path)
