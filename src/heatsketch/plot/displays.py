"""Displays in scikit-learn's way: made from an estimator, kept, and drawn on any axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from heatsketch._checks import check_choice, logger
from heatsketch.metrics import Distortion, diffusion_distortion
from heatsketch.plot.clouds import density, space
from heatsketch.plot.curves import draw_ksum
from heatsketch.plot.explanations import draw_explained, draw_scales, trace_of
from heatsketch.plot.figures import (
    CHOSEN_COLOUR,
    GREY_LINE,
    MAIN_COLOUR,
    axes_of_a_curve,
    check_picture,
    new_figure,
    style_axes,
)
from heatsketch.plot.scatter import scatter
from heatsketch.scales.bandwidth import Ksum, ksum
from heatsketch.spectral.explained import ExplainedVariance
from heatsketch.spectral.heat_trace import HeatTrace

DENSITY_FROM = 200_000  # points beyond which only their density can be seen
_KINDS = ("auto", "points", "density", "3d")


class EmbeddingDisplay:
    """A picture of an embedding: its points in the plane or in space, or their density.

    Parameters
    ----------
    embedding : array (n, k)
    labels : array (n,), optional
        Colours, as in `scatter`.
    names : sequence of k strings, optional
        Names of the coordinates.
    title : str, default ""

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, labels = hs.datasets.digits()
    >>> model = hs.HeatSketch(8, random_state=0).fit(X[:300])
    >>> display = hs.plot.EmbeddingDisplay.from_estimator(model, labels=labels[:300], kind="3d")
    >>> display.ax_.name
    '3d'
    """

    def __init__(
        self,
        embedding: Any,
        *,
        labels: Any = None,
        names: Sequence[str] | None = None,
        title: str = "",
    ) -> None:
        self.embedding = embedding
        self.labels = labels
        self.names = names
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        labels: Any = None,
        title: str = "",
        kind: str = "auto",
        ax: Any = None,
    ) -> Self:
        """Draw the embedding of a fitted estimator, or of points X (m, d) by it.

        `kind` and `ax` are those of `plot`.

        Raises
        ------
        NotFittedError, ValueError, TypeError, ImportError
            Before the fit of the estimator; bad points; what `plot` raises.
        """
        check_is_fitted(estimator)
        Y = estimator.embedding_ if X is None else estimator.transform(X)
        names = [str(name) for name in estimator.get_feature_names_out()]
        title = title or type(estimator).__name__
        return cls(Y, labels=labels, names=names, title=title).plot(ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "auto", legend: bool = True) -> Self:
        """Draw the embedding.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, for "3d" axes with that projection; new ones by default.
        kind : "auto", "points", "density" or "3d", default "auto"
            "points" is `scatter`, "density" counts the points in cells, which shows millions;
            "auto" is the first up to 200,000 points.
        legend : bool, default True
            Explain the colours.

        Raises
        ------
        ValueError, ImportError
            A kind that is unknown; no matplotlib.
        """
        check_picture(None)
        check_choice(kind, "kind", _KINDS)
        if kind == "auto":
            kind = "points" if np.shape(self.embedding)[0] <= DENSITY_FROM else "density"
        draw: Any = {"points": scatter, "density": density, "3d": space}[kind]
        options = {"title": self.title, "names": self.names, "legend": legend}
        self.figure_ = draw(self.embedding, self.labels, ax=ax, **options)
        self.ax_ = self.figure_.axes[0] if ax is None else ax
        return self


class CurveDisplay(ABC):
    """Abstract base of displays that are one curve, or bars, on axes."""

    figure_: Any
    ax_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on axes, new ones by default.

        Raises
        ------
        ImportError
            No matplotlib.
        """
        self.figure_, self.ax_ = axes_of_a_curve(ax)
        self._draw(self.ax_)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on these axes."""


class KsumDisplay(CurveDisplay):
    """The curve of the Ksum test, with the bandwidth and the dimension it finds.

    Parameters
    ----------
    result : Ksum
        The result of `heatsketch.ksum`.

    Attributes
    ----------
    ax_, figure_
        As in `EmbeddingDisplay`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> hs.plot.KsumDisplay(hs.ksum(X)).plot().ax_.get_xlabel()
    'bandwidth ε'
    """

    def __init__(self, result: Ksum) -> None:
        self.result = result

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Run the test on points X (n, d) by the metric of an estimator, and draw it.

        Raises
        ------
        ValueError, TypeError, ImportError
            Bad points, as by `heatsketch.ksum`; no matplotlib.
        """
        metric = getattr(estimator, "metric", "euclidean")
        return cls(ksum(X, metric=metric)).plot(ax)

    def _draw(self, ax: Any) -> None:
        draw_ksum(ax, self.result)


