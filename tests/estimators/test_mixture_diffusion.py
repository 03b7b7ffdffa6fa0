"""MixtureDiffusion: what the mixture, the map and the steps promise, through the estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import heatsketch as hs
from heatsketch.mixture import CholeskyMap, TaylorMap
from heatsketch.mixture.cholesky_map import draw
from heatsketch.mixture.fitting import Steps
from problems.checks import estimator_checks
from problems.estimators import every_normalization
from problems.mixtures import mixture_of


def clouds(n=240, m=2, seed=0):
    """Three clouds of different shapes."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=n)
    centres = 4 * np.eye(3, m)
    return centres[label] + rng.normal(size=(n, m)) * (0.5 + 0.25 * label)[:, None]


def fitted(X, **changes):
    options = {"mixture": 3, "epsilon": 2.0, "random_state": 0}
    return hs.MixtureDiffusion(**options | changes).fit(X)


def distances(kernel, X):
    return np.sqrt(kernel.squared_distance(X, X))[np.triu_indices(len(X), 1)]


def walked(kernel, X, time):
    """Distances in one dimension at a time, by p^(t) = ∫ p p^(t-1) on a grid."""
    grid, h = np.linspace(-12, 16, 281)[:, None], 28 / 280
    rows, P = kernel.transition_density(X, grid), kernel.transition_density(grid, grid)
    for _ in range(time - 1):
        rows = rows @ P * h
    return pdist(rows) * np.sqrt(h)


@estimator_checks(
    hs.MixtureDiffusion(1, epsilon="median", mixture=1, max_features=10),
    hs.MixtureDiffusion(),
)
@pytest.mark.filterwarnings("ignore::heatsketch.ConvergenceWarning")
def test_scikit_learn_rules(estimator, check):
    check(estimator)


# The map


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("tolerance", [0.1, 0.01])
@pytest.mark.parametrize(("mixture", "time"), [(3, 1), (1, 4)])
def test_distances_are_the_closed_form_within_the_tolerance(m, tolerance, mixture, time):
    X = clouds(m=m)
    model = fitted(X, tolerance=tolerance, mixture=mixture, time=time)
    assert model.kernel_.time == time
    typical = model.diagnostics_["typical_distance"]
    d = distances(model.kernel_, X)
    error = d - pdist(model.embedding_)
    assert_allclose(np.sqrt(np.mean(d**2)), typical, rtol=0.05)
    assert model.diagnostics_["distance_error"] <= tolerance * typical
    assert error.min() >= -1e-9 * typical  # projections never lengthen
    assert error.max() <= model.diagnostics_["distance_error"]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_first_components_are_the_first_of_all_and_say_what_they_miss(k):
    X = clouds()
    whole, model = fitted(X), fitted(X, n_components=k)
    assert_allclose(model.embedding_, whole.embedding_[:, :k])
    error = np.abs(distances(model.kernel_, X) - pdist(model.embedding_))
    assert error.max() <= model.diagnostics_["distance_error"]
    assert model.diagnostics_["distance_error"] > whole.diagnostics_["distance_error"]


def test_scaling_the_data_scales_the_distances_and_a_shift_does_nothing():
    """d² is a density: it scales with s^-m, and with tolerance relative nothing else changes."""
    X = clouds()
    a = fitted(X, mixture=2, epsilon="ksum", tolerance=0.01)
    for factor, shift in ((2.0**-30, 0), (8.0, 0), (2.0**30, 0), (1, 1000)):
        b = clone(a).fit(factor * X + np.array([shift, 0]))
        assert_allclose(b.epsilon_, factor**2 * a.epsilon_)
        d = pdist(a.embedding_) / factor
        assert_allclose(pdist(b.embedding_), d, rtol=1e-6, atol=1e-8 * d.max())


def test_rule_gives_half_of_its_epsilon():
    found = fitted(clouds(), mixture=1, epsilon="ksum").epsilon_
    assert found == pytest.approx(hs.ksum(clouds()).epsilon / 2, rel=1e-12)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize(("mixture", "time"), [(3, 1), (1, 4), (None, 1)])
