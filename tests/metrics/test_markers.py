"""Features that distinguish a group: the numbers of SciPy's and scanpy's tests of ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

import heatsketch as hs

N, D = 120, 30
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, (N, D)) * RNG.choice([-1.0, 1.0, 1.0], (N, D))  # with many ties
INSIDE = np.arange(N) % 3 == 0


def in_order(found):
    """Return the numbers of a result in the order of the features."""
    place = np.argsort(found.index)
    return {name: np.asarray(column)[place] for name, column in found.columns().items()}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("against", [None, np.arange(N) % 3 == 1])
def test_numbers_are_those_of_mann_and_whitney(form, against):
    found = in_order(hs.markers(form(COUNTS), INSIDE, against))
    others = ~INSIDE if against is None else against
    for j in range(D):
        a, b = COUNTS[INSIDE, j], COUNTS[others, j]
        want = mannwhitneyu(a, b, use_continuity=False, method="asymptotic")
        assert found["p_value"][j] == pytest.approx(want.pvalue, rel=1e-9)
        assert found["area"][j] == pytest.approx(want.statistic / (len(a) * len(b)), rel=1e-12)
        assert found["median"][j] == np.median(a)
        assert found["median_against"][j] == np.median(b)


def test_the_area_is_that_under_the_roc_curve():
    found = in_order(hs.markers(COUNTS, INSIDE))
    assert_allclose(found["area"], [roc_auc_score(INSIDE, x) for x in COUNTS.T], rtol=1e-12)


def test_the_numbers_are_those_of_scanpy():
    sc, anndata = pytest.importorskip("scanpy"), pytest.importorskip("anndata")
    adata = anndata.AnnData(np.abs(COUNTS))
    adata.obs["kind"] = np.where(INSIDE, "a", "b")
    adata.obs["kind"] = adata.obs["kind"].astype("category")
    how = {"method": "wilcoxon", "tie_correct": True, "use_raw": False}
    sc.tl.rank_genes_groups(adata, "kind", groups=["a"], **how)
    theirs = sc.get.rank_genes_groups_df(adata, "a").set_index("names")
    found = hs.anndata.markers(adata, "kind", "a")
    theirs = theirs.loc[found.names]
    assert_allclose(found.score, theirs["scores"], rtol=1e-5)  # kept in float32
    assert_allclose(found.p_value, theirs["pvals"], rtol=1e-9)
    assert_allclose(found.p_adjusted, theirs["pvals_adj"], rtol=1e-9)


def test_the_largest_effect_is_first_and_swapping_turns_it():
    X = COUNTS + 3 * np.outer(INSIDE, np.eye(D)[4]) - 5 * np.outer(INSIDE, np.eye(D)[7])
    found, turned = hs.markers(X, INSIDE), hs.markers(X, ~INSIDE)
    assert found.index[:2].tolist() == [7, 4]
    assert (np.diff(np.abs(found.area - 0.5)) <= 0).all()
    assert_allclose(in_order(turned)["area"], 1 - in_order(found)["area"], rtol=1e-12)
    assert_allclose(in_order(turned)["p_value"], in_order(found)["p_value"], rtol=1e-9)


def test_monotone_changes_of_a_feature_change_no_rank():
    found, changed = (in_order(hs.markers(X, INSIDE)) for X in (COUNTS, np.exp(COUNTS)))
    for name in ("area", "score", "p_value", "p_adjusted"):
        assert_array_equal(changed[name], found[name])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_missing_entries_are_left_out_feature_by_feature(form):
    X = COUNTS.copy()
    X[:50:7, 3] = np.nan
    found, all_there = in_order(hs.markers(form(X), INSIDE)), in_order(hs.markers(COUNTS, INSIDE))
    there = ~np.isnan(X[:, 3])
    alone = hs.markers(X[there][:, [3]], INSIDE[there])
    assert found["area"][3] == alone.area[0]
    assert found["p_value"][3] == alone.p_value[0]
    assert_array_equal(np.delete(found["area"], 3), np.delete(all_there["area"], 3))


def test_constant_and_empty_features_say_nothing():
    X = np.column_stack([np.full(N, 7.0), np.full(N, np.nan), COUNTS[:, 0]])
    found = in_order(hs.markers(X, INSIDE))
    assert_array_equal(found["area"][:2], 0.5)
    assert_array_equal(found["p_value"][:2], 1)
    assert np.isnan(found["median"][1])


def test_wide_matrices_are_compared_by_tiles():
    X = np.tile(COUNTS, 7)  # 210 columns, several tiles
    wide, one = hs.markers(X, INSIDE), hs.markers(COUNTS, INSIDE)
    assert_array_equal(in_order(wide)["area"], np.tile(in_order(one)["area"], 7))


def test_rows_by_number_names_and_words():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(COUNTS, columns=[f"g{j}" for j in range(D)])
    found, same = hs.markers(frame, INSIDE), hs.markers(COUNTS, np.flatnonzero(INSIDE))
    assert found.names.tolist() == [f"g{j}" for j in same.index]
    first = found.describe(3).splitlines()
    assert len(first) == 5
    assert first[2].split()[0] == found.names[0]
    assert list(pd.DataFrame(found.columns())["feature"]) == found.names.tolist()


def test_zeros_and_ones_for_all_rows_are_a_mask():
    found, same = hs.markers(COUNTS, INSIDE.astype(int)), hs.markers(COUNTS, INSIDE)
    assert (found.n_selected, found.n_against) == (INSIDE.sum(), (~INSIDE).sum())
    assert_array_equal(found.score, same.score)
    against = (~INSIDE).astype(np.uint8)
    assert_array_equal(hs.markers(COUNTS, INSIDE, against).score, same.score)
    for column in (INSIDE[:, None], INSIDE[:, None].astype(int)):  # not the rows 0 and 1
        with pytest.raises(ValueError, match=rf"selected has shape \({N}, 1\).*one each"):
            hs.markers(COUNTS, column)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_names_are_those_of_any_frame(library):
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    frame = make({f"g{j}": COUNTS[:, j].astype(float) for j in range(D)})
    found, same = hs.markers(frame, INSIDE), hs.markers(COUNTS, INSIDE)
    assert found.names.tolist() == [f"g{j}" for j in same.index]
    assert_array_equal(found.score, same.score)


def test_a_planted_feature_is_found_among_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 50))
    X[:60, :5] += 3
    found = hs.markers(X, np.arange(60))
    assert {*found.index[:5].tolist()} == {*range(5)}
    assert (found.p_adjusted[5:] > 1e-6).all()


@pytest.mark.parametrize(
    ("selected", "against", "kind", "says"),
    [
        (np.zeros(N, bool), None, ValueError, "selected has no rows"),
        (np.ones(N, bool), None, ValueError, "all rows"),
        ([N], None, ValueError, "out of range"),
        ([1, 2], [2, 3], ValueError, "row 2 is in selected and in against"),
        (np.ones(3, bool), None, ValueError, "one each"),
        (["a"], None, TypeError, "mask, or numbers"),
    ],
)
def test_wrong_groups_are_refused(selected, against, kind, says):
    with pytest.raises(kind, match=says):
        hs.markers(COUNTS, selected, against)


def test_infinite_entries_and_wrong_names_are_refused():
    for form in (np.asarray, sparse.csr_matrix):
        with pytest.raises(ValueError, match="infinite"):
            hs.markers(form(np.where(COUNTS == 2, np.inf, COUNTS)), INSIDE)
    with pytest.raises(ValueError, match="names has 2"):
        hs.markers(COUNTS, INSIDE, names=["a", "b"])
