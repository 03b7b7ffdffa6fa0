"""Facts as text: the same lines on the command line and in reports."""

import math
from typing import Any

import numpy as np

from heatsketch.spectral.traces import ExplainedVariance

_PROBES = 8  # for more than 2,048 points


def summary(estimator: Any, share: ExplainedVariance | None = None) -> dict[str, str]:
    """Return names and texts: time, layout, bandwidth, graph, distortion, explained variance.

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
        low, median, high = (f"{value:.4g}" for value in np.quantile(epsilon, [0, 0.5, 1]))
        lines["bandwidth"] = f"local scales from {low} to {high}, median {median}"
    elif epsilon is not None:
        given = np.isnan(epsilon)
        lines["bandwidth"] = "of the given affinity" if given else f"epsilon {epsilon:.6g}"
    lines |= _model(estimator._result("diagnostics_") or {})
    if (quality := estimator._result("quality_")) is not None:
        lines["picture"] = quality.describe()
    if (distortion := estimator._result("distortion_")) is not None:
        held_out, line = distortion.held_out_log_L, kept(distortion)
        more = "" if math.isnan(held_out) else f", {held_out:.2f} for points not learned from"
        lines["distances"] = line + more
    if estimator._states_variance:
        times = estimator._fit_times
        shares = [share] if share else [explained(estimator, place) for place in range(len(times))]
        words = [f"{one.describe()} (time {t:g})" for t, one in zip(times, shares, strict=True)]
        count = estimator.embedding_.shape[1] // len(times)
        lines["explained"] = f"{', '.join(words)}, by {count} coordinates"
    return lines


def parameters(estimator: Any) -> str:
    """Return the parameters that are not None: "n_components=2, time='auto', ..."."""
    values = estimator.get_params()
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)


def kept(distortion: Any) -> str:
    """Return the line about how well an embedding keeps distances."""
    line: str = distortion.describe().removeprefix("distances ")
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
