"""Good calls with data or parameters that change the meaning of the answer, or leave none."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

import heatsketch as hs
from bad_inputs.cases import (
    ESTIMATORS,
    Case,
    X,
    embed,
    every_affinity,
    every_estimator,
    or_variable,
    refused,
    rows_match,
    strictly,
)
from heatsketch._checks import deciding, variance_shares
from problems.clouds import cloud
from problems.matrices import of_points

HEAP = np.full((20, 3), 0.1)
LARGE = np.round(X * 1e6).astype(np.int64) + np.int64(2**53 + 2**30)
UNEVEN = pd.DataFrame(X * [1, 1, 1e12, 1], columns=["length", "width", "mass", "age"])
FEW = pd.DataFrame(cloud(60, 13) * 0.1, columns=[*"abcdefghijklm"])
FEW[["b", "f", "e"]] *= [80.0, 60.0, 50.0]
COUNTED = pd.DataFrame(X, columns=["length", "width", "mass", "age"]) * 2
COUNTED.insert(1, "player", np.arange(1, len(X) + 1))
GROUPS = np.r_[X, cloud(40, 4, seed=1) + 1e3]
ISOLATED = np.r_[X[:20] * 0.1, X[20:] * 1e4]


def sketch(data, **options):
    return embed(hs.HeatSketch, data, **options)


SCALES = [
    Case(
        "all points the same, epsilon a number: zero",
        lambda: sketch(HEAP, affinity="dense", epsilon=1.0),
        ("same affinities", "no information", "smaller epsilon"),
        hs.ScaleWarning,
    ),
    Case(
        "one feature with 95 % of the variance or more",
        lambda: sketch(UNEVEN),
        ("Feature 'mass' carries 100 %", "scale the features"),
        hs.ScaleWarning,
    ),
    Case(
        "some features with nearly all of the variance of many",
        lambda: sketch(FEW),
        ("Features 'b', 'f', 'e' carry 9", "of the 13 features", "these alone", "scale the feat"),
        hs.ScaleWarning,
    ),
    Case(
        "one feature that counts the rows, with half of the variance or more",
        lambda: sketch(COUNTED),
        ("Feature 'player' counts the rows, and carries 9", "leave it out"),
        hs.ScaleWarning,
    ),
    Case(
        "groups of points without affinity between them",
        lambda: hs.diffusion(GROUPS),
        ("2 components (sizes 60, 40)",),
        hs.DisconnectedWarning,
    ),
    Case(
        "more than half of the points isolated",
        lambda: sketch(ISOLATED, epsilon=1.0),
        ("40 of 60 points", "bandwidth is too small", "larger epsilon"),
    ),
    Case(
        "`neighbors` beside `affinity='dense'` or `'radius'`",
        lambda: sketch(X, affinity="dense", neighbors=hs.neighbors.NeighborIndex(X)),
        ("neighbors is given but affinity='dense' uses none", "or leave out neighbors"),
    ),
    Case(
        "weights of zero beside given distances",
        lambda: hs.DiffusionMap(metric="precomputed").fit(
            cdist(X, X), sample_weight=np.arange(60) % 2
        ),
        ("sample_weight is zero for some points, but distances between all", "leave out the rows"),
    ),
    Case(
        "time 1e6",
        lambda: hs.DiffusionMap(2, 1e6, affinity="dense").fit(X),
        ("time is too large", "range of float64", "pass a smaller time, by a factor"),
    ),
    Case(
        "new points far from all others: the nearest is the only neighbour",
        lambda: hs.HeatSketch(2).fit(X).transform([[1e6] * 4, X[5]]),
        ("1 new point(s) (rows 0)", "far"),
        hs.ScaleWarning,
    ),
    Case(
        "a matrix of distances in place of points",
        lambda: sketch(cdist(X, X)),
        ("looks like a matrix of distances", "metric='precomputed'"),
        UserWarning,
    ),
    Case(
        "genes in rows, cells in columns",
        lambda: sketch(pd.DataFrame(X, index=[f"ENSG{i:011d}" for i in range(60)])),
        ("names of genes (ENSG00000000000", "transpose the table"),
        UserWarning,
    ),
]
OTHERS = [  # which the page does not list
    Case(
        "neighbours beside a radius",
        lambda: hs.diffusion(X, affinity="radius", epsilon=4.0, neighbors=sparse.csr_matrix(X)),
        ("neighbors is given but affinity='radius' uses none",),
    ),
    Case(
        "sparse points with a large offset, dense kernel",
        lambda: hs.gaussian_affinity(sparse.csr_matrix(X + 1e8), epsilon=4.0),
        ("exponent of sparse points", "X.toarray()"),
    ),
    Case(
        "weights of zero beside given affinities",
        lambda: hs.DiffusionMap(affinity="precomputed").fit(
            np.exp(-cdist(X, X)), sample_weight=np.arange(60) % 2
        ),
        ("sample_weight is zero for some points, but affinities between all", "leave out the rows"),
    ),
    Case(
        "distances whose order says nothing",
        lambda: hs.classical.NonmetricMDS(metric="precomputed").fit(1.0 - np.eye(10)),
        ("All distances of the 10 points are 1, so that their order says", "n_components=9"),
    ),
    Case(
        "alpha 1000",
        lambda: hs.DiffusionMap(2, alpha=1000).fit(X),
        ("alpha=1000 takes powers of the density out of the range of float64",),
    ),
]


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
def test_integers_beyond_float64(form, dtype):
    with pytest.warns(hs.ScaleWarning, match=r"integers up to 9.0e\+15, beyond the 2\^53"):
        hs.HeatSketch(2, random_state=0).fit(form(LARGE.astype(dtype)))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("d", [6, 8, 12, 20])
def test_k_features_of_d_decide_where_they_are_fewer_than_four_and_a_quarter(k, d):
    """k features have the same variance and the others hardly any: 1 / Σ share² is k."""
    shares = np.full(d, 1e-9)
    large = np.arange(d)[-k:]
    shares[large] = 1 / k
    decides = k == 1 or (k < 4 and 4 * k < d)
    found = deciding(shares / shares.sum())
    assert_array_equal(np.sort(found), large if decides else [])
    falling = np.sort(shares)[::-1]  # as those of principal components
    assert len(deciding(falling / falling.sum())) == (k == 1)


def test_a_third_feature_counts_where_two_hold_nearly_all():
    shares = np.full(24, 0.18 / 21)
    shares[[5, 9, 20]] = 0.63, 0.12, 0.07  # 2.4 features by 1 / Σ share²
    assert_array_equal(np.sort(deciding(shares)), [5, 9, 20])


@pytest.mark.parametrize(("d", "largest"), [(8, 0.74), (40, 0.5), (100, 0.55)])
def test_one_feature_beside_many_that_have_a_part_together_does_not_decide(d, largest):
    shares = np.full(d, (1 - largest) / (d - 1))
    shares[3] = largest
    assert len(deciding(shares)) == 0


@pytest.mark.parametrize("scale", [1.0, 2.0**80, 2.0**-80])
def test_parts_of_the_variance_have_no_unit_in_float32(scale):
    """Squares of these are beyond float32, also of sparse points and of columns with gaps."""
    P = X.astype(np.float32)
    gappy = P.copy()
    gappy[3, 1] = gappy[0, 2] = np.nan
    for points in (P, gappy, sparse.csr_matrix(P)):
        expected = np.nanvar(np.asarray(gappy if points is gappy else P, dtype=float), axis=0)
        found = variance_shares(points * np.float32(scale))
        assert_allclose(found, expected / expected.sum(), rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e40, 1e-40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_one_feature_decides_where_scales_are_unequal_only(form, scale):
    strictly(lambda: hs.diffusion(form(X * scale)))
    strictly(lambda: hs.diffusion(form(X * scale * [1, 1, 1e-12, 1])))
    with pytest.warns(hs.ScaleWarning, match="Feature 1 carries"):
        given = embed(hs.DiffusionMap, form(X * scale * [1e-12, 1, 1e-12, 1e-12]))
    rows_match(given, embed(hs.DiffusionMap, X[:, 1:2]), 1e-9)


@pytest.mark.parametrize(
    "make", [hs.HeatEmbedding, hs.classical.PCA, hs.classical.Isomap, hs.NearIsometricProjection]
)
def test_every_estimator_asks_about_distances(make):
    with pytest.warns(UserWarning, match="looks like a matrix of distances"):
        make(2).fit(cdist(X, X))


def test_square_tables_of_points_and_given_distances_are_not_asked_about():
    D = cdist(X, X)
    for points in (X[:4], D + D[0], D * np.sign(X[:, :1]), D + np.eye(60), np.zeros((4, 4))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hs.classical.PCA(2).fit(points)
        assert not [w for w in caught if "looks like" in str(w.message)]
    strictly(lambda: hs.classical.ClassicalMDS(2, metric="precomputed").fit(D))


BARCODES = [f"s1_{'ACGT'[i % 4] * 3}{'ACGT'[i // 4 % 4] * 13}-1" for i in range(4)]


@pytest.mark.parametrize(
    ("index", "columns"),
    [
        ([f"ENSMUSG{i:011d}.2" for i in range(60)], list("abcd")),
        (["Actb", "Gapdh", "Cd4", *(f"Gm{i}" for i in range(57))], list("abcd")),
        (range(60), BARCODES),
    ],
)
def test_genes_in_rows_are_asked_about(index, columns):
    frame = pd.DataFrame(X, index=index, columns=columns)
    adata = anndata.AnnData(frame.rename(index=str))
    for call in (lambda: sketch(frame), lambda: hs.anndata.heat_sketch(adata)):
        with pytest.warns(UserWarning, match="transpose the table"):
            call()


def test_cells_in_rows_are_not_asked_about():
    cells = [f"{'ACGT'[i % 4] * 8}{'ACGT'[i // 4 % 4] * 8}-{i}" for i in range(60)]
    for index in (cells, range(60), ["CD4 T", "CD8A T", "VIM+"] * 20):
        for columns in (["ACTB", "GAPDH", "CD4", "TP53"], [f"ENSG{i:011d}" for i in range(4)]):
            strictly(lambda frame=pd.DataFrame(X, index=index, columns=columns): sketch(frame))


# Duplicates


@pytest.mark.parametrize("affinity", ["dense", "radius"])
@pytest.mark.parametrize("normalization", ["markov", "symmetric", "bistochastic"])
@pytest.mark.parametrize("time", [1, 100])
def test_one_point_many_times(time, normalization, affinity):
    for make in ESTIMATORS.values():
        model = make(2, time, affinity=affinity, epsilon=1.0, normalization=normalization)
        with pytest.warns(hs.ScaleWarning, match="no information"):
            model.fit(HEAP)
        assert_array_equal(model.embedding_, 0)
        assert_array_equal(model.transform(HEAP[:3]), 0)


@pytest.mark.parametrize("affinity", ["knn", "dense", "radius"])
def test_one_point_has_no_scale(affinity):
    rules = ("ksum", "median", "nearest", "self-tuning")
    for rule in rules[: 3 if affinity == "radius" else 4]:
        with refused(ValueError, "distances are zero", "pass distinct points"):
            hs.diffusion(HEAP, affinity=affinity, epsilon=rule)


@every_estimator
@every_affinity
def test_duplicates_share_a_row(affinity, make):
    """A neighbour graph merges them; else a sample taken twice has the density of the sample."""
    twice = strictly(lambda: embed(make, np.r_[X, X], **affinity))
    rows_match(twice[60:], twice[:60], 0 if affinity["affinity"] == "knn" else 1e-12)
    if make is hs.DiffusionMap or affinity["affinity"] == "knn":
        rows_match(twice[:60], embed(make, X, **affinity), 1e-10)


def test_rules_for_epsilon_look_at_distances_that_are_not_zero():
    heap = np.r_[np.repeat(X[:1], 100, axis=0), X]
    d2 = cdist(heap, heap, "sqeuclidean")
    chosen = hs.diffusion(heap, affinity="dense", epsilon="median").epsilon
    assert chosen == pytest.approx(np.median(d2[d2 > 0]), rel=1e-12)
    d2[d2 == 0] = np.inf
    chosen = hs.diffusion(heap, affinity="dense", epsilon="nearest").epsilon
    alone = d2[101:].min(axis=1)  # the copies have a neighbour at distance 0, which does not count
    assert chosen == pytest.approx(2 * alone.mean(), rel=1e-12)


# Points too far apart, too close together


@pytest.mark.parametrize("epsilon", [None, 4.0])
@pytest.mark.parametrize(
    ("far", "isolated"),
    [(np.full((1, 4), 1e3), 1), (np.full((1, 4), 1e59), 1), (GROUPS[60:], 0)],
    ids=["point", "very far point", "group"],
)
@every_affinity
def test_what_is_far_apart_diffuses_on_its_own(affinity, far, isolated, epsilon):
    chosen = affinity if epsilon is None else affinity | {"epsilon": epsilon}
    sizes = rf"2 components \(sizes 60, {len(far)}\)" + ".*points 60 stand alone" * isolated
    with pytest.warns(hs.DisconnectedWarning, match=sizes):
        d = hs.diffusion(np.r_[X, far], **chosen)
    assert d.diagnostics["components"] == 2
    assert d.diagnostics["isolated"] == isolated
    A = of_points(d)
    assert_allclose(A[:60, 60:], 0, rtol=0, atol=1e-12)
    assert_allclose(A[:60, :60], of_points(hs.diffusion(X, **chosen)), rtol=1e-9, atol=1e-12)
    if not isolated:
        rest = of_points(hs.diffusion(far, **chosen))
        assert_allclose(A[60:, 60:], rest, rtol=1e-9, atol=1e-12)
        return
    G = np.random.default_rng(2).normal(size=(61, 5))
    Y = hs.sketch(d, hs.Power(8), G=G, deflate=False)
    assert_allclose(Y[60], G[60] / np.sqrt(5), rtol=1e-12)


@every_affinity
def test_most_points_isolated(affinity):
    for data, epsilon, count in ((ISOLATED, 1.0, 40), (X, 1e-9, 60), (X, 1e-300, 60)):
        with refused(ValueError, f"{count} of 60 points", "bandwidth is too small", "ksum"):
            embed(hs.HeatSketch, data, **(affinity | {"epsilon": epsilon}))


@pytest.mark.parametrize("affinity", ["dense", "radius"])
def test_a_large_epsilon(affinity):
    for make in ESTIMATORS.values():
        for epsilon in (1e18, 1e300):
            with pytest.warns(hs.ScaleWarning, match="no information.* smaller epsilon"):
                given = embed(make, X, affinity=affinity, epsilon=epsilon)
            assert_array_equal(given, 0)
        for options in ({"affinity": affinity, "epsilon": 1e10, "time": 1}, {"epsilon": 1e300}):
            assert np.ptp(strictly(lambda m=make, o=options: embed(m, X, **o))) > 0


@or_variable
def test_new_points_out_of_reach(affinity):
    """Where affinities fade from 1 to 1e-320 and to 0, no number overflows."""
    model = hs.HeatSketch(3, random_state=0, **affinity).fit(X)
    far = np.array([[1e4] * 4, [1e50] * 4, [-1e60] * 4, X[5]])
    away = np.linspace(1, 3000, 2000)[:, None] * [[0.5, 0.5, 0.5, 0.5]]
    with pytest.warns(hs.ScaleWarning, match=r"rows 0, 1, 2\) are too far") as caught:
        Y, Z = model.transform(far), model.transform(away)
    assert not any(issubclass(w.category, RuntimeWarning) for w in caught)
    assert np.isfinite(Y).all()
    assert np.abs(Z).max() < 100 * np.abs(model.embedding_).max()
    assert_allclose(Y[3], model.embedding_[5], rtol=1e-9, atol=1e-12)
    with pytest.warns(hs.ScaleWarning):
        rows = model.diffusion_.kernel_rows(far[:1])
    assert np.nonzero(np.asarray(rows @ np.eye(60))[0])[0] == [cdist(far[:1], X).argmin()]


# Late times


@every_estimator
@every_affinity
@pytest.mark.parametrize("size", [1e-200, 0.0])
def test_times_at_which_squares_underflow_are_refused(affinity, make, size):
    """At sizes of 1e-200 the numbers would do, but their distances would be zero."""
    lam = hs.DiffusionMap(1, **affinity).fit(X).eigenvalues_[0]
    time = round(np.log(size) / np.log(lam)) if size else 10**6
    with pytest.raises(ValueError, match="time is too large") as caught:
        make(2, time, random_state=0, **affinity).fit(X)
    factor = int(str(caught.value).rstrip(".").split()[-1])
    Y = make(2, time // factor, random_state=0, **affinity).fit_transform(X)
    assert (pdist(Y) > 0).all()


# Few points


@every_affinity
def test_two_and_three_points(affinity):
    """c = 1/e. Two: λ = (1 - c)/(1 + c), coordinates ±λ^t.

    Three, equilateral: λ = (1 - c)/(1 + 2c) twice; Σ (r(i) - r(j))² = 1/π_i + 1/π_j = 6.
    """
    c = np.exp(-1)
    lam = (1 - c) / (1 + c)
    model = hs.DiffusionMap(1, 3, **(affinity | {"epsilon": 1.0, "n_neighbors": 1}))
    Y = strictly(lambda: model.fit_transform([[5.0], [6.0]]))
    assert_allclose(np.sort(Y.ravel()), [-(lam**3), lam**3], rtol=1e-12)
    Y = embed(hs.HeatSketch, [[5.0], [6.0]], 7, **(affinity | {"n_neighbors": 1}))
    assert Y.shape == (2, 7)
    assert_allclose(Y[0], -Y[1], rtol=1e-9)
    corners, lam = np.eye(3) / np.sqrt(2), (1 - c) / (1 + 2 * c)
    Y = embed(hs.DiffusionMap, corners, **(affinity | {"epsilon": 1.0, "n_neighbors": 2}))
    assert_allclose(pdist(Y), lam * np.sqrt(6), rtol=1e-12)


@or_variable
def test_more_components_than_there_are(affinity):
    with refused(ValueError, "n_components=60", "61 distinct", "got 60", "<= 59"):
        hs.DiffusionMap(60, **affinity).fit(X)
    assert hs.DiffusionMap(59, **affinity).fit_transform(X).shape == (60, 59)
    with refused(ValueError, "n_components=5", "6 distinct", "got 5", "<= 4"):
        hs.DiffusionMap(5, n_neighbors=4).fit(np.r_[X[:5], X[:5]])  # duplicates do not count
