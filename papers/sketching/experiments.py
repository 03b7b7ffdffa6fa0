"""The experiments beside the figures of *Sketching the heat kernel*."""

from papers.output import Experiment
from papers.sketching.double_points import run_double_points
from papers.sketching.euclidean import run_euclidean
from papers.sketching.heisenberg import run_heisenberg
from papers.sketching.induced_metric import run_induced_metric
from papers.sketching.noise import run_noise
from papers.sketching.outliers import run_outliers
from papers.sketching.reach import run_reach
from papers.sketching.running_times import run_running_times
from papers.sketching.self_crossings import run_self_crossings

EXPERIMENTS: dict[str, Experiment] = {
    "noise": Experiment("noise whose size differs from point to point", run_noise, 0.7),
    "outliers": Experiment("1 to 8 outliers, near and far, on three manifolds", run_outliers, 2),
    "euclidean": Experiment("log L by Euclidean beside diffusion distance", run_euclidean, 2),
    "induced-metric": Experiment("the metric that a sketch induces", run_induced_metric, 1),
    "self-crossings": Experiment("crossings of sketches of the circle", run_self_crossings, 3),
    "double-points": Experiment("self-intersections of sketches of a torus", run_double_points, 2),
    "reach": Experiment("the reach of sketches", run_reach, 2),
    "running-times": Experiment("running times of Algorithms 3, 4, 5", run_running_times, 4),
    "heisenberg": Experiment("a space without bi-Lipschitz embedding", run_heisenberg, 1),
}
