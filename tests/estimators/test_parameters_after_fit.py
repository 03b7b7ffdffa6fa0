"""What set_params changes after a fit counts for the next fit alone."""

import numpy as np
import pytest

import heatsketch as hs
from problems.clouds import cloud

X, NEW = cloud(200, 3, seed=1), cloud(20, 3, seed=2)
OTHERS = {
    "normalization": "symmetric",
    "filter": "heat",
    "metric": "cosine",
    "affinity": "dense",
    "epsilon": 3.0,
    "n_neighbors": 4,
}


@pytest.mark.parametrize("kind", [hs.HeatSketch, hs.DiffusionMap, hs.HeatEmbedding])
@pytest.mark.parametrize("name", OTHERS)
def test_a_fitted_model_gives_what_it_gave(kind, name):
    model = kind(2, time=4, random_state=0).fit(X)

    def answers():
        late, share = model.pseudotime(3), model.explained_diffusion_variance()
        return [model.transform(NEW), model.novelty(NEW), late.value, share.ratio, model.embedding_]

    before = answers()
    model.set_params(**{name: OTHERS[name]})
    for old, new in zip(before, answers(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_times_and_signs_are_those_of_the_fit():
    model = hs.HeatSketch(16, time=[2, 4], kind="rademacher", random_state=0).fit(X)
    before = model.distance(0, 1, time=4), model.get_feature_names_out().tolist()
    model.set_params(time=8, kind="gaussian")
    assert (model.distance(0, 1, time=4), model.get_feature_names_out().tolist()) == before


def test_other_data_are_weighed_as_the_fit_was():
    model = hs.HeatSketch(8, time=2, random_state=0).fit(X)

    def interval():
        return hs.data_interval(model, NEW, np.ptp, n_resamples=20, rng=0)

    before = interval()
    model.set_params(**OTHERS, time=5)
    assert interval() == before
