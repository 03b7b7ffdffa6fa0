import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import heatsketch as hs
from heatsketch import _budget, io, memory
from heatsketch._checks import check_points
from problems.clouds import cloud

ESTIMATORS = {
    "heat-sketch": hs.HeatSketch,
    "heat-embedding": hs.HeatEmbedding,
    "diffusion-map": hs.DiffusionMap,
    "mixture-diffusion": hs.MixtureDiffusion,
}


def peak_of(work):
    """Return the bytes that NumPy allocates at the peak of a call, beyond what there was."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def options(method, X, **parameters):
    return memory.options_of(X, method, ESTIMATORS[method](**parameters).get_params())


# The prediction against what NumPy takes

SHAPES = {  # method, n, d, dtype, parameters
    "sketch": ("heat-sketch", 20_000, 3, "float64", {"n_components": 32}),
    "single precision": ("heat-sketch", 20_000, 3, "float32", {"n_components": 64}),
    "several times": ("heat-sketch", 20_000, 3, "float64", {"time": [2, 4, 8]}),
    "many neighbours": (
        "heat-sketch",
        20_000,
        3,
        "float64",
        {"n_components": 2, "n_neighbors": 40},
    ),
    "variable": (
        "heat-sketch",
        20_000,
        3,
        "float32",
        {"n_components": 2, "n_neighbors": 40, "affinity": "variable"},
    ),
    "many features": ("heat-sketch", 20_000, 60, "float32", {"n_components": 2}),
    "eigenpairs": ("diffusion-map", 20_000, 3, "float64", {"n_components": 16, "tol": 9e-5}),
    "mixture": ("mixture-diffusion", 40_000, 8, "float32", {"mixture": 2, "max_features": 100}),
    "learned": ("heat-embedding", 3_000, 3, "float64", {"time": 1, "n_sketch": 128}),
    "learned from all eigenpairs": ("heat-embedding", 1_500, 3, "float64", {"time": 2}),
    "learned in single precision": ("heat-embedding", 30_000, 3, "float32", {"time": 2}),
    "dense": (
        "heat-sketch",
        3_000,
        3,
        "float64",
        {"affinity": "dense", "epsilon": 1.0, "time": 2},
    ),
}

SLOW = ("mixture", "learned in single precision")


@pytest.mark.filterwarnings("ignore")  # eigenpairs that are far from converged
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in SHAPES],
)
def test_the_prediction_is_near_what_is_taken(name, monkeypatch):
    # More starts and steps of the descent take more time, not more memory.
    quick = partial(hs.NearIsometricProjection, n_init=1, max_iter=2)
    monkeypatch.setattr("heatsketch.estimators.heat_embedding.NearIsometricProjection", quick)
    method, n, d, dtype, parameters = SHAPES[name]
    X = cloud(n, d, dtype=dtype)
    make = ESTIMATORS[method]
    make(**parameters, random_state=0).fit(X)  # compiles, which is not counted
    measured, _ = peak_of(lambda: make(**parameters, random_state=0).fit(X))
    predicted = memory.predict(n, d, **options(method, X, **parameters)).peak
    assert 0.8 <= predicted / measured <= 1.5


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_a_given_affinity_takes_what_is_predicted(form):
    K = form(hs.gaussian_affinity(cloud(2500, 2), 0.1))
    parameters = {"affinity": "precomputed", "n_components": 2}
    measured, _ = peak_of(lambda: hs.HeatSketch(**parameters, random_state=0).fit(K))
    predicted = memory.predict(*K.shape, **options("heat-sketch", K, **parameters)).peak
    assert 0.8 <= predicted / measured <= 1.5


# Its shape

sizes = st.fixed_dictionaries(
    {
        "n": st.integers(5_000, 10**7),
        "d": st.integers(1, 1000),
        "n_components": st.integers(1, 300),
        "n_sketch": st.integers(300, 2000),
        "n_neighbors": st.integers(1, 100),
        "method": st.sampled_from(memory.PREDICTED_METHODS),
        "affinity": st.sampled_from(["knn", "variable", "dense"]),
    }
)


@given(sizes, st.sampled_from(["n", "d", "n_components", "n_sketch", "n_neighbors"]))
def test_more_of_anything_never_takes_less(size, name):
    more = size | {name: 2 * size[name]}
    one, other = memory.predict(**size), memory.predict(**more)
    assert one.stages.keys() == other.stages.keys()
    assert all(one.stages[stage] <= other.stages[stage] for stage in one.stages)
    assert one.peak == max(one.stages.values())


@given(sizes)
def test_twice_the_points_take_at_most_twice_the_memory_where_no_pairs_are_stored(size):
    twice = memory.predict(**(size | {"n": 2 * size["n"]}))
    assert twice.peak <= 2 * memory.predict(**size).peak


def test_data_in_single_precision_and_sparse_data_count_as_what_they_are():
    size = {"method": "heat-sketch", "n_components": 2}
    double, single = (
        memory.predict(10**5, 500, dtype=dtype, **size).peak for dtype in ("f8", "f4")
    )
    assert single <= double
    X = sparse.random(1000, 500, 0.01, format="csr", random_state=0)
    given = memory.options_of(X, "heat-sketch", size)
    assert given["stored"] == X.nnz == 5000
    size["affinity"] = "precomputed"  # of which 1 % of the entries are there
    sparser = memory.predict(1000, 1000, stored=10_000, **size)
    assert sparser.stages["graph"] < memory.predict(1000, 1000, **size).stages["graph"] / 10


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="method='umap' is unknown"):
        memory.predict(10, 2, method="umap", n_components=2)
    with pytest.raises(ValueError, match="affinity='angle' is unknown"):
        memory.predict(10, 2, method="heat-sketch", n_components=2, affinity="angle")
    with pytest.raises(ValueError, match="n_components=0 is out of range"):
        memory.predict(10, 2, method="heat-sketch", n_components=0)


# The budget

LARGE = {"method": "heat-embedding", "n_components": 2, "n_sketch": 256, "n_neighbors": 30}


def test_what_is_beyond_the_budget_is_refused_with_what_would_take_less():
    peak = memory.predict(10**6, 50, **LARGE).peak
    assert memory.check(10**6, 50, budget=peak, **LARGE).peak == peak
    with pytest.raises(MemoryError) as caught:
        memory.check(10**6, 50, budget=peak * (1 - 1e-9), **LARGE)
    text = str(caught.value)
    assert (
        f"1,000,000 points with 50 features take about {memory.in_words(peak)} at the peak" in text
    )
    half = memory.predict(10**6, 50, **(LARGE | {"n_neighbors": 15})).peak
    assert f"n_neighbors=15 ({memory.in_words(half)})" in text
    assert text.endswith("or fewer points.")
    assert "n_components" not in text  # of the projection: they decide nothing here, nor does
    assert "n_sketch" not in text  # the sketch, which is made in blocks


@pytest.mark.parametrize("method", memory.PREDICTED_METHODS)
@pytest.mark.parametrize("affinity", ["knn", "dense"])
def test_advice_names_what_takes_less(method, affinity):
    size = {"method": method, "affinity": affinity}
    size |= {"n_components": 200, "n_sketch": 256, "n_neighbors": 30, "max_features": 500}
    text = memory.less_memory(10**6, 20, **size)
    peak, named = memory.predict(10**6, 20, **size).peak, 0
    for name, value in {
        "n_components": 100,
        "n_sketch": 128,
        "n_neighbors": 15,
        "max_features": 250,
        "affinity": "knn",
    }.items():
        less = memory.predict(10**6, 20, **(size | {name: value})).peak
        assert (f"{name}={value!r} ({memory.in_words(less)})" in text) == (less < 0.95 * peak)
        named += less < 0.95 * peak
    assert named > 0


def test_a_budget_holds_inside_its_block():
    size = {"method": "heat-sketch", "n_components": 8}
    with memory.memory_budget(1e3):
        with pytest.raises(MemoryError, match="only 1 MB is available"):
            memory.check(10_000, 3, **size)
        memory.check(10_000, 3, budget=1e12, **size)
        with memory.memory_budget(1e12), memory.memory_budget(None):
            memory.check(10_000, 3, **size)
        with pytest.raises(MemoryError):
            memory.check(10_000, 3, **size)
    with pytest.raises(ValueError, match="size=0"), memory.memory_budget(0):
        pass


def test_without_a_budget_what_is_available_counts(monkeypatch):
    monkeypatch.setattr(_budget, "available", lambda: 5e5)
    with pytest.raises(MemoryError, match="only 1 MB is available"):
        memory.check(10_000, 3, method="heat-sketch", n_components=8)


# What is available


def test_memory_of_the_machine_is_what_linux_calls_available(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal:  4000 kB\nMemFree:  100 kB\nMemAvailable:  2500 kB\n")
    assert _budget._of_machine(path) == 2500 * 1024
    assert _budget._of_machine(tmp_path / "none") > 2**20  # all there is
    assert 2**20 < memory.available() < np.inf or memory.available() == np.inf


VERSIONS = {
    "2": ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    "1": (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
}


@pytest.mark.parametrize("names", VERSIONS.values(), ids=VERSIONS)
def test_a_container_leaves_its_limit_less_what_it_holds(tmp_path, names):
    (tmp_path / "memory").mkdir()
    limit, used, statistics, files = names
    (tmp_path / limit).write_text("5000\n")
    (tmp_path / used).write_text("2000\n")
    (tmp_path / statistics).write_text(f"anon 1200\n{files} 700\nactive_file 100\n")
    assert _budget._of_group(tmp_path) == 5000 - 2000 + 700
    (tmp_path / limit).write_text("max\n")
    assert _budget._of_group(tmp_path) == np.inf
    assert _budget._of_group(tmp_path / "none") == np.inf


# A mapped file


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mapped_file_is_read_and_checked_without_a_copy(tmp_path, dtype):
    X = cloud(50_000, 20, dtype=dtype)
    np.save(tmp_path / "X.npy", X)
    peak, values = peak_of(lambda: check_points(io.read_table(tmp_path / "X.npy").values))
    assert peak < 0.2 * X.nbytes
    assert values.dtype == dtype
    np.testing.assert_array_equal(values, X)


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_estimators_refuse_before_they_start_what_does_not_fit(make):
    X = np.random.default_rng(0).normal(size=(3000, 4))
    estimator = make(2)
    with memory.memory_budget(1e5), pytest.raises(MemoryError, match=r"3,000 points.*pass "):
        estimator.fit(X)
    assert not hasattr(estimator, "embedding_")


def test_more_neighbours_than_points_take_no_more_memory_than_all():
    options = {"method": "heat-sketch", "n_components": 2}
    most = memory.predict(50, 3, n_neighbors=10**9, **options).peak
    assert most == memory.predict(50, 3, n_neighbors=49, **options).peak
