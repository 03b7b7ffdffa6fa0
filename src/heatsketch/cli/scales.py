"""heatsketch scales: find the bandwidth, dimension and diffusion time for a file of points."""

from argparse import Namespace
from typing import Any

from heatsketch import plot
from heatsketch.cli.common import check_files, estimator_of, fit, read_points
from heatsketch.cli.printing import print_json, print_summary
from heatsketch.plot.curves import check_curve
from heatsketch.scales import intrinsic_dimension, ksum
from heatsketch.spectral.traces import heat_trace


def run(args: Namespace) -> None:
    """Run the Ksum test, choose a time as a linear heat-embedding does, print the results."""
    check_files(args)
    embedding = estimator_of(args, "heat-embedding", layout="linear")
    table = read_points(args)
    fit(args, embedding, table)
    curve = check_curve(embedding)
    seed, metric = embedding.random_state, embedding.metric
    trace = heat_trace(embedding.diffusion_, curve.times, rng=seed)
    explained = embedding.explained_diffusion_variance()
    test: Any = "INPUT holds no points"
    nearest = test
    if "precomputed" not in embedding.get_params().values():
        test = _or_why(ksum, table.values, metric=metric, rng=seed)
        nearest = _or_why(intrinsic_dimension, table.values, metric=metric)
    has_test = not isinstance(test, str)
    if args.plot is not None:
        figure = plot.new_figure(6.4, 9.6 if has_test else 6.4)
        axes = figure.subplots(2 + has_test, 1)
        plot.scales(embedding, trace, ax=axes[:2])
        if has_test:
            plot.ksum_curve(test, ax=axes[2])
        plot.save(figure, args.plot)
    if args.json:
        facts = {"ksum": test, "nearest_neighbors": nearest, "explained": explained}
        facts = {name: x if isinstance(x, str) else x._asdict() for name, x in facts.items()}
        print_json(curve._asdict() | facts | {"heat_trace": vars(trace)})
        return
    lines = {
        "changed": "; ".join(table.notes),
        "time": f"{curve.time:g}, of which {embedding.n_components} coordinates hold "
        f"{explained.describe()}",
        "wanted": f"at most {curve.wanted:g} directions",
        "epsilon": f"none by the Ksum test: {test}",
        "dimension": f"none by nearest neighbours: {nearest}",
    }
    if has_test:
        lines["epsilon"] = f"{test.epsilon:.6g}, by the Ksum test; dimension {test.dimension:.3g}"
    if not isinstance(nearest, str):
        found = f"{nearest.dimension:.3g} ± {nearest.error:.1g}"
        lines["dimension"] = f"{found}, by {nearest.n_neighbors[-1]} nearest neighbours"
    print_summary(args, lines)
    low, high = trace.effective_rank_interval
    print(f"\n{'time':>12}  directions   effective rank                spectral dimension")
    for j, time in enumerate(curve.times):
        rank, dimension = f"{trace.effective_rank[j]:.4g}", f"{trace.dimension[j]:.3g}"
        if not trace.exact:
            rank += f" ({low[j]:.4g} to {high[j]:.4g})"
            dimension += f" ± {trace.dimension_error[j]:.2g}"
        mark = "  <- chosen" if time == curve.time else ""
        print(f"{time:12g}  {curve.directions[j]:10.4g}   {rank:28}  {dimension}{mark}")


def _or_why(measure: Any, X: Any, **options: Any) -> Any:
    """Return a measurement, or the reason why it failed as text."""
    try:
        return measure(X, **options)
    except ValueError as error:
        return str(error)
