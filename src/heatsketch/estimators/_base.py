"""The base of the diffusion estimators: one product by A for training points and new ones."""

import numbers
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_memory

from heatsketch import memory
from heatsketch._array import row_tiles
from heatsketch._checks import (
    CertificateError,
    check_choice,
    features_named,
    logger,
)
from heatsketch._ids import check_ids, numbers_at, numbers_of
from heatsketch._reading import read_points
from heatsketch._tensors import on_device_of
from heatsketch._typing import Array
from heatsketch.estimators._blocks import check_mass, on_scale, warn_of_halves, with_root
from heatsketch.estimators._facts import DiffusionFacts
from heatsketch.markov.affinities import AFFINITIES
from heatsketch.markov.diffusion import NORMALIZATIONS, Diffusion
from heatsketch.markov.extension import rule_of
from heatsketch.markov.given import taken
from heatsketch.markov.reweighted import reweighted, times_columns
from heatsketch.operators import Graph, Operator, as_graph, numbered
from heatsketch.operators.given_graph import is_graph
from heatsketch.operators.sparse import multiply
from heatsketch.scales.bandwidth import WIDE_CUT
from heatsketch.spectral.apply import Block
from heatsketch.spectral.filters import FILTERS, times_of


class DiffusionEstimator(DiffusionFacts):
    """Abstract base: subclasses compute what the last product by A is applied to.

    An embedding is A H (its rows divided by √π in the Markov form), with H = (f(A) - f(0)) A⁻¹ of
    random columns or eigenvectors. Rows of new points are rows of A, so `transform` is the same
    product, and gives training points the same coordinates as `fit`.
    """

    _method: str  # its name in `memory`
    _takes_sparse = True
    ids_: Array | None = None  # of the points, where `fit` was given them
    cut = WIDE_CUT  # of a truncated kernel; a parameter of some subclasses
    _not_stored = ("_explained_ratio",)  # in files: it is computed when it is asked for

    @abstractmethod
    def _check_parameters(self, times: list[Any]) -> None:
        """Raise if parameters of the subclass are out of range, before anything is built."""

    @abstractmethod
    def _factor(self, diffusion: Diffusion, times: list[Any], X: Any) -> list[Block]:
        """Return H (n, k) for every time."""

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Fit the diffusion on the points X, array, DataFrame or sparse matrix (n, d); embed it.

        With ``affinity="precomputed"`` X holds the symmetric affinity or graph (n, n), or is a
        graph of networkx or igraph, a `heatsketch.graph`, an operator, or a `Diffusion` of the same
        normalization, which is used as it is.

        `ids` (n,), integers, strings or bytes, name the points, and are kept as `ids_`. What is
        random for a point then comes from `random_state` and its id, not from its place: the same
        points in another order get the same coordinates, up to rounding, and fits of several data
        sets with the same `random_state` can be compared point by point
        (`diffusion_discrepancy`). In scikit-learn's meta-estimators it is requested by
        ``set_fit_request(ids=True)``.

        Raises
        ------
        ValueError, TypeError
            Points that are not a finite table of numbers, or too few; an affinity that is
            negative or not symmetric; parameters out of range, of another type, or that do not
            go with X.
        MemoryError
            The fit needs more memory than there is; the message says how much, and what needs
            less.
        CertificateError
            A result that fails its own check, such as one that is not finite.
        """
        times = self._checked_times()
        X, diffusion = self._read(X)
        dtype = diffusion.operator.dtype if isinstance(X, Diffusion) else X.dtype
        self.ids_ = None if ids is None else check_ids(ids, numbered(diffusion).n_points)
        started = time.perf_counter()
        logger.info("embedding %s points", f"{diffusion.n:,}")
        if "bipartite" in diffusion.diagnostics and self.filter == "power":
            warn_of_halves(diffusion.diagnostics["bipartite"])
        blocks = self._factor(diffusion, times, X)
        errors = [block.error for block in blocks]
        if diffusion.diagnostics["flat"]:  # only rounding is left, which would grow with time
            blocks = [Block(np.zeros_like(b.values), 0.0) for b in blocks]
        H, log_scales = on_scale(blocks, dtype)
        H = np.asarray(H, dtype=diffusion.operator.dtype)
        check_mass(H, diffusion.measure)
        self._H = with_root(H, diffusion.measure)
        self.diffusion_ = diffusion
        self.__dict__.pop("_explained_ratio", None)  # of an earlier fit
        self.epsilon_ = diffusion.of_inputs(diffusion.epsilon)
        self.n_iter_ = max(1, int(diffusion.diagnostics.get("scaling_iterations", 1)))
        self.embedding_ = diffusion.of_inputs(self._rows_of(diffusion.smooth(self._H), dtype))
        self.diagnostics_ = diffusion.diagnostics | {
            "log_scale": log_scales if len(times) > 1 else log_scales[0],
            "embed_seconds": time.perf_counter() - started,
        }
        if errors[0] is not None:
            self.diagnostics_["polynomial_error"] = errors if len(times) > 1 else errors[0]
        return self

    def _checked_times(self) -> list[Any]:
        """Return the diffusion times, after a check of all options."""
        check_choice(self.filter, "filter", tuple(FILTERS))
        check_choice(self.affinity, "affinity", (*AFFINITIES, "precomputed"))
        check_choice(self.normalization, "normalization", NORMALIZATIONS)
        times = times_of(self.time)
        self._check_parameters(times)
        return times

    def fit_transform(self, X: Any, y: Any = None, *, ids: Any = None) -> Array:
        """Fit on X, with the ids of the points, and return its embedding (n, k); see `fit`.

        Raises
        ------
        ValueError, TypeError, MemoryError, CertificateError
            As `fit`.
        """
        return self.fit(X, y, ids=ids).embedding_

    def transform(self, X: Any) -> Array:
        """Embed points (m, d), old or new; the coordinates (m, k) of a point depend on it alone.

        With ``affinity="precomputed"`` X holds the affinities to the training points, (m, n). A
        warning names points with hardly any affinity to training points, at the scale of these.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit;
            negative affinities.
        """
        check_is_fitted(self)
        return self._placed(read_points(self, X, reset=False, accept_sparse="csr"))

    def novelty(self, X: Any) -> Array:
        """Say of points (m, d) how new they are next to the training points: (m,), from 0 to 1.

        It is the share of the training points, each left out, that are less new: 0.5 for the usual
        point, above 0.99 for one in a hundred points of the same law, and 1 outside. A point is
        compared by its affinity to its `n_neighbors` nearest training points, at their own scale:
        Σ_j exp(-|x - x_j|² / s_j²), with s_j the distance of x_j to its neighbour half as far down
        the list. (Of a given affinity by the sum of its row, of a mixture by its density.)

        Cost: searches for the neighbours of the points, and once for those of these neighbours; the
        first call leaves out up to 2,048 training points.

        Raises
        ------
        NotFittedError, ValueError, TypeError
            Before `fit`; points that are not a finite table of the features of the fit.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False, accept_sparse="csr")
        return rule_of(self.diffusion_.extend).novelty(X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names of columns: the class and a number, as "diffusionmap0", "diffusionmap1".

        Of several times, with the time between them: "heatsketch_t2_0".

        Raises
        ------
        NotFittedError, ValueError
            Before `fit`; `input_features` are not those of the fit.
        """
        check_is_fitted(self)
        times = times_of(self.time)
        if len(times) == 1:
            return super().get_feature_names_out(input_features)
        name, width = type(self).__name__.lower(), self._n_features_out // len(times)
        return np.asarray([f"{name}_t{t}_{i}" for t in times for i in range(width)], dtype=object)

    def _under_weights(self, X: Any) -> Callable[[Array], Array]:
        """Return what embeds points X (m, d) when the vertices have weights (n,), G the same.

        See `data_interval`. The search for the neighbours of X is done once.
        """
        check_is_fitted(self)
        X = read_points(self, X, reset=False, accept_sparse="csr")
        rows = rule_of(self.diffusion_.extend)(X, self._H.dtype)
        given, times = self.get_params(deep=False), times_of(self.time)
        fixed: dict[str, Any] = {"affinity": "precomputed", "neighbors": None}
        fixed |= {"metric": "euclidean", "time": getattr(self, "time_", self.time)}
        fixed["n_components"] = self._n_features_out // len(times)
        if not isinstance(given["random_state"], numbers.Integral):  # of all models the same
            fixed["random_state"] = 0

        def embed(weights: Array) -> Array:
            weighed, columns = reweighted(self.diffusion_, weights)
            model = clone(self).set_params(**fixed).fit(weighed, ids=self._fitted_ids)
            return model._rows_of(multiply(times_columns(rows, columns), model._H), X.dtype)

        return embed

    @property
    def _fitted_ids(self) -> Array | None:
        """The ids of the points of the fit."""
        return self.ids_

    def _numbers(self, diffusion: Diffusion) -> Array | None:
        """Return the number of each vertex by which its random row is drawn; None: its place."""
        if self.ids_ is None:
            return None
        return numbers_at(numbers_of(self.ids_), diffusion.vertex, diffusion.n)

    def _read(self, X: Any) -> tuple[Any, Diffusion]:
        """Return the points or affinities (n, d), or else a diffusion, and their diffusion."""
        is_operator = isinstance(X, Operator | LinearOperator)
        if (is_operator or is_graph(X)) and self.affinity != "precomputed":
            raise ValueError(
                f"X is of type {type(X).__name__} but the estimator has affinity="
                f"{self.affinity!r}; pass affinity='precomputed'."
            )
        given = X = self._diffuse(X) if is_operator else X
        if isinstance(X, Diffusion):
            return X, self._given(X)
        graph = as_graph(X, "X")
        X = X if graph is None else taken(graph)
        X = read_points(self, X, reset=True, accept_sparse="csr")
        parameters = self.get_params(deep=False)
        memory.check(*X.shape, **memory.options_of(X, self._method, parameters))
        points = on_device_of(X, given) if graph is None else Graph(X, graph.names)
        return X, self._diffuse(points)

    def _given(self, diffusion: Diffusion) -> Diffusion:
        """Use a diffusion in place of points, if it matches the parameters."""
        if self.affinity != "precomputed" or self.normalization != diffusion.normalization:
            raise ValueError(
                f"X is a Diffusion with normalization={diffusion.normalization!r} but the "
                f"estimator has affinity={self.affinity!r} and "
                f"normalization={self.normalization!r}; pass "
                f"affinity='precomputed' and normalization={diffusion.normalization!r}."
            )
        self._data_hash = None  # of an earlier fit
        self.n_features_in_ = diffusion.n if diffusion.extend is None else diffusion.extend.width
        self.__dict__.pop("feature_names_in_", None)
        return diffusion

    def _diffuse(self, X: Any) -> Diffusion:
        names = ("normalization", "alpha", "tol", "max_iter")
        common: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.affinity == "precomputed":
            if self.metric != "euclidean":
                raise ValueError(
                    f"metric={self.metric!r} but affinity='precomputed', so that X holds no "
                    "points; pass points, or leave out metric."
                )
            return Diffusion.from_affinity(X, **common)
        build = check_memory(self.memory).cache(_diffusion_of)
        with features_named(getattr(self, "feature_names_in_", None)):
            diffusion: Diffusion = build(
                X,
                metric=self.metric,
                affinity=self.affinity,
                epsilon=self.epsilon,
                n_neighbors=self.n_neighbors,
                neighbors=self.neighbors,
                cut=self.cut,
                **common,
            )
        return diffusion

    def _placed(self, X: Any) -> Array:
        """Return the coordinates of points that have been read (m, k)."""
        return self._rows_of(self.diffusion_.smooth_new(X, self._H), X.dtype)

    def _rows_of(self, product: Array, dtype: np.dtype) -> Array:
        rows = np.empty((len(product), product.shape[1] - 1), dtype)
        markov = self.normalization == "markov"
        finite = True
        for tile in row_tiles(len(rows)):
            block = product[tile, :-1]
            rows[tile] = block / product[tile, -1:] if markov else block
            finite = finite and bool(np.isfinite(rows[tile]).all())
        if not finite:
            raise CertificateError("The embedding is not finite; pass affinities in range.")
        return rows

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.positive_only = self.affinity == "precomputed"
        return tags


def _diffusion_of(X: Any, **options: Any) -> Diffusion:
    """Build the diffusion of points: a function of the module, which joblib can remember."""
    return Diffusion.from_points(X, **options)