def test_taylor_coordinates_keep_distances_as_well(m, mixture, time, tmp_path):
    X = clouds(m=m)
    model = fitted(X, mixture=mixture, time=time, features="taylor", tolerance=0.02)
    assert type(model.features_) is TaylorMap
    assert not np.ptp(model.kernel_.covariances, axis=0).any()
    typical = model.diagnostics_["typical_distance"]
    error = distances(model.kernel_, X) - pdist(model.embedding_)
    assert -1e-9 * typical <= error.min()
    assert error.max() <= model.diagnostics_["distance_error"] <= 0.02 * typical
    new = 2 * clouds(50, m, seed=1)  # also outside the ball of the fit
    y, bound = model.transform(new), model.distance_error(new)
    off = distances(model.kernel_, new) - pdist(y)
    assert (off <= np.add.outer(bound, bound)[np.triu_indices(len(new), 1)] + 1e-9).all()
    # Principal axes of the points, most important first.
    products = model.embedding_.T @ model.embedding_
    assert np.abs(products - np.diag(np.diag(products))).max() <= 1e-9 * products[0, 0]
    assert (np.diff(np.diag(products)) <= 1e-12 * products[0, 0]).all()
    hs.save_model(model, tmp_path / "taylor.model")
    again = hs.load_model(tmp_path / "taylor.model")
    assert_array_equal(again.transform(new), y)


@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_first_taylor_components_say_what_they_miss(k):
    X = clouds()
    model = fitted(X, n_components=k, features="taylor")
    error = np.abs(distances(model.kernel_, X) - pdist(model.embedding_))
    assert error.max() <= model.diagnostics_["distance_error"]
    far = 3 * clouds(30, seed=2)
    bound = model.distance_error(far)
    off = distances(model.kernel_, far) - pdist(model.transform(far))
    assert (off <= np.add.outer(bound, bound)[np.triu_indices(len(far), 1)] + 1e-9).all()


def test_taylor_features_that_cannot_be_are_told():
    X = clouds()
    with pytest.raises(ValueError, match=r"time=3 .* 3 components.*pass features='cholesky'"):
        fitted(X, features="taylor", time=3)
    with pytest.raises(ValueError, match="covariance_type='tied'"):
        fitted(X, features="taylor", mixture=GaussianMixture(2, random_state=0))
    tied = GaussianMixture(2, covariance_type="tied", random_state=0)
    assert fitted(X, features="taylor", mixture=tied).features_.n_features > 1
    with pytest.raises(ValueError, match="features='hermite'"):
        fitted(X, features="hermite")
    with pytest.warns(hs.ConvergenceWarning, match="max_features=200 coordinates"):
        fitted(clouds(m=5), features="taylor", tolerance=1e-3)


# The mixture


def test_criterion_finds_three_clouds():
    rng = np.random.default_rng(0)
    X = np.repeat(10 * np.eye(3), 100, axis=0) + rng.normal(size=(300, 3))
    model = hs.MixtureDiffusion(random_state=0).fit(X)
    assert model.diagnostics_["mixture_components"] == 3
    assert np.argmin(model.diagnostics_["bic"]) == 2


def test_criterion_is_that_of_the_mixture_in_its_own_units():
    """Fitting in units of each feature, and the criterion in those of the data, agree."""
    X = clouds()
    found = hs.MixtureDiffusion(random_state=0).fit(X).diagnostics_["bic"]
    assert_allclose(found[0], GaussianMixture(1).fit(X).bic(X), rtol=1e-5)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("make", [GaussianMixture, BayesianGaussianMixture])
