"""Facts as text: the same lines on the command line and in reports."""

import math
from typing import Any

import numpy as np

from heatsketch.comparison.methods import defaults
from heatsketch.spectral.traces import ExplainedVariance

_PROBES = 8  # for more than 2,048 points


def summary(estimator: Any, share: ExplainedVariance | None = None) -> dict[str, str]:
    """Return names and texts: what the fit chose, the graph, the picture, the variance explained.

    `share` is the result of `explained`, if it is known already.

    Examples
    --------
    >>> import heatsketch as hs
    >>> from heatsketch.reports.summary import summary
    >>> X, angle = hs.datasets.circle(100, rng=0)
    >>> summary(hs.HeatSketch(random_state=0).fit(X))["graph"]
    '1 connected component(s), 0 isolated point(s)'
    """
    lines = {}
    given, epsilon = estimator.get_params(deep=False), estimator._result("epsilon_")
    if isinstance(given.get("time"), str):
        lines["time"] = str(estimator.time_)
    if given.get("layout") == "auto":
        lines["layout"] = "free" if estimator._has_free_layout else "linear"
    if np.ndim(epsilon):  # one scale for each point
        low, median, high = (f"{value:.4g}" for value in np.nanquantile(epsilon, [0, 0.5, 1]))
        lines["bandwidth"] = f"local scales from {low} to {high}, median {median}"
    elif epsilon is not None:
        given = np.isnan(epsilon)
        lines["bandwidth"] = "of the given affinity" if given else f"epsilon {epsilon:.6g}"
    facts = estimator._result("diagnostics_") or {}
    if "dimension" in facts:
        lines["bandwidth"] += f"; dimension {facts['dimension']:.3g}"
    lines |= _model(facts)
    if (quality := estimator._result("quality_")) is not None:
        lines["picture"] = quality.describe()
    if (distortion := estimator._result("distortion_")) is not None:
        held_out, line = distortion.held_out_log_L, kept(distortion, estimator._has_free_layout)
        more = "" if math.isnan(held_out) else f", {held_out:.2f} for points not learned from"
        lines["distances"] = line + more
    if estimator._states_variance:
        times = estimator._fit_times
        shares = [share] if share else [explained(estimator, place) for place in range(len(times))]
        words = [f"{one.describe()} (time {t:g})" for t, one in zip(times, shares, strict=True)]
        count = estimator.embedding_.shape[1] // len(times)
        lines["explained"] = f"{', '.join(words)}, by {count} coordinates"
        if 1 in times:
            lines["explained"] += "; a walk of one step is still in many other directions"
    return lines


def parameters(estimator: Any) -> str:
    """Return the parameters that are not the defaults: "n_components=3, layout='linear'"."""
    usual = defaults(type(estimator))
    given = estimator.get_params(deep=False)
    own = [f"{name}={x!r}" for name, x in given.items() if not np.array_equal(x, usual[name])]
    return ", ".join(own) or "all parameters as by default"


def reading(estimator: Any, components: int) -> str:
    """Say what a picture is of, and what is not to be read from it."""
    free = ": a free layout, which keeps neighbours and the order of distances"
    places = free if getattr(estimator, "_has_free_layout", False) else ""
    gaps, facts = "", estimator._result("diagnostics_") or {}
    if components > 1 and places and "layout" not in facts:
        places += ", and between components, which no path joins, the order of straight distances"
    elif components > 1:
        gaps = ", or the gaps between components, between which nothing diffuses"
    return (
        f"The picture shows the coordinates of {type(estimator).__name__}{places}. The figures "
        f"compare it with the points and their graph. Do not read areas or densities from it{gaps}."
    )


def kept(distortion: Any, is_free: bool = False) -> str:
    """Return the line about how well an embedding keeps distances.

    It leaves out the worst pairs of a free layout, which are chance.
    """
    line: str = distortion.describe().removeprefix("distances ")
    if is_free:
        return line.partition(";")[0]
    return line if math.isinf(distortion.log_L) else f"{line}; log L {distortion.log_L:.2f}"


def explained(estimator: Any, index: int = 0) -> ExplainedVariance:
    """Return the diffusion variance explained at one of the times."""
    # A fraction that the user requested is reported with the probes by which it was reached.
    fewer = {} if isinstance(estimator.n_components, float) else {"n_probes": _PROBES}
    share: ExplainedVariance = estimator.explained_diffusion_variance(index=index, **fewer)
    return share


def _model(facts: dict[str, Any]) -> dict[str, str]:
    """Describe the graph or the mixture of the points, or list the other numbers known."""
    if "mixture_components" in facts:
        error = facts["distance_error"] / facts["typical_distance"]
        words = f"{facts['mixture_components']} Gaussians, {facts['n_features']} coordinates"
        kept = f"within {100 * error:.2g} % of their root mean square"
        if facts["time_error"] > 0:  # time without a closed form
            kept += f" (estimated); steps known to {100 * facts['time_error']:.2g} %"
        return {"mixture": words, "distances": kept}
    if "isolated" not in facts:
        numbers = {k: v for k, v in facts.items() if isinstance(v, int | float)}
        return {"found": ", ".join(f"{k} {v:.4g}" for k, v in numbers.items())} if numbers else {}
    components = facts.get("components", "unknown number of")
    text = f"{components} connected component(s), {facts['isolated']} isolated point(s)"
    if "layout" in facts:
        text += f"; {facts['layout']}: gaps between them mean nothing"
    return {"graph": text}