class ScalesDisplay:
    """Why ``time="auto"`` chose its time: what is kept, and how many directions are left.

    Parameters
    ----------
    embedding : HeatEmbedding
        Fitted with ``time="auto"``.
    trace : HeatTrace, optional
        As in `scales`.

    Attributes
    ----------
    ax_ : array of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> model = hs.HeatEmbedding(2, random_state=0).fit(X)
    >>> len(hs.plot.ScalesDisplay.from_estimator(model).ax_)
    2
    """

    def __init__(self, embedding: Any, trace: HeatTrace | None = None) -> None:
        self.embedding = embedding
        self.trace = trace_of(embedding) if trace is None else trace

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the scales of a `HeatEmbedding`; `ax` is a pair of axes.

        Raises
        ------
        NotFittedError, ValueError, ImportError
            Before the fit of the estimator; one whose time was given; what `plot` raises.
        """
        check_is_fitted(estimator)
        return cls(estimator).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on a pair of axes, one above the other by default.

        Raises
        ------
        ValueError, ImportError
            Another number of axes than two; no matplotlib.
        """
        check_picture(None)
        if ax is None:
            ax = new_figure(6.4, 6.4).subplots(2, 1, sharex=True)
        if np.size(ax) != 2:
            raise ValueError(f"ax holds {np.size(ax)} axes; pass two, for shares and ranks.")
        self.ax_ = np.asarray(ax)
        self.figure_ = self.ax_.flat[0].figure
        above, below = self.ax_.flat
        draw_scales(above, below, self.embedding, self.trace)
        return self


class SpectrumDisplay:
    """How much of the diffusion each coordinate holds and all together; the eigenvalues, if known.

    Parameters
    ----------
    explained : ExplainedVariance
        ``model.explained_diffusion_variance()``.
    eigenvalues : array (k,), optional

    Attributes
    ----------
    ax_, figure_
        As in `EmbeddingDisplay`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> display = hs.plot.SpectrumDisplay.from_estimator(hs.DiffusionMap(6, 8).fit(X))
    >>> display.ax_.get_xlabel()
    'coordinates'
    """

    def __init__(self, explained: ExplainedVariance, eigenvalues: Any = None) -> None:
        self.explained = explained
        self.eigenvalues = eigenvalues

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, level: float = 0.95, share: float | None = None, ax: Any = None
    ) -> Self:
        """Draw the explained diffusion variance of a fitted estimator, with intervals.

        Raises
        ------
        NotFittedError, ImportError
            Before the fit of the estimator; no matplotlib.
        """
        check_is_fitted(estimator)
        found = estimator.explained_diffusion_variance(level)
        return cls(found, getattr(estimator, "eigenvalues_", None)).plot(ax, share=share)

    def plot(self, ax: Any = None, *, share: float | None = None) -> Self:
        """Draw on axes, new ones by default; `share` is one to mark.

        Raises
        ------
        ImportError
            No matplotlib.
        """
        self.figure_, self.ax_ = axes_of_a_curve(ax)
        draw_explained(self.ax_, self.explained, share)
        if self.eigenvalues is not None:
            values = 100 * np.asarray(self.eigenvalues)
            count = np.arange(1, len(values) + 1)
            style = {"color": CHOSEN_COLOUR, "markersize": 4, "label": "eigenvalue λ (%)"}
            self.ax_.plot(count, values, "D", **style)
            self.ax_.set_ylim(min(0.0, 1.1 * values.min()), 104)
            self.ax_.legend(frameon=False, fontsize=8)
        return self


class DistortionDisplay(CurveDisplay):
    """How an embedding changes distances: how many pairs have which ratio to the median.

    Parameters
    ----------
    result : Distortion
        The result of `distortion`, or `distortion_` of an estimator.

    Attributes
    ----------
    ax_, figure_
        As in `EmbeddingDisplay`.

    Examples
    --------
    >>> import heatsketch as hs
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> display = hs.plot.DistortionDisplay.from_estimator(hs.DiffusionMap(2, 8).fit(X))
    >>> display.ax_.get_ylabel()
    'pairs (%)'
    """

    def __init__(self, result: Distortion) -> None:
        self.result = result

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw how the embedding of a fitted estimator keeps its diffusion distances.

        Raises
        ------
        NotFittedError, ValueError, ImportError
            Before the fit of the estimator; one without diffusion distances; no matplotlib.
        """
        check_is_fitted(estimator)
        found = distortion_of(estimator)
        if found is None:
            raise ValueError(
                f"{type(estimator).__name__} has no diffusion distances to keep; pass the result "
                "of heatsketch.distortion to DistortionDisplay."
            )
        return cls(found).plot(ax)

    def _draw(self, ax: Any) -> None:
        edges, counts = self.result.histogram
        shares = 100 * counts / max(counts.sum(), 1)
        ax.set_xscale("log", base=2)
        ax.stairs(shares, edges, fill=True, color=MAIN_COLOUR, alpha=0.75)
        ax.axvline(1, **GREY_LINE)
        ax.set_xticks([2.0**j for j in range(-3, 4)], ["⅛", "¼", "½", "1", "2", "4", "8"])
        names = ("distance in the picture / diffusion distance, median 1", "pairs (%)")
        style_axes(ax, self.result.describe(), names)
        ax.set_ylim(0, None)


def distortion_of(estimator: Any) -> Distortion | None:
    """Return how an estimator keeps its diffusion distances, as ``heatsketch score`` measures it.

    None where it has none.
    """
    if hasattr(estimator, "distortion_"):
        known: Distortion | None = estimator.distortion_
        return known
    diffusion = getattr(estimator, "diffusion_", None)
    if diffusion is None or diffusion.diagnostics["flat"]:
        return None
    time = getattr(estimator, "time_", estimator.time)
    if np.size(time) > 1 or (time < 1 and estimator.filter == "power"):
        return None  # there is no such distance
    logger.info("how distances are kept")
    log_scale = estimator.diagnostics_["log_scale"]
    return diffusion_distortion(
        estimator.embedding_, diffusion, time, filter=estimator.filter, log_scale=log_scale
    )
