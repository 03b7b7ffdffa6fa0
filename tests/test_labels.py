"""Labels mean the same to every function, in whatever form they come and are missing."""

import anndata
import numpy as np
import pandas as pd
import pytest

import heatsketch as hs
from heatsketch.classical import MultipleDiscriminant

N = 120
PLACES = np.random.default_rng(0).normal(size=(N, 3))
CODES = np.where(np.arange(N) % 7 == 0, -1, np.random.default_rng(1).integers(0, 2, N))
KNOWN = CODES >= 0


def filled(names, missing):
    """Return the names of the groups as a list, something else where a label is missing."""
    return [missing if code < 0 else names[code] for code in CODES]


DAYS = ["2020-01-01", "2021-05-03"]
FORMS = {
    "text and NaN": filled("ab", np.nan),
    "text and None": filled("ab", None),
    "text and spaces": np.array(filled("ab", " ")),
    "masked text": np.ma.masked_array(np.array(["a", "b"])[CODES], ~KNOWN),
    "masked numbers": np.ma.masked_array(CODES, ~KNOWN),
    "numbers and NaN": filled([3, 4], np.nan),
    "numbers and infinity": np.array(filled([3, 4], np.inf)),
    "dates": np.array(filled(DAYS, "NaT"), dtype="datetime64[ns]"),
    "spans": np.array(filled([1, 2], "NaT"), dtype="timedelta64[ns]"),
    "dates of pandas": pd.Series(pd.to_datetime(filled(DAYS, None))).dt.tz_localize("UTC"),
    "string": pd.Series(filled("ab", None), dtype="string"),
    "boolean": pd.Series(filled([False, True], None), dtype="boolean"),
    "Int64": pd.Series(filled([1, 2], None), dtype="Int64"),
    "category": pd.Series(filled("ab", None)).astype("category"),
    "category of numbers": pd.Categorical(filled([1, 2], None)),
}
every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def model():
    return hs.HeatSketch(16, random_state=0).fit(PLACES)


@every_form
def test_groups_are_the_same_in_any_form(form, model):
    labels = FORMS[form]
    plain = np.where(KNOWN, CODES, np.nan)
    codes, names = hs.plot.categories(labels)
    np.testing.assert_array_equal(codes, CODES)
    assert len(names) == 2
    assert hs.metrics.knn_accuracy(PLACES, labels) == hs.metrics.knn_accuracy(
        PLACES[KNOWN], CODES[KNOWN]
    )
    (gap,) = hs.audit(model, PLACES, labels=labels, random_state=0).gaps
    (want,) = hs.audit(model, PLACES, labels=plain, random_state=0).gaps
    assert gap.distance == want.distance
    assert np.isfinite(gap.distance).all()
    assert tuple(map(str, gap.labels)) == names
    column = hs.report(model, labels={"kind": labels}, ids=labels, times=[]).facts["columns"][0]
    assert column["names"] == list(names)
    with pytest.raises(ValueError, match=r"no label in 18 row\(s\) \(0, 7, 14, 21, 28 and 13 more"):
        MultipleDiscriminant().fit(PLACES, labels)


@pytest.mark.parametrize("form", ["string", "boolean", "category", "dates"])
def test_labels_of_cells_may_be_missing(form, model):
    adata = anndata.AnnData(PLACES, obsm={"X_umap": PLACES[:, :2]})
    adata.obs["kind"] = pd.Series(FORMS[form]).set_axis(adata.obs_names)
    found = hs.anndata.audit(adata, labels="kind")
    (want,) = hs.audit(found.model, PLACES[:, :2], labels=filled("ab", None), random_state=0).gaps
    assert found.gaps[0].distance == want.distance


def test_numbers_on_a_scale_may_be_masked(model):
    values = np.ma.masked_array(np.linspace(0, 1, N), ~KNOWN)
    assert hs.plot.categories(values) is None
    masked, missing = (
        [c.get_offsets() for c in hs.plot.scatter(PLACES, one).axes[0].collections]
        for one in (values, values.filled(np.nan))
    )
    for one, other in zip(masked, missing, strict=True):
        np.testing.assert_array_equal(one, other)
    assert hs.report(model, labels=values, times=[]).facts["columns"][0]["type"] == "number"