def test_a_mixture_is_fitted_or_taken_as_it_is(make, kind):
    X = clouds()
    given = make(n_components=3, covariance_type=kind, random_state=0)
    model = hs.MixtureDiffusion(mixture=given, epsilon=2.0).fit(X)
    assert not hasattr(given, "means_")
    own = clone(given).fit(X)
    again = hs.MixtureDiffusion(mixture=own, epsilon=2.0).fit(X[:50])
    assert_allclose(again.kernel_.means, own.means_)
    assert_allclose(model.kernel_.means, again.kernel_.means)


def test_density_is_that_of_the_widened_mixture():
    X = clouds()
    own = GaussianMixture(2, random_state=0).fit(X)
    model = hs.MixtureDiffusion(mixture=own, epsilon=3.0).fit(X)
    parts = zip(own.weights_, own.means_, own.covariances_, strict=True)
    wide = sum(w * multivariate_normal.pdf(X, x, C + 1.5 * np.eye(2)) for w, x, C in parts)
    assert_allclose(model.stationary_, wide, rtol=1e-10)
    assert_allclose(model.score_samples(X), np.log(wide), rtol=1e-10)


# Later times


def stepping(kernel, x, tolerance):
    """A map for points x and where the walk goes, its steps, and the largest distance at time 1."""
    largest = np.sqrt(kernel.squared_distance(x, x).max())
    points = np.vstack([x, draw(kernel, 2000, 0)])
    features = CholeskyMap().fit(kernel, tolerance=tolerance * largest, points=points)
    return features.transform(x), Steps(features, seed=0), largest


@pytest.mark.parametrize(("m", "tolerance"), [(1, 1e-4), (2, 1e-3), (3, 1e-2)])
def test_one_matrix_makes_the_steps_of_one_component(m, tolerance):
    """T^(t-1) against the closed form of the AR(1) process."""
    now = mixture_of(m, 2.0, 1)
    x = np.random.default_rng(1).normal(size=(60, m))
    y, steps, largest = stepping(now, x, tolerance)
    assert not steps.sampled
    assert steps.error(y, 5) < 1e-4
    for time in (1, 2, 3, 5):
        d = distances(mixture_of(m, 2.0, 1, time), x)
        assert_allclose(pdist(steps.after(y, time)), d, atol=tolerance * largest)


def test_steps_of_several_components_against_quadrature():
    kernel, x = mixture_of(1, 1.0), np.linspace(-3, 3, 40)[:, None]
    y, steps, largest = stepping(kernel, x, 1e-4)
    for time in (2, 3, 4):
        d = walked(kernel, x, time)
        assert_allclose(pdist(steps.after(y, time)), d, atol=1e-4 * largest)


def test_sampled_steps_agree_with_the_closed_form_within_their_error():
    """Four dimensions are sampled; the error said is one standard error, six are allowed."""
    x = np.random.default_rng(1).normal(size=(100, 4))
    y, steps, _ = stepping(mixture_of(4, 4.0, 1), x, 1e-2)
    error, d = steps.error(y, 3), distances(mixture_of(4, 4.0, 1, time=3), x)
    off = pdist(steps.after(y, 3)) - d
    assert steps.sampled
    assert 0 < error < 0.05
    assert np.sqrt(np.mean(off**2)) < (6 * error + 0.02) * np.sqrt(np.mean(d**2))


def test_time_shrinks_distances_and_keeps_the_order_of_coordinates():
    X = clouds(m=1)
    now, later = (fitted(X, epsilon=1.0, time=t) for t in (1, 4))
    assert np.mean(pdist(later.embedding_)) < np.mean(pdist(now.embedding_))
    assert (np.diff(later.embedding_.var(axis=0)) <= 1e-9).all()
    assert_array_equal(later.transform(X), later.embedding_)
    assert later.diagnostics_["time_error"] < 1e-6
    with pytest.raises(ValueError, match="diagnostics_"):
        later.distance_error(X)


@pytest.mark.parametrize("time", [2, 5, 20])
@pytest.mark.parametrize("k", ["auto", 2])
def test_error_at_later_times_is_estimated_with_what_is_dropped(time, k):
    """The estimate may be off by a factor 2."""
    X = clouds(150, m=1)
    model = fitted(X, n_components=k, epsilon=1.0, mixture=2, tolerance=0.05, time=time)
    error = np.abs(pdist(model.embedding_) - walked(model.kernel_, X, time)).max()
    assert error <= 2 * model.diagnostics_["distance_error"]


