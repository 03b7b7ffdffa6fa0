"""What `fit` and the other methods of an estimator are given, read and checked once."""

from dataclasses import dataclass, replace
from pickle import PicklingError
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import check_memory

from heatsketch._input_warnings import features_named
from heatsketch._tensors import device_of
from heatsketch._typing import Array
from heatsketch._validation import check_weights, read_points
from heatsketch.markov.affinity import as_matrix
from heatsketch.markov.diffusion import Beside, Diffusion
from heatsketch.markov.out_of_sample import PointKernel
from heatsketch.neighbors.missing import Donors
from heatsketch.operators.graph import Graph, as_graph, is_graph
from heatsketch.operators.operator import Operator

_NO_ZEROS = (
    "sample_weight is zero for some points, but {} between all points are given; leave out the "
    "rows and columns of these points."
)


@dataclass(frozen=True, eq=False)
class Given:
    """What a fit is given.

    Attributes
    ----------
    X : array, CSR matrix or Diffusion
        Points, affinities, or the diffusion itself.
    diffusion : Diffusion
        Points of weight 0 are `beside` it.
    gaps : array of bool (points that count, d) or None
        The entries of the points that were missing, and are filled.
    """

    X: Any
    diffusion: Diffusion
    gaps: Array | None = None


def read_filled(est: Any, X: Any) -> Any:
    """Return new points as they are read, their missing entries filled; affinities have none."""
    points, donors = read_gaps(est, X, reset=False)
    return points if donors is None else donors.fill(points)


def read_gaps(est: Any, X: Any, reset: bool) -> tuple[Any, Donors | None]:
    """Return points as they are read, and the rows by which gaps are filled, if there are any."""
    parameters = est if reset else est._fitted_as
    has_points = "precomputed" not in (parameters.affinity, parameters.metric)
    points = read_points(est, X, reset, accept_sparse=True, allow_nan=has_points)
    if reset:
        est._donors = est._filled = None
    if not has_points or sparse.issparse(points):
        return points, None
    if not np.isnan(points).any():
        return points, None
    if reset:
        est._donors = Donors.of(points, est.n_neighbors)
    donors = est._donors
    if donors is None:  # the points of the fit are complete
        training = est.diffusion_.out_of_sample
        if parameters.metric != "euclidean" or not isinstance(training, PointKernel):
            raise ValueError(
                "X has missing entries, but those of the fit, by which they could be filled, "
                "are not known; fill them first."
            )
        donors = Donors.of(np.asarray(training.points), parameters.n_neighbors)
    return points, donors


def read_input(est: Any, X: Any, weights: Any) -> Given:
    """Return what a fit is given: points, affinities, or a diffusion itself."""
    is_a_graph = not hasattr(X, "shape") and is_graph(X)  # neither a table nor a matrix
    is_whole = isinstance(X, Operator | LinearOperator | Diffusion)
    fits = X.normalization if isinstance(X, Diffusion) else est.normalization
    wanted = "precomputed", fits
    if (is_whole or is_a_graph) and wanted != (est.affinity, est.normalization):
        raise ValueError(
            f"X is of type {type(X).__name__} but the estimator has affinity="
            f"{est.affinity!r} and normalization={est.normalization!r}; pass "
            f"affinity='precomputed' and normalization={fits!r}."
        )
    names = ["normalization", "alpha", "tol", "max_iter"]
    options = {name: getattr(est, name) for name in names}
    options["device"] = device_of(X) if est.device is None else est.device
    if est.affinity != "precomputed":
        names = ["metric", "affinity", "epsilon", "n_neighbors", "neighbors", "cut"]
        options |= {name: getattr(est, name) for name in names}
        points, donors = read_gaps(est, X, reset=True)
        gaps = None
        if donors is not None:
            gaps, points = np.isnan(points), donors.fill(points)
            est._filled = points[gaps]
        training, beside = points, None
        if weights is not None:
            weights = check_weights(weights, points.shape[0], low=0)
            counted = weights > 0
            if not counted.all():
                if est.metric == "precomputed" or sparse.issparse(est.neighbors):
                    raise ValueError(_NO_ZEROS.format("distances"))
                beside = Beside(counted, points[~counted])
                training, weights = points[counted], weights[counted]
                gaps = None if gaps is None else gaps[counted]
        options["sample_weight"] = weights
        build = check_memory(est.memory).cache(Diffusion.from_points)
        try:
            with features_named(est._result("feature_names_in_")):
                diffusion = build(training, **options)
                return Given(points, replace(diffusion, beside=beside), gaps)
        except PicklingError as error:
            raise TypeError(
                "memory stores results by their parameters, but metric or neighbors cannot be "
                "pickled; pass a function of a module, or leave out memory."
            ) from error
    if est.metric != "euclidean":
        raise ValueError(
            f"metric={est.metric!r} but affinity='precomputed', so that X holds no points; "
            "pass points, or leave out metric."
        )
    options["sample_weight"] = weights
    if isinstance(X, Diffusion) and weights is not None:
        raise ValueError(
            "X is a Diffusion, which has weights of its own; pass sample_weight to the "
            "function that makes it."
        )
    if weights is not None and not np.all(weights):
        raise ValueError(_NO_ZEROS.format("affinities"))
    if is_whole:
        diffusion = X if isinstance(X, Diffusion) else Diffusion.from_affinity(X, **options)
        new = diffusion.out_of_sample
        est._data_hash = None  # of an earlier fit
        est.n_features_in_ = diffusion.n if new is None else new.width
        est.__dict__.pop("feature_names_in_", None)
        return Given(diffusion, diffusion)
    graph = as_graph(X, "X") if is_a_graph else None
    table = X if graph is None else as_matrix(graph)
    table, _ = read_gaps(est, table, reset=True)
    given = table if graph is None else Graph(table, graph.names)
    return Given(table, Diffusion.from_affinity(given, **options))