# The affinity as an operator


def test_low_rank_affinity_is_the_kernel():
    kernel, X = mixture_of(2, 4.0), clouds(100)
    K, F = kernel.kernel(X, X), kernel.low_rank(X).factor
    root = np.sqrt(np.diag(K))
    assert F.shape[1] < 100
    assert (np.abs(F @ F.T - K) <= 1e-9 * np.outer(root, root)).all()


def of_factor_and_matrix(X, kernel, normalization):
    low = hs.Diffusion.from_mixture(X, kernel, normalization=normalization)
    K = kernel.kernel(X, X)
    return low, hs.Diffusion.from_affinity(K, normalization=normalization, alpha=0.0)


@every_normalization
@pytest.mark.filterwarnings("ignore::heatsketch.ScaleWarning")  # of the far points
def test_everything_above_runs_on_it(normalization):
    X = clouds(120)
    low, full = of_factor_and_matrix(X, mixture_of(2, 2.0), normalization)
    assert isinstance(low.operator.A, hs.LowRank)
    assert_allclose(low.measure, full.measure, rtol=1e-6)
    assert_allclose(
        hs.diffusion_distance(low, time=3), hs.diffusion_distance(full, time=3), atol=1e-7
    )
    assert_allclose(
        hs.eigh(low.operator, 3, rng=0).values, hs.eigh(full.operator, 3, rng=0).values, atol=1e-8
    )
    rows = low.kernel_rows(X[:5])
    assert_allclose(rows, (full.operator @ np.eye(120))[:5], atol=1e-7)
    model = hs.HeatEmbedding(
        2, time=3, affinity="precomputed", normalization=normalization, random_state=0
    )
    Y = model.fit_transform(low)
    assert_allclose(model.transform(X), Y, atol=1e-6 * np.abs(Y).max())
    assert model.n_features_in_ == 2
    far = model.transform([*X[:3], [60.0, 60.0], [1e3, 1e3]])
    assert np.isfinite(far).all()
    assert_allclose(far[:3], model.transform(X[:3]), rtol=1e-9)


@pytest.mark.parametrize("deviations", [10, 20, 40])
@every_normalization
def test_points_far_from_the_mixture_are_valid(normalization, deviations):
    kernel = hs.MixtureKernel([1.0], [[0.0]], [1.0], 2.0)
    X = np.append(np.linspace(-2, 2, 50), [deviations, deviations, -deviations])[:, None]
    low, full = of_factor_and_matrix(X, kernel, normalization)
    assert_allclose(low.operator @ np.eye(53), full.operator @ np.eye(53), atol=1e-9)
    assert_allclose(low.measure, full.measure, rtol=1e-9)


def test_only_kernels_make_a_diffusion():
    with pytest.raises(TypeError, match="from_sklearn"):
        hs.Diffusion.from_mixture(clouds(9), GaussianMixture(1))


def test_a_diffusion_of_another_kind_is_refused():
    low = hs.Diffusion.from_mixture(clouds(50), mixture_of(2, 1.0))
    with pytest.raises(ValueError, match="affinity='precomputed' and normalization='markov'"):
        hs.HeatSketch().fit(low)
    with pytest.raises(ValueError, match="normalization='markov'"):
        hs.HeatSketch(affinity="precomputed", normalization="symmetric").fit(low)


def test_densities_beyond_float32_are_not_lost():
    X = 100 * clouds(60, m=30).astype(np.float32)
    model = hs.MixtureDiffusion(2, "median", mixture=1, random_state=0).fit(X)
    assert model.diagnostics_["typical_distance"] < 1e-38
    assert (pdist(model.embedding_) > 0).all()
    assert_array_equal(model.transform(X), model.embedding_)
